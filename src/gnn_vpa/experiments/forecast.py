"""How far a run is and how long the rest will take, told after every cell of thousands."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite, nan
from pathlib import Path
from typing import NamedTuple

from .cell import Cell
from .estimate import Estimate, Kind, Pace, Paces, estimate_work, kind_of, size_of, work_of
from .journal_files import Entry, journals
from .typical import completed, slower, typical_of_run

# From so many finished cells on, the time they took says more than their trainings' seconds do.
_ENOUGH = 10
# What is typical of a GPU stands for so many seconds of the run: its first ones are of processes
# that start, compile and capture.
_TYPICAL_S = 15.0
# A training of which less is done, or that is younger, may have compiled for most of its time.
_TELLING, _TELLING_S = 0.1, 20.0
_FRESH_S = 1.0  # journals are written as seldom


class Started(NamedTuple):
    """A group that is being trained.

    Attributes:
        cells: Kind and work of each of its cells.
        seconds: How long it has been trained.
        before: What part of it a checkpoint had.
        done: What part of it is done.
        gpu: Whether that is on a GPU.

    Example:
        >>> Started([(("MUTAG", "gin", ""), 2000)], 30.0, before=0.5, done=0.75).left
        30.0
    """

    cells: Sequence[tuple[Kind, int]]
    seconds: float
    before: float
    done: float
    gpu: bool = False

    @property
    def trained(self) -> float:
        """What part of it these seconds were for."""
        return self.done - self.before

    @property
    def is_telling(self) -> bool:
        """Whether it has gone on for long enough to say how long the rest will take."""
        return self.trained >= _TELLING and self.seconds >= _TELLING_S

    @property
    def left(self) -> float:
        """Seconds until it is finished, if it goes on as it went; 0 where that is not known."""
        return self.seconds * (1 - self.done) / self.trained if self.is_telling else 0.0


def started(entries: Iterable[Entry], unfinished: Mapping[str, tuple[Kind, int]]) -> list[Started]:
    """Return what journals say is being trained, of cells whose kind and work is known by key.

    Example:
        >>> started([], {})
        []
    """
    return [
        Started(
            cells,
            seconds=max(entry.updated - at["since"], 1e-3),
            before=at["first"] / at["epochs"],
            done=at["epoch"] / at["epochs"],
            gpu=at["device"] != "cpu",
        )
        for entry in entries
        if entry.is_alive
        for at in entry.workers
        if at["epochs"] and (cells := [unfinished[k] for k in at["cells"] if k in unfinished])
    ]


def expected(
    ahead: Mapping[Kind, int],
    behind: Mapping[Kind, int],
    spent: float,
    paces: Sequence[Pace],
    *,
    at_work: Sequence[Started] = (),
    typical: Sequence[Pace] = (),
    speed: float = 1.0,
    most: float = inf,
) -> Estimate | None:
    """Return how long the rest will take, if it goes on as it went; None where nothing is known.

    What is done took less time than its trainings add up to where several processes are at work,
    and more where cells are so small that the work around them counts.

    Args:
        ahead: Epochs of one fold that are to be run, of each kind of cell.
        behind: Those that were run, of finished cells.
        spent: Seconds that these took, and what is done of those in training.
        paces: What was seen of an epoch's time.
        at_work: What is in training: a part of what is ahead.
        typical: What is typical of an epoch's time, see `typical_paces`.
        speed: How much faster than one process, of which that is typical, all are together.
        most: Seconds for each second of the trainings, at most, where nothing is typical.

    Example:
        >>> mutag = ("MUTAG", "gin", "")
        >>> expected({mutag: 300}, {mutag: 100}, 5.0, [Pace(*mutag[:2], 0.1, 3000.0)]).seconds
        15.0
    """
    ahead, behind = Counter(ahead), Counter(behind)
    for each in at_work:
        for kind, work in each.cells:
            ahead[kind] -= round(work * each.done)
            behind[kind] += round(work * each.trained)  # what a checkpoint had was done before
    if not any(ahead.values()):
        return None
    seen = [*paces, *_new_paces(at_work, paces, typical)]
    known = completed(seen, typical)
    left = estimate_work(ahead, known)
    if not left.is_known:
        return None
    done = estimate_work(behind, known).seconds
    if typical:
        prior = _TYPICAL_S * slower(seen, typical) * speed
        share = (spent + _TYPICAL_S) / ((done if done > 0 else 0.0) + prior)
    else:
        share = min(spent / done, most) if done > 0 else 1.0  # NaN is not
    # Whoever is free at the end does not help with the longest.
    longest = max((each.left for each in at_work), default=0.0)
    return Estimate(max(left.seconds * share, longest), left.factor)


def _new_paces(
    at_work: Iterable[Started], paces: Iterable[Pace], typical: Iterable[Pace]
) -> list[Pace]:
    """Return the paces of what is in training, of kinds that nothing is finished of.

    Where something is typical of a kind, that says more than the first epochs do.
    """
    finished, usual = ({pace.kind for pace in known} for known in (paces, typical))
    found: dict[Kind, Pace] = {}
    for each in at_work:
        kind, _ = each.cells[0]
        if kind not in finished and (each.is_telling if kind in usual else each.trained > 0):
            dataset, model, setting = kind
            seconds = each.seconds / (sum(work for _, work in each.cells) * each.trained)
            size = size_of(dataset, gpu=each.gpu)
            work = size if isfinite(size) else nan
            found[kind] = Pace(dataset, model, seconds, work, each.gpu, setting)
    return list(found.values())


class Forecast:
    """The time left of a run, from the paces of its cells.

    What a cell costs it does not grow with the grid: work is summed up by data set and model, and
    a cell's pace is read once, when the time left is asked for.

    Args:
        out: The run's folder.
        device: Where it runs.
        speed: How much faster all processes on GPUs are together than one on one of them, see
            `speed_of`.

    Example:
        >>> forecast = Forecast("runs/none", "cpu")
        >>> forecast.plan([])
        >>> forecast.left() is None
        True
    """

    def __init__(self, out: str | Path, device: str, speed: float = 1.0) -> None:
        self._out, self._device, self._speed = out, device, speed
        self._paces = Paces(out, device)
        self._typical: list[Pace] = []
        self._ahead: Counter[Kind] = Counter()
        self._behind: Counter[Kind] = Counter()
        self._unfinished: dict[str, tuple[Kind, int]] = {}
        self._at_work: tuple[float, list[Entry]] | None = None  # when they were read
        self._finished = 0
        self._began = self._latest = time.monotonic()

    def plan(self, pending: Sequence[Cell]) -> None:
        """Begin: these cells are to be run."""
        for cell in pending:
            kind, work = kind_of(cell), work_of(cell)
            self._ahead[kind] += work
            if cell.content:  # without that nobody else can name it
                self._unfinished[cell.key] = kind, work
        self._typical = typical_of_run(self._out, self._ahead, self._device)
        self._began = self._latest = time.monotonic()

    def finish(self, cell: Cell) -> None:
        """Take note that one of them is finished and recorded, wherever it was run."""
        self._ahead[kind_of(cell)] -= work_of(cell)
        self._behind[kind_of(cell)] += work_of(cell)
        if cell.content:
            self._unfinished.pop(cell.key, None)
        self._finished += 1
        self._latest = time.monotonic()

    def left(self) -> Estimate | None:
        """Return the expected time; None where nothing is known, or nothing is left."""
        if not any(self._ahead.values()):
            return None
        # Of few cells it is chance if they took more time than their trainings add up to: what
        # others have done is not known to the second.
        most = inf if self._finished >= _ENOUGH else 1.0
        return expected(
            self._ahead,
            self._behind,
            self._latest - self._began,
            self._paces.seen(),
            at_work=started(self._journals(), self._unfinished),
            typical=self._typical,
            speed=self._speed,
            most=most,
        )

    @property
    def is_typical(self) -> bool:
        """Whether nothing was seen here yet that an expected time could come from."""
        return not self._paces.seen()

    def a_minute(self) -> float:
        """Return how many cells have been finished a minute; 0 before the first is."""
        spent = self._latest - self._began
        return self._finished / spent * 60 if spent > 0 else 0.0

    def _journals(self) -> list[Entry]:
        now = time.monotonic()
        if self._at_work is None or now - self._at_work[0] >= _FRESH_S:
            self._at_work = now, journals(self._out)
        return self._at_work[1]
