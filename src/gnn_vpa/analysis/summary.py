"""From folds to means: one accuracy a fold, one mean and standard deviation a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnn_vpa.errors import UsageError

from .settings import KEYS, Setting, require_columns, split_by_setting

if TYPE_CHECKING:
    import pandas as pd

CELL = ["dataset", "model", "aggregation"]


def only_setting(folds: pd.DataFrame) -> Setting:
    """The one setting that all folds were made under; several do not belong in one table.

    Example:
        >>> import pandas as pd
        >>> print(only_setting(pd.DataFrame(columns=KEYS)))
        models as released, the data's own node features
    """
    settings = [setting for setting, _ in split_by_setting(folds)]
    if len(settings) > 1:
        raise UsageError(
            f"the folds were made under {len(settings)} settings "
            f"({'; '.join(map(str, settings))}): take them one by one from split_by_setting(folds)"
        )
    return settings[0] if settings else Setting("released", "auto")


def fold_accuracies(folds: pd.DataFrame) -> pd.DataFrame:
    """One row a cell and fold, its test accuracy in percent averaged over the seeds.

    Seeds are averaged before anything else: a fold is one pair of a paired test however often it
    was trained. A training that diverged has no accuracy; a fold without any is NaN, and the
    column `diverged` counts such trainings.

    Example:
        >>> import pandas as pd
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", 0, s, 0.8 + s / 10, "done"]
        ...         for s in (0, 1)]
        >>> folds = pd.DataFrame(rows, columns=[*KEYS, "test_acc", "status"])
        >>> fold_accuracies(folds)[["dataset", "fold", "accuracy"]].values.tolist()
        [['MUTAG', 0, 85.0]]
    """
    require_columns(folds, (*KEYS, "test_acc", "status"))
    only_setting(folds)
    diverged = folds["status"] == "diverged"
    accuracy = (100 * folds["test_acc"].astype(float)).mask(diverged)
    trainings = folds.assign(accuracy=accuracy, diverged=diverged.astype(int))
    grouped = trainings.groupby([*CELL, "fold"], as_index=False)
    return grouped.agg(accuracy=("accuracy", "mean"), diverged=("diverged", "sum"))


def summarise(folds: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of the test accuracy over folds, one row a cell, in percent.

    The standard deviation is the sample's (n - 1), because it estimates how far another such
    measurement may fall; with one fold it is NaN. The paper does not say which one it prints: at
    ten folds the two differ by a factor of 1.05, mostly below its last digit.

    Returns:
        Columns dataset, model, aggregation, mean, std, folds (finished), diverged (trainings).

    Example:
        >>> import pandas as pd
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, accuracy, "done"]
        ...         for fold, accuracy in enumerate((0.7, 0.8, 0.9))]
        >>> folds = pd.DataFrame(rows, columns=[*KEYS, "test_acc", "status"])
        >>> summarise(folds)[["mean", "std", "folds"]].round(6).values.tolist()
        [[80.0, 10.0, 3.0]]
    """
    return (
        fold_accuracies(folds)
        .groupby(CELL, as_index=False)
        .agg(
            mean=("accuracy", "mean"),
            std=("accuracy", "std"),
            folds=("accuracy", "count"),
            diverged=("diverged", "sum"),
        )
    )
