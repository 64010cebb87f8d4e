"""Ours beside the paper's: the difference, and whether chance explains it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..aggregations import ordered
from ._published import FOLDS, published_average, published_cell
from .style import DATASETS, MODELS, in_order
from .summary import average_note, only_setting, summarise

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 1.96
"""Two measurements of the same thing differ by more standard errors in one case of twenty."""

AVERAGE = "Avg"
"""Name of the column that averages over data sets."""

_ROUNDING = 0.1**2 / 12
_COLUMNS = [
    *("dataset", "model", "aggregation", "ours", "ours_std", "folds"),
    *("paper", "paper_std", "difference", "z", "within", "note"),
]


def standard_error(
    ours_std: float, folds: int, paper_std: float, paper_folds: int = FOLDS
) -> float:
    """Standard error of the difference between a mean of ours and a published one.

        sqrt(ours_std^2 / folds + paper_std^2 / paper_folds + 0.1^2 / 12)

    The last term is the variance of what rounding to one decimal took from the published mean. It
    matters only where both standard deviations are 0, as for a model that always predicts the
    same class: there, a difference by rounding alone is within 1.96 standard errors, and any
    larger one that shows in print is not.

    Args:
        ours_std: our standard deviation over folds, in percent.
        folds: how many folds ours is over.
        paper_std: the published standard deviation, in percent.
        paper_folds: how many folds the published mean is over.

    Example:
        >>> round(standard_error(4.0, 10, 3.0), 2)
        1.58
        >>> (33.333 - 33.3) / standard_error(0.0, 10, 0.0) < LIMIT
        True
    """
    return math.sqrt(ours_std**2 / folds + paper_std**2 / paper_folds + _ROUNDING)


def compare_with_paper(folds: pd.DataFrame) -> pd.DataFrame:
    """Every number of ours that the paper has too: both, the difference, and its z.

    z is the difference (ours minus the paper's) in standard errors; `within` says whether it is
    no more than 1.96, which two such measurements exceed in one case of twenty. The folds of both
    are the same graphs, so z is on the careful side. A single fold of ours has no standard
    deviation: z is NaN then and `within` is None.

    Of a method with several data sets, the row of the data set "Avg" is the average over them.
    Where these are all nine, the paper's number is the one it prints; otherwise it is the mean
    over the same sets.

    Returns:
        Columns dataset, model, aggregation, ours, ours_std, folds, paper, paper_std, difference,
        z, within, note (of ours, see `summarise`); accuracies in percent.

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status"]
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, accuracy, "done"]
        ...         for fold, accuracy in enumerate((0.83, 0.87, 0.91))]
        >>> compared = compare_with_paper(pd.DataFrame(rows, columns=columns)).round(1)
        >>> compared[["dataset", "paper", "difference", "within"]].values.tolist()
        [['MUTAG', 86.7, 0.3, True]]
    """
    import pandas as pd

    table = only_setting(folds).published_table
    if table is None:
        return pd.DataFrame(columns=_COLUMNS).astype({"within": object})
    cells = summarise(folds)
    rows = []
    for model in in_order(cells["model"], MODELS):
        of_model = cells[cells["model"] == model]
        for aggregation in ordered(of_model["aggregation"]):
            method = of_model[of_model["aggregation"] == aggregation].set_index("dataset")
            rows += _compare_method(table, model, aggregation, method[method["folds"] > 0])
    return pd.DataFrame(rows, columns=_COLUMNS).astype({"within": object})


def _compare_method(
    table: str | None, model: str, aggregation: str, cells: pd.DataFrame
) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    errors = []
    datasets = in_order(cells.index, DATASETS)
    for dataset in datasets:
        paper = published_cell(table, model, aggregation, dataset)
        if paper is None:
            continue
        ours = cells.loc[dataset]
        errors.append(standard_error(ours["std"], ours["folds"], paper.std))
        rows.append(
            (
                *(dataset, model, aggregation, ours["mean"], ours["std"], int(ours["folds"])),
                *(paper.mean, paper.std, *_judge(ours["mean"] - paper.mean, errors[-1])),
                ours["note"],
            )
        )
    average = published_average(table, model, aggregation, datasets)
    if average is not None and len(datasets) > 1:
        ours_average = float(cells["mean"].mean())
        error = math.hypot(*errors) / len(errors)
        nan = float("nan")
        rows.append(
            (
                *(AVERAGE, model, aggregation, ours_average, nan, int(cells["folds"].sum())),
                *(average, nan, *_judge(ours_average - average, error)),
                average_note(cells["note"]),
            )
        )
    return rows


def _judge(difference: float, error: float) -> tuple[float, float, bool | None]:
    z = difference / error
    return difference, z, None if math.isnan(z) else bool(abs(z) <= LIMIT)
