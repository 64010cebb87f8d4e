"""The one setting that a run would choose for all of the data, and what its choices came to."""

import math
from collections.abc import Sequence
from dataclasses import replace
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
        folds: Score of each test fold in the metric that chose; NaN for one that diverged, which
            ``scores`` are without.
        test_per_train: Test graphs for each training graph.
    """

    cell: Cell
    scores: dict[str, float]
    folds: list[float]
    test_per_train: float


def choose_setting(out: str | Path, cells: Sequence[Cell]) -> Chosen:
    """Choose the setting with the best mean validation score over all folds.

    Of settings that diverged in some folds those that lost the fewest are chosen from: a mean over
    the folds that went well would flatter the others.

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
    metric = METRICS[choosing[0].metric]
    place = _best(list(scores.values()), higher_is_better=metric.higher_is_better)
    if place is None:
        raise GnnVpaError("every training diverged, and there is nothing to choose")
    cell = list(scores)[place]
    method = [c for c in choosing if _method(c) == _method(tried[cell])]
    own = read_folds(out, keys={c.key for c in method})
    if len(own) != sum(c.folds for c in method):
        raise GnnVpaError(f"{method[0]} is not finished, and how good it is cannot be said yet")
    names = [name for name in METRICS if f"test_{name}" in own.columns]
    return Chosen(
        cell,
        {name: float(own[f"test_{name}"].mean()) for name in names},
        [float(score) for score in own["test_score"]],
        float(own["test_per_train"].mean()),
    )


def _best(by_setting: Sequence[Sequence[float]], *, higher_is_better: bool) -> int | None:
    """Return the place of the setting to choose, by the scores of its folds; None: there is none.

    Example:
        >>> _best([[0.95, math.nan], [0.8, 0.9]], higher_is_better=True)
        1
    """
    finished = [[score for score in own if not math.isnan(score)] for own in by_setting]
    most = max(map(len, finished))
    means = [fmean(own) if len(own) == most else math.nan for own in finished if most]
    return best(means, higher_is_better=higher_is_better) if means else None


def _method(cell: Cell) -> Cell:
    """Return what the repeats of a cell have in common."""
    return replace(cell, repeat=0)
