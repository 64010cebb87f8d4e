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
    """Choose the setting with the best mean validation score over the folds of all repeats.

    Of settings that diverged in some folds those that lost the fewest are chosen from: a mean over
    the folds that went well would flatter the others.

    Args:
        out: The run's folder.
        cells: The cells of the run, those that choose among them; identified.

    Returns:
        The setting as a cell of the first repeat, and the test folds of all repeats.

    Raises:
        GnnVpaError: The run is not finished, or every training diverged.
    """
    choosing = [cell for cell in cells if cell.selection is not None]
    scores = _pooled(out, choosing)
    metric = METRICS[choosing[0].metric]
    place = _best(list(scores.values()), higher_is_better=metric.higher_is_better)
    if place is None:
        raise GnnVpaError("every training diverged, and there is nothing to choose")
    setting = list(scores)[place]
    method = [c for c in choosing if setting in map(_first_repeat, c.candidates())]
    tested = read_folds(out, keys={c.key for c in method})
    if len(tested) != sum(c.folds for c in method):
        raise GnnVpaError(f"{method[0]} is not finished, and how good it is cannot be said yet")
    names = [name for name in METRICS if f"test_{name}" in tested.columns]
    return Chosen(
        setting,
        {name: float(tested[f"test_{name}"].mean()) for name in names},
        [float(score) for score in tested["test_score"]],
        float(tested["test_per_train"].mean()),
    )


def _pooled(out: str | Path, choosing: Sequence[Cell]) -> dict[Cell, list[float]]:
    """Return the validation scores of each setting, by its cell of the first repeat.

    Repeats are other folds of the same data: were they to compete, the luckiest would decide.
    """
    pooled: dict[Cell, list[float]] = {}
    with Store(out) as store:
        for cell in dict.fromkeys(c for chooser in choosing for c in chooser.candidates()):
            scores = store.validation_scores(cell.key)
            if len(scores) < cell.folds:
                raise GnnVpaError(f"{cell} is not finished, nothing can be chosen yet")
            pooled.setdefault(_first_repeat(cell), []).extend(scores)
    return pooled


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


def _first_repeat(cell: Cell) -> Cell:
    """Return the cell that stands for all repeats of a setting."""
    return replace(cell, repeat=0)
