"""How far a run is and how long the rest will take, told after every cell of thousands."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path

from .cell import Cell
from .estimate import Estimate, Kind, Pace, Paces, estimate_work, kind_of, work_of

# From so many finished cells on, the time they took says more than their trainings' seconds do.
_ENOUGH = 10


def expected(
    ahead: Mapping[Kind, int],
    behind: Mapping[Kind, int],
    spent: float,
    paces: Sequence[Pace],
    most: float = inf,
) -> Estimate | None:
    """Return how long the rest will take, if it goes on as it went; None where nothing is known.

    What is done took less time than its trainings add up to where several processes are at work,
    and more where cells are so small that the work around them counts.

    Args:
        ahead: Epochs of one fold that are to be run, of each kind of cell.
        behind: Those that were run.
        spent: Seconds that these took.
        paces: What is known of an epoch's time.
        most: Seconds for each second of the trainings, at most.

    Example:
        >>> mutag = ("MUTAG", "gin", "")
        >>> expected({mutag: 300}, {mutag: 100}, 5.0, [Pace(*mutag[:2], 0.1, 3000.0)]).seconds
        15.0
    """
    left = estimate_work(ahead, paces)
    if not left.is_known:
        return None
    done = estimate_work(behind, paces).seconds
    share = min(spent / done, most) if done > 0 else 1.0  # NaN is not
    return Estimate(left.seconds * share, left.factor)


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
        # Of few cells it is chance if they took more time than their trainings add up to: others
        # that are about to be finished are not counted yet.
        most = inf if self._finished >= _ENOUGH else 1.0
        return expected(self._ahead, self._behind, self._latest - self._began, paces, most)

    def a_minute(self) -> float:
        """Return how many cells have been finished a minute; 0 before the first is."""
        spent = self._latest - self._began
        return self._finished / spent * 60 if spent > 0 else 0.0
