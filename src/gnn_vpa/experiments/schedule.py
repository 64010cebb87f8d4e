"""Which group goes first, which are divided, and how long all of them take on so many slots.

A slot is a process that takes one group after the other: on a GPU, on a core, on a node of a
cluster. Whoever is free takes the longest group that is left; a group that would keep one slot busy
long after all others are done is divided beforehand, where a simulation says that this makes the
whole shorter.

Of the processes that share a GPU, one takes short groups first. They are mostly work of the host,
which compiles and captures: left to the end, all processes would do that at once, and the GPU would
idle. So they are trained beside long ones.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, inf, isfinite
from typing import NamedTuple

from .estimate import Pace, estimate
from .groups import Group
from .memory import DataSize
from .typical import typical_paces

START_S = {"cuda": 10.0, "cpu": 4.0}
"""Seconds until a process is at work: libraries, data, the GPU. Seen on an H200's host, and on two
cores."""

LANES_OF_STEP = 18
"""Lanes share what a step costs: a group takes as long as if it had so many lanes more than it has
(NCI1 on an H200: an epoch of 10 lanes takes 47.6 ms, of 30 lanes 81.8 ms)."""
_WORTH = 0.97  # a division is worth it from here on: estimates are rough
_SHORT_S = 4.0  # of one process alone: the host's work for a group takes as long


class Planned(NamedTuple):
    """A group, and the seconds that it is expected to take; infinity where nothing is known.

    Example:
        >>> from gnn_vpa.experiments import Cell
        >>> from gnn_vpa.training import Task
        >>> str(Planned(Group((Cell("MUTAG", Task("gin", "vpa")),)), 12.0).group)
        'GIN+vpa on MUTAG'
    """

    group: Group
    seconds: float


def expect(
    groups: Iterable[Group],
    paces: Sequence[Pace] = (),
    sizes: Mapping[str, DataSize] | None = None,
    *,
    gpu: bool = True,
) -> list[Planned]:
    """Return what each group is expected to take.

    Args:
        groups: The groups.
        paces: What is known, see `known_paces`; without any, what is typical of an H200.
        sizes: Of the data sets that are here, by content: for those that were not published.
        gpu: Whether they are trained on GPUs; on a CPU what is typical is right in proportion only.

    Example:
        >>> from gnn_vpa.experiments import grouped, preset
        >>> planned = expect(grouped(preset("paper"), "cuda"))
        >>> longest_first(planned)[0].group.cells[0].dataset
        'RDT-M5K'
    """
    groups = list(groups)
    if not paces:
        cells = [cell for group in groups for cell in group.cells]
        paces = typical_paces(cells, sizes or {}, gpu=gpu)
    return [Planned(group, _seconds(group, paces)) for group in groups]


def _seconds(group: Group, paces: Sequence[Pace]) -> float:
    expected = estimate(group.cells, paces)
    return expected.seconds if expected.is_known else inf


def longest_first(planned: Iterable[Planned]) -> list[Planned]:
    """Order groups by their expected time; what is not known may be long, and goes first.

    Example:
        >>> group = Group(())
        >>> [p.seconds for p in longest_first([Planned(group, s) for s in (1.0, 3.0, inf, 2.0)])]
        [inf, 3.0, 2.0, 1.0]
    """
    return sorted(planned, key=lambda each: each.seconds, reverse=True)


def short_first(seconds: Sequence[float]) -> list[int]:
    """Return in which order a slot for short groups takes those that stand in `longest_first`.

    First the short ones, upwards; then all others, downwards as in the other slots: what is left at
    the end is not long.

    Example:
        >>> short_first([90.0, 30.0, 3.0, 2.0, 1.0])
        [4, 3, 2, 0, 1]
    """
    is_short = [each < _SHORT_S for each in seconds]
    short, others = ([n for n, s in enumerate(is_short) if s is which] for which in (True, False))
    return short[::-1] + others


def short_slots(gpus: int, each: int) -> int:
    """Return how many slots are for short groups: one on each GPU that several share.

    Example:
        >>> short_slots(2, each=6), short_slots(2, each=1)
        (2, 0)
    """
    return gpus if each > 1 else 0


def makespan(
    seconds: Iterable[float],
    slots: int,
    start: float = 0.0,
    first: float | None = None,
    short: int = 0,
) -> float:
    """Return when all is done: whoever is free takes the longest that is left.

    Args:
        seconds: What each group takes.
        slots: How many work side by side.
        start: When they begin.
        first: When the first of them begins; None: with the others.
        short: How many of them take short groups first, see `short_first`.

    Example:
        >>> makespan([1, 3, 2, 2], slots=2), makespan([1, 3, 2, 2], slots=2, start=10.0)
        (4.0, 14.0)
        >>> makespan([1, 3, 2, 2], slots=2, start=6.0, first=0.0)
        7.0
        >>> makespan([1, 9, 2, 7], slots=2, short=1)  # 9 here, and 1, 2 and 7 there
        10.0
        >>> makespan([], slots=3)
        0.0
    """
    free = [(start if first is None else first, 0), *((start, slot) for slot in range(1, slots))]
    heapq.heapify(free)
    ordered = sorted(seconds, reverse=True)
    down, up = iter(range(len(ordered))), iter(short_first(ordered))
    taken: set[int] = set()
    end = 0.0
    while len(taken) < len(ordered):
        time, slot = free[0]
        number = next(n for n in (up if slot >= slots - short else down) if n not in taken)
        taken.add(number)
        end = max(end, time + ordered[number])
        heapq.heapreplace(free, (time + ordered[number], slot))
    return end


class _Cut(NamedTuple):
    """How often a group is divided: by its runs, and each of these parts by its methods."""

    by_run: int = 1
    by_method: int = 1

    @property
    def parts(self) -> int:
        return self.by_run * self.by_method


class _Size(NamedTuple):
    """What a division must know of a group."""

    runs: int
    methods: int
    lanes: int
    seconds: float

    @classmethod
    def of(cls, planned: Planned) -> "_Size":
        cells = planned.group.cells
        # A group of cells that choose their settings, or of baselines, is one cell.
        runs = len(planned.group.runs)
        lanes = sum(cell.trainings for cell in cells)
        return cls(runs, len(cells) // runs, lanes, planned.seconds)

    def cut(self, most: float) -> _Cut:
        """Return a division into parts of about so many seconds: the runs first."""
        if self.seconds <= most or not isfinite(self.seconds):
            return _Cut()
        wanted = ceil(self.seconds / most - 1e-6)
        by_run = min(wanted, self.runs)
        return _Cut(by_run, min(-(-wanted // by_run), self.methods))

    def parts(self, cut: _Cut) -> list[float]:
        """Return the seconds of the parts: all cost a step's share, which lanes share."""
        lanes = self.lanes / (self.runs * self.methods)
        whole = self.lanes + LANES_OF_STEP
        return [
            self.seconds * (runs * methods * lanes + LANES_OF_STEP) / whole
            for runs in _evenly(self.runs, cut.by_run)
            for methods in _evenly(self.methods, cut.by_method)
        ]


