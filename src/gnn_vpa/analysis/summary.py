"""From folds to means: one score a fold, one mean and standard deviation a cell."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gnn_vpa.errors import UsageError

from .format import count
from .measure import measure_of
from .once import once
from .resampled import per_train
from .settings import KEYS, Setting, require_columns, settings_of
from .style import BASELINES, method_label

if TYPE_CHECKING:
    import pandas as pd

CELL = ["dataset", "model", "aggregation"]
ONE_CLASS = "one class"
"""The note of a number from a data set on which nobody can be wrong."""


@once
def only_setting(folds: pd.DataFrame) -> Setting:
    """The one setting that all folds were made under; several do not belong in one table.

    Example:
        >>> import pandas as pd
        >>> print(only_setting(pd.DataFrame(columns=KEYS)))
        models as released, the data's own node features
    """
    settings = settings_of(folds)
    if len(settings) > 1:
        raise UsageError(
            f"the folds were made under {len(settings)} settings "
            f"({'; '.join(map(str, settings))}): take them one by one from split_by_setting(folds)"
        )
    return settings[0] if settings else Setting("released", "auto")


@once
def fold_scores(folds: pd.DataFrame) -> pd.DataFrame:
    """One row a cell, repeat and fold, its test score averaged over the seeds.

    A score that is a share is in percent, any other as it was recorded. Seeds are averaged before
    anything else: a fold is one pair of a paired test however often it was trained. A training
    that diverged has no score; a fold without any is NaN. The columns `trainings` and `diverged`
    count those with a score and those that diverged, and `seeds` how many there should be: as many
    as the cell has on any of its folds.

    Example:
        >>> import pandas as pd
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", 0, s, 0.8 + s / 10, "done"]
        ...         for s in (0, 1)]
        >>> folds = pd.DataFrame(rows, columns=[*KEYS, "test_score", "status"])
        >>> fold_scores(folds)[["dataset", "fold", "score"]].values.tolist()
        [['MUTAG', 0, 85.0]]
    """
    require_columns(folds, (*KEYS, "test_score", "status"))
    only_setting(folds)
    diverged = folds["status"] == "diverged"
    score = (measure_of(folds).scale * folds["test_score"].astype(float)).mask(diverged)
    trainings = folds.assign(score=score, diverged=diverged.astype(int), repeat=repeats(folds))
    grouped = trainings.groupby([*CELL, "repeat", "fold"], as_index=False)
    found = grouped.agg(
        score=("score", "mean"),
        trainings=("score", "count"),
        diverged=("diverged", "sum"),
    )
    return found.merge(_seeds(folds), on=CELL)


def _seeds(folds: pd.DataFrame) -> pd.DataFrame:
    """How often each cell trains a fold: as often as on any of them.

    Seeds of all folds together would be more where each repeat has a seed of its own.
    """
    of_fold = folds.assign(repeat=repeats(folds)).groupby([*CELL, "repeat", "fold"], as_index=False)
    return of_fold.agg(seeds=("seed", "nunique")).groupby(CELL, as_index=False)[["seeds"]].max()


def repeats(folds: pd.DataFrame) -> pd.Series:
    """The repeat of each row; in a frame without such a column there is one."""
    import pandas as pd

    if "repeat" not in folds.columns:
        return pd.Series(0, index=folds.index)
    return folds["repeat"].fillna(0).astype(int)


@once
def summarise(folds: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of the test score over folds, one row a cell.

    A score that is a share is in percent, any other as it was recorded. The standard deviation is
    the sample's (n - 1), because it estimates how far another such measurement may fall; with one
    fold it is NaN. The paper does not say which one it prints: at ten folds the two differ by a
    factor of 1.05, mostly below its last digit. Where the folds were drawn several times, `std` is
    over all folds of all repeats, and `repeats_std` over the repeats, of the mean of each.

    A mean may stand for less than was asked for, and on a data set of one class it says nothing:
    the column `note` has what must be said beside the number, empty where there is nothing. What
    was asked for is in the column `num_folds` of a run's folds. In folds that come without it, it
    is as many as any method has on that data set.

    Returns:
        Columns dataset, model, aggregation, mean, std, repeats_std, folds (finished, of all
        repeats), asked (folds), repeats, diverged (trainings), note, digits (to print).

    Example:
        >>> import pandas as pd
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, accuracy, "done"]
        ...         for fold, accuracy in enumerate((0.7, 0.8, 0.9))]
        >>> folds = pd.DataFrame(rows, columns=[*KEYS, "test_score", "status"])
        >>> summarise(folds)[["mean", "std", "folds"]].round(6).values.tolist()
        [[80.0, 10.0, 3.0]]
        >>> folds.loc[0, "status"] = "diverged"
        >>> summarise(folds)["note"].tolist()
        ['2 of 3 folds']
    """
    scores = fold_scores(folds)
    of_repeats = scores.groupby([*CELL, "repeat"], as_index=False)["score"].mean()
    cells = (
        scores.groupby(CELL, as_index=False)
        .agg(
            mean=("score", "mean"),
            std=("score", "std"),
            usual=("score", "median"),
            folds=("score", "count"),
            trainings=("trainings", "sum"),
            diverged=("diverged", "sum"),
        )
        .merge(of_repeats.groupby(CELL, as_index=False).agg(repeats_std=("score", "std")), on=CELL)
        .merge(_asked(folds), on=CELL)
    )
    cells["note"] = [_note(cell) for cell in cells.itertuples()]
    digits = {
        name: measure_of(folds).digits(part) for name, part in cells.groupby("dataset")["usual"]
    }
    cells["digits"] = cells["dataset"].map(digits).astype(int)
    columns = [*CELL, "mean", "std", "repeats_std", "folds", "asked", "repeats", "diverged"]
    return cells[[*columns, "note", "digits"]].astype({"note": object})


