"""The one setting that a run would choose for all of the data, and what its choices came to."""

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from ..errors import GnnVpaError
from ..training import METRICS
from .cell import Cell
from .frames import read_folds
from .selection import best
from .store import Store


class Chosen(NamedTuple):
    """A setting, and how good the method is whose settings it was chosen from.

    Attributes:
        cell: The setting.
        scores: Mean over test folds, in which nothing was chosen, by metric.
        folds: Score of each test fold in the metric that chose.
        test_per_train: Test graphs for each training graph.
    """

    cell: Cell
    scores: dict[str, float]
    folds: list[float]
    test_per_train: float


def choose_setting(out: str | Path, cells: Sequence[Cell]) -> Chosen:
    """Choose the setting with the best mean validation score over all folds.

    Args:
        out: The run's folder.
        cells: The cells of the run, those that choose among them; identified.

    Raises:
        GnnVpaError: The run is not finished, or every training diverged.
    """
    choosing = [cell for cell in cells if cell.selection is not None]
    tried = {c: cell for cell in choosing for c in cell.candidates()}
    with Store(out) as store:
        scores = {cell: store.validation_scores(cell.key) for cell in tried}
    if lacking := [cell for cell, own in scores.items() if len(own) < cell.folds]:
        raise GnnVpaError(f"{lacking[0]} is not finished, nothing can be chosen yet")
    means = [_mean(own) for own in scores.values()]
    if all(map(math.isnan, means)):
        raise GnnVpaError("every training diverged, and there is nothing to choose")
    metric = METRICS[choosing[0].metric]
    cell = list(scores)[best(means, higher_is_better=metric.higher_is_better)]
    frame = read_folds(out)
    own = frame[
        (frame["model"].str.casefold() == tried[cell].model.casefold())
        & (frame["aggregation"] == cell.task.aggr)
    ]
    names = [name for name in METRICS if f"test_{name}" in own.columns]
    return Chosen(
        cell,
        {name: float(own[f"test_{name}"].mean()) for name in names},
        [float(score) for score in own["test_score"]],
        float(own["test_per_train"].mean()),
    )


def _mean(scores: Sequence[float]) -> float:
    there = [score for score in scores if not math.isnan(score)]
    return fmean(there) if there else math.nan