def divided(planned: Sequence[Planned], slots: int, short: int = 0) -> list[Planned]:
    """Divide groups that are too long for so many slots, where the whole becomes shorter by it.

    A part has the lanes of some runs or of some methods; parts together take longer than the group,
    because lanes share what a step costs. For ``short`` see `makespan`.

    Example:
        >>> from gnn_vpa.experiments import expand, grouped
        >>> cells = expand(["NCI1"], ["gin"], ["sum", "vpa"], seeds=range(40)).cells
        >>> planned = expect(grouped(cells, "cuda"))
        >>> [len(part.group.cells) for part in divided(planned, slots=4)]
        [20, 20, 20, 20]
        >>> len(divided(planned, slots=1))
        1
    """
    if slots == 1:
        return list(planned)
    sizes = [_Size.of(each) for each in planned]
    known = [size.seconds for size in sizes if isfinite(size.seconds)]
    cuts, best = [_Cut()] * len(sizes), makespan(known, slots, short=short) * _WORTH
    for share in (1, 1.5, 2, 3, 4, 6, 8):
        tried = [size.cut(sum(known) / slots / share) for size in sizes]
        seconds = [
            part
            for size, cut in zip(sizes, tried, strict=True)
            if isfinite(size.seconds)
            for part in size.parts(cut)
        ]
        if (length := makespan(seconds, slots, short=short)) < best:
            cuts, best = tried, length
    return [
        part
        for each, size, cut in zip(planned, sizes, cuts, strict=True)
        for part in _parts(each, size, cut)
    ]