def decimals(folds: pd.DataFrame) -> dict[str, int]:
    """Decimals to print scores with, by data set.

    Example:
        >>> import pandas as pd
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, 0.8, "done"]
        ...         for fold in range(2)]
        >>> decimals(pd.DataFrame(rows, columns=[*KEYS, "test_score", "status"]))
        {'MUTAG': 1}
    """
    cells = summarise(folds)
    return dict(zip(cells["dataset"], cells["digits"].map(int), strict=True))


def tested_per_trained(folds: pd.DataFrame) -> dict[str, float]:
    """Graphs that a fold is tested on for each that it is trained on, by data set.

    That is what the correction for shared training data needs (`corrected_mean`). It is in the
    column `test_per_train` where a run divides its graphs in a way of its own; otherwise it follows
    from the number of folds. Where methods differ, the largest counts: it is the careful one.

    Example:
        >>> import pandas as pd
        >>> tested_per_trained(pd.DataFrame({"dataset": ["a"], "num_folds": [10], "fold": [0]}))
        {'a': 0.125}
    """
    found = {}
    for name, part in folds.groupby("dataset"):
        known = part["test_per_train"].dropna() if "test_per_train" in part.columns else []
        asked = part["num_folds"].dropna() if "num_folds" in part.columns else []
        number = int(min(asked)) if len(asked) else int(part["fold"].nunique())
        found[str(name)] = float(max(known)) if len(known) else per_train(max(number, 2))
    return found


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
    """What each cell should stand for: folds, and seeds of each; and the classes of its data.

    Where folds were drawn several times, all of their draws count.
    """
    unknown = dict.fromkeys({"num_folds", "classes"} - {*folds.columns}, float("nan"))
    folds = folds.assign(**unknown, repeat=repeats(folds))
    folds["drawn"] = list(zip(folds["repeat"], folds["fold"], strict=True))
    of_data = folds.groupby("dataset", as_index=False)
    there = of_data.agg(there=("drawn", "nunique"), draws=("repeat", "nunique"))
    cells = (
        folds.groupby(CELL, as_index=False)
        .agg(
            own=("drawn", "nunique"),
            asked=("num_folds", "max"),
            repeats=("repeat", "nunique"),
            classes=("classes", "max"),
        )
        .merge(_seeds(folds), on=CELL)
        .merge(there, on="dataset")
    )
    # A baseline of one draw is complete beside networks of several.
    draws = cells["repeats"].where(cells["model"].isin(BASELINES), cells["draws"])
    asked = cells["asked"].astype(float) * draws
    asked = asked.fillna(cells["there"]).clip(lower=cells["own"])
    classes = cells["classes"].astype(float)  # NaN where it is not known
    return cells[[*CELL, "seeds", "repeats"]].assign(classes=classes, asked=asked.astype(int))


def _note(cell: Any) -> str:
    """What must be said beside a mean."""
    notes = [ONE_CLASS] if cell.classes == 1 else []
    if cell.folds < cell.asked:
        notes.append(f"{cell.folds} of {count(cell.asked, 'fold')}")
    elif cell.trainings < cell.asked * cell.seeds:
        notes.append(f"{cell.trainings} of {cell.asked * cell.seeds} trainings")
    return ", ".join(notes)
