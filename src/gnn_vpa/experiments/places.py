"""Where groups would be trained side by side, and how long that would take: for a plan."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from .cell import Cell
from .groups import grouped, shares_steps
from .mps import gain, processes_for
from .schedule import START_S, Outlook, Planned, expect, outlook, short_slots
from .workers import Team, asked


@dataclass(frozen=True)
class Slots:
    """What a cluster has.

    Attributes:
        count: How many groups it trains side by side.
        device: On what.

    Example:
        >>> Slots(8, "cuda").count
        8
    """

    count: int
    device: Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Places:
    """What a host or a cluster has several of.

    Attributes:
        unit: What is counted: processes, GPUs, or a cluster's slots.
        count: How many there are.
        each: How many groups one of them trains side by side.
        slower: By what factor each of these is slower for it than one alone.
        cells: Number of cells that there are; on cores, processes divide their folds where there
            are fewer. None: they do not.
        start: Seconds until a process is at work; None: as was seen, see `START_S`.

    Example:
        >>> str(Places("processes", 4)), str(Places("GPUs", 2, each=3))
        (' in 4 processes', ' in 3 processes on each of 2 GPUs')
    """

    unit: str
    count: int
    each: int = 1
    slower: float = 1.0
    cells: int | None = None
    start: float | None = None

    @classmethod
    def of(
        cls,
        devices: Sequence[str],
        planned: Sequence[Planned],
        team: Team,
        workers: int | None = None,
        slots: Slots | None = None,
        *,
        is_timed: bool = False,
    ) -> "Places":
        """Look at what is there.

        Args:
            devices: Where to train, see `resolve_devices`.
            planned: What is to be trained.
            team: How processes would share the cores.
            workers: Number of processes that was asked for, on GPUs on each of them.
            slots: What a cluster has; None: this host alone.
            is_timed: Whether what is planned was timed by one process, with nobody beside it.
        """
        if slots is not None:
            return cls("slots", slots.count, start=START_S[slots.device])
        if not shares_steps(devices[0]):
            return cls("processes", team.cells * team.folds, cells=len(planned))
        each = processes_for(devices, planned, workers or asked())
        slower = each / gain(each) if is_timed else 1.0
        return cls("GPUs", len(devices), each, slower)

    def outlook(self, planned: Sequence[Planned], count: int) -> Outlook:
        """Simulate groups on so many of them.

        Example:
            >>> from gnn_vpa.experiments import Cell, Group
            >>> from gnn_vpa.training import Task
            >>> planned = [Planned(Group((Cell("MUTAG", Task("gin", "vpa")),)), 100.0)] * 4
            >>> places = Places("processes", 2, cells=4)
            >>> [places.outlook(planned, count).seconds for count in (1, 2, 8)]
            [400.0, 204.0, 54.0]
        """
        seen = START_S["cpu" if self.unit == "processes" else "cuda"]
        start = seen if self.start is None else self.start
        share, slots = 1, count * self.each
        if self.cells is not None and 0 < self.cells < count:
            share, slots = count // self.cells, self.cells
        planned = [Planned(group, s * self.slower / share) for group, s in planned]
        # This process is at work already, where it trains.
        trains = self.unit != "slots" and self.each == 1
        first = 0.0 if trains else None
        return outlook(planned, slots, start, first, short_slots(count, self.each))

    def __str__(self) -> str:
        several = f"{self.each} processes on each of " if self.each > 1 else ""
        if self.count * self.each == 1:
            return ""
        one = self.unit.removesuffix("es" if self.unit == "processes" else "s")
        here = f"{self.count} {self.unit}" if self.count > 1 else f"1 {one}"
        return f" in {several}{here}" if self.unit != "GPUs" or several else f" on {here}"


def speed_of(cells: Iterable[Cell], devices: Sequence[str], workers: int | None = None) -> float:
    """Return how much faster all processes on GPUs are together than one on one of them.

    Args:
        cells: What is to be trained.
        devices: Where, see `resolve_devices`; of CPUs nothing is said.
        workers: Number of processes that was asked for, on each GPU.

    Example:
        >>> speed_of([], ["cuda:0", "cuda:1"]), speed_of([], ["cuda"], workers=2)
        (2.0, 1.19)
    """
    if not shares_steps(devices[0]):
        return 1.0
    planned = [each for each in expect(grouped(cells, devices[0])) if isfinite(each.seconds)]
    return len(devices) * gain(processes_for(devices, planned, workers or asked()))