def _parts(planned: Planned, size: _Size, cut: _Cut) -> list[Planned]:
    if cut.parts == 1:
        return [planned]
    cells = planned.group.cells  # method after method, and of each method run after run
    groups, run = [], 0
    for runs in _evenly(size.runs, cut.by_run):
        method = 0
        for methods in _evenly(size.methods, cut.by_method):
            rows = range(method, method + methods)
            groups.append(
                tuple(cells[row * size.runs + k] for row in rows for k in range(run, run + runs))
            )
            method += methods
        run += runs
    return [Planned(Group(g), s) for g, s in zip(groups, size.parts(cut), strict=True)]


def _evenly(total: int, parts: int) -> list[int]:
    """Return the sizes of parts that are as alike as can be."""
    return [total // parts + (number < total % parts) for number in range(parts)]


def part_numbers(planned: Iterable[Planned]) -> dict[str, int]:
    """Return a number for each cell by its key: cells of one part of a group have the same.

    With it `grouped` makes the same parts again in every process.

    Example:
        >>> from gnn_vpa.experiments import Cell
        >>> from gnn_vpa.training import Task
        >>> cells = [Cell("MUTAG", Task("gin", aggr), content="x") for aggr in ("sum", "vpa")]
        >>> list(part_numbers(Planned(Group((cell,)), 1.0) for cell in cells).values())
        [0, 1]
    """
    return {cell.key: number for number, (g, _) in enumerate(planned) for cell in g.cells}


class Outlook(NamedTuple):
    """What is expected of so many slots.

    Attributes:
        slots: How many.
        seconds: Until all is done, start-up included.
        limit: What keeps it from being shorter, in words.

    Example:
        >>> Outlook(4, 90.0, "the work itself").slots
        4
    """

    slots: int
    seconds: float
    limit: str


def outlook(
    planned: Sequence[Planned],
    slots: int,
    start: float = 0.0,
    first: float | None = None,
    short: int = 0,
) -> Outlook:
    """Simulate groups on so many slots, and say what limits them.

    Groups are divided as `run_grid` would do it; what is not known is left out. For when slots
    begin, and how many are for short groups, see `makespan`.

    Example:
        >>> from gnn_vpa.experiments import Cell
        >>> from gnn_vpa.training import Task
        >>> cells = [Cell("MUTAG", Task("gin", aggr)) for aggr in ("sum", "max", "vpa")]
        >>> planned = [Planned(Group((cell,)), 100.0) for cell in cells]
        >>> for count in (1, 2, 4):
        ...     print(outlook(planned, count, start=10.0))
        Outlook(slots=1, seconds=310.0, limit='the work itself')
        Outlook(slots=2, seconds=210.0, limit='that 3 groups do not divide evenly')
        Outlook(slots=4, seconds=110.0, limit='the longest group, GIN+sum on MUTAG')
    """
    known = [each for each in planned if isfinite(each.seconds)]
    parts = divided(known, slots, short)
    seconds = [each.seconds for each in parts]
    whole = makespan(seconds, slots, start, first, short)
    alone = makespan(seconds, slots, short=short)
    total, before = sum(seconds), sum(each.seconds for each in known)
    if total == 0:
        return Outlook(slots, whole, "nothing that takes time")
    uneven, more = alone * slots / total, total / before
    if whole >= 2 * alone:
        limit = "the start of processes"
    elif max(uneven, more) < 1.05:
        limit = "the work itself"
    elif more >= uneven:
        limit = f"that {len(parts)} smaller groups take {more - 1:.0%} more work"
    elif alone <= 1.05 * max(seconds):
        longest = max(parts, key=lambda each: each.seconds)
        limit = f"the longest group, {longest.group}"
    else:
        limit = f"that {len(parts)} groups do not divide evenly"
    return Outlook(slots, whole, limit)


def doublings(most: int) -> list[int]:
    """Return 1, 2, 4, ... up to a number, and the number itself.

    Example:
        >>> doublings(6), doublings(1)
        ([1, 2, 4, 6], [1])
    """
    powers = [1 << n for n in range(most.bit_length())]
    return sorted({*(p for p in powers if p <= most), most})
