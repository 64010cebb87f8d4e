"""A group that is to be trained, and what is reported of it."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from ..errors import UsageError


class NotHereError(UsageError):
    """This process has another model of the same name: others may have the right one."""


class Job(NamedTuple):
    """A group that is to be trained."""

    place: int  # of its first training among all
    trainings: Sequence[Any]
    state: dict[str, Any] | None = None  # where it was when it was interrupted
    pause: float = float("inf")  # seconds between two states that are reported
    is_watched: bool = False  # whether reports are to have the curves so far, now and then

    @property
    def places(self) -> range:
        """The places of its trainings among all."""
        return range(self.place, self.place + len(self.trainings))


class Report(NamedTuple):
    """How far a group is."""

    places: range  # of its trainings among all
    epoch: int
    state: dict[str, Any] | None = None
    outcomes: list[Any] | None = None  # in its last report: one for each training
    curves: list[Any] | None = None  # now and then, those of each training so far


Train = Callable[[Job], Generator[Report, bool | None]]
"""Trains a group. Sent True in return for a report without outcomes, it reports its state."""


def last_of(group: Generator[Report, Any]) -> list[Report]:
    """Interrupt a group that waits between two epochs: return its state, if it has one."""
    try:
        return [group.throw(KeyboardInterrupt())]
    except (KeyboardInterrupt, StopIteration):
        return []
