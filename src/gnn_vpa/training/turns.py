"""Groups that a process trains one after the other, or in turns while others are not ready."""

import time
from collections import deque
from collections.abc import Generator, Iterator
from typing import NamedTuple

from .interrupts import deferred
from .job import Job, Report, Train, last_of

TURN_S = 0.25  # seconds that a group is trained at least before it is another one's turn


class _Begun(NamedTuple):
    """A group that is being trained here."""

    job: Job
    reports: Generator[Report, bool | None]


class Turns:
    """What one of several processes trains, of groups that wait for whoever comes first.

    A process needs seconds to start. Groups that were left to it would all be that much later, so
    until then they are trained here, in turns: one that has had its turn waits with its state, and
    whoever is ready goes on with it.
    """

    def __init__(self, train: Train, waiting: deque[Job]) -> None:
        self._train, self._waiting = train, waiting
        self._now: _Begun | None = None
        self._since = 0.0
        self._aside: dict[int, _Begun] = {}  # by place: to go on with, unless another takes them

    def begin(self) -> Iterator[Report] | None:
        """Take what waits first, and return its reports; None: nothing waits."""
        self._now = None
        try:
            job = self._waiting.popleft()
        except IndexError:
            return None
        mine = self._aside.pop(job.place, None)
        if mine is None or mine.job is not job:
            mine = _Begun(job, self._train(job))
        self._now, self._since = mine, time.monotonic()
        self._forget()
        return mine.reports

    def end(self, report: object, lacking: int) -> Report | None:
        """Put a group aside after a report of its own, if it is another one's turn.

        Args:
            report: What has been reported.
            lacking: Number of processes that are not ready yet.

        Returns:
            The state with which it waits now; None: it goes on.
        """
        if self._now is None or lacking == 0 or not self._waiting:
            return None
        job, reports = self._now
        if not isinstance(report, Report) or report.places != job.places or report.outcomes:
            return None  # it is at its end, or a part of it is trained by itself
        if time.monotonic() - self._since < TURN_S:
            return None
        with deferred():
            state = reports.send(True)
        job = job._replace(state=state.state)
        self._aside[job.place] = _Begun(job, reports)
        self._waiting.insert(lacking, job)  # so many others come before it is its turn again
        self._now = None
        return state

    def last(self) -> list[Report]:
        """Interrupt what is trained: return its state, if it has one."""
        return [] if self._now is None else last_of(self._now.reports)

    def close(self) -> None:
        """Let go of all that was begun."""
        self._waiting.clear()
        self._forget()

    def _forget(self) -> None:
        """Let go of groups that others have taken."""
        waiting = {id(job) for job in self._waiting.copy()}
        for place, begun in list(self._aside.items()):
            if id(begun.job) not in waiting:
                self._aside.pop(place).reports.close()
