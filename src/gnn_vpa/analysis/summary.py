"""From folds to means: one accuracy a fold, one mean and standard deviation a cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gnn_vpa.errors import UsageError

from .format import count
from .settings import KEYS, Setting, require_columns, split_by_setting
from .style import method_label

if TYPE_CHECKING:
    import pandas as pd

CELL = ["dataset", "model", "aggregation"]
ONE_CLASS = "one class"
"""The note of a number from a data set on which nobody can be wrong."""


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
    was trained. A training that diverged has no accuracy; a fold without any is NaN. The columns
    `trainings` and `diverged` count those with an accuracy and those that diverged.

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
    return grouped.agg(
        accuracy=("accuracy", "mean"),
        trainings=("accuracy", "count"),
        diverged=("diverged", "sum"),
    )


def summarise(folds: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of the test accuracy over folds, one row a cell, in percent.

    The standard deviation is the sample's (n - 1), because it estimates how far another such
    measurement may fall; with one fold it is NaN. The paper does not say which one it prints: at
    ten folds the two differ by a factor of 1.05, mostly below its last digit.

    A mean may stand for less than was asked for, and on a data set of one class it says nothing:
    the column `note` has what must be said beside the number, empty where there is nothing. What
    was asked for is in the column `num_folds` of a run's folds. In folds that come without it, it
    is as many as any method has on that data set.

    Returns:
        Columns dataset, model, aggregation, mean, std, folds (finished), asked (folds), diverged
        (trainings), note.

    Example:
        >>> import pandas as pd
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, accuracy, "done"]
        ...         for fold, accuracy in enumerate((0.7, 0.8, 0.9))]
        >>> folds = pd.DataFrame(rows, columns=[*KEYS, "test_acc", "status"])
        >>> summarise(folds)[["mean", "std", "folds"]].round(6).values.tolist()
        [[80.0, 10.0, 3.0]]
        >>> folds.loc[0, "status"] = "diverged"
        >>> summarise(folds)["note"].tolist()
        ['2 of 3 folds']
    """
    cells = (
        fold_accuracies(folds)
        .groupby(CELL, as_index=False)
        .agg(
            mean=("accuracy", "mean"),
            std=("accuracy", "std"),
            folds=("accuracy", "count"),
            trainings=("trainings", "sum"),
            diverged=("diverged", "sum"),
        )
        .merge(_asked(folds), on=CELL)
    )
    cells["note"] = [_note(cell) for cell in cells.itertuples()]
    columns = [*CELL, "mean", "std", "folds", "asked", "diverged", "note"]
    return cells[columns].astype({"note": object})


def average_note(notes: Iterable[str]) -> str:
    """What must be said beside an average over data sets, from the notes of their cells.

    Example:
        >>> average_note(["", "one class", "7 of 10 folds"])
        '1 data set of one class, 1 incomplete'
    """
    noted = [note for note in notes if note]
    single = sum(ONE_CLASS in note for note in noted)
    fewer = sum(" of " in note for note in noted)
    said = [f"{count(single, 'data set')} of {ONE_CLASS}"] if single else []
    if fewer:
        said.append(f"{fewer if single else count(fewer, 'data set')} incomplete")
    return ", ".join(said)


def incomplete(cells: pd.DataFrame) -> list[str]:
    """Name the cells of `summarise` that are over fewer folds than were asked for."""
    few = cells[cells["folds"] < cells["asked"]]
    return [
        f"{method_label(cell.model, cell.aggregation)} on {cell.dataset} "
        f"({cell.folds} of {cell.asked})"
        for cell in few.itertuples()
    ]


def _asked(folds: pd.DataFrame) -> pd.DataFrame:
    """What each cell should stand for: folds, and seeds of each; and the classes of its data."""
    unknown = dict.fromkeys({"num_folds", "classes"} - {*folds.columns}, float("nan"))
    there = folds.groupby("dataset")["fold"].nunique().rename("there")
    cells = (
        folds.assign(**unknown)
        .groupby(CELL, as_index=False)
        .agg(
            own=("fold", "nunique"),
            asked=("num_folds", "max"),
            seeds=("seed", "nunique"),
            classes=("classes", "max"),
        )
        .merge(there, on="dataset")
    )
    asked = cells["asked"].astype(float).fillna(cells["there"]).clip(lower=cells["own"])
    classes = cells["classes"].astype(float)  # NaN where it is not known
    return cells[[*CELL, "seeds"]].assign(classes=classes, asked=asked.astype(int))


def _note(cell: Any) -> str:
    """What must be said beside a mean."""
    notes = [ONE_CLASS] if cell.classes == 1 else []
    if cell.folds < cell.asked:
        notes.append(f"{cell.folds} of {count(cell.asked, 'fold')}")
    elif cell.trainings < cell.asked * cell.seeds:
        notes.append(f"{cell.trainings} of {cell.asked * cell.seeds} trainings")
    return ", ".join(notes)
