"""How far a run is and how long the rest will take, told after every cell of thousands."""

import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .cell import Cell
from .estimate import Estimate, Kind, Paces, estimate_work, kind_of, work_of

# From so many finished cells on, the time they took says more than their trainings' seconds do.
_ENOUGH = 10


class Forecast:
    """The time left of a run, from the paces of its finished cells.

    What a cell costs it does not grow with the grid: work is summed up by data set and model, and
    a cell's pace is read once, when the time left is asked for.

    Args:
        out: The run's folder.
        device: Where it runs.

    Example:
        >>> forecast = Forecast("runs/none", "cpu")
        >>> forecast.plan([])
        >>> forecast.left() is None
        True
    """

    def __init__(self, out: str | Path, device: str) -> None:
        self._paces = Paces(out, device)
        self._ahead: Counter[Kind] = Counter()
        self._behind: Counter[Kind] = Counter()
        self._finished = 0
        self._began = self._latest = time.monotonic()

    def plan(self, pending: Iterable[Cell]) -> None:
        """Begin: these cells are to be run."""
        for cell in pending:
            self._ahead[kind_of(cell)] += work_of(cell)
        self._began = self._latest = time.monotonic()

    def finish(self, cell: Cell) -> None:
        """Take note that one of them is finished and recorded, wherever it was run."""
        self._ahead[kind_of(cell)] -= work_of(cell)
        self._behind[kind_of(cell)] += work_of(cell)
        self._finished += 1
        self._latest = time.monotonic()

    def left(self) -> Estimate | None:
        """Return the expected time; None where nothing is known, or nothing is left."""
        if not any(self._ahead.values()) or not (paces := self._paces.seen()):
            return None
        ahead = estimate_work(self._ahead, paces)
        if not ahead.is_known:
            return None
        behind = estimate_work(self._behind, paces).seconds
        # What is done took less time than its trainings add up to where several processes are at
        # work, and more where cells are so small that the work around them counts. Of few cells
        # the latter is chance: others that are about to be finished are not counted yet.
        share = (self._latest - self._began) / behind if behind > 0 else 1.0  # NaN is not
        share = share if self._finished >= _ENOUGH else min(share, 1.0)
        return Estimate(ahead.seconds * share, ahead.factor)

    def a_minute(self) -> float:
        """Return how many cells have been finished a minute; 0 before the first is."""
        spent = self._latest - self._began
        return self._finished / spent * 60 if spent > 0 else 0.0
