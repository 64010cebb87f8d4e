"""What a run tells about itself while it goes on."""

from collections.abc import Sequence

from ..training import Outcome
from .cell import Cell
from .groups import Group


class Progress:
    """Told of each step of a run; does nothing itself, and is there to be derived from.

    Example:
        >>> class Lines(Progress):
        ...     def note(self, text):
        ...         print(text)
        >>> Lines().note("COLLAB is left out")
        COLLAB is left out
    """

    def plan(self, pending: Sequence[Cell], finished: int) -> None:
        """So many cells are finished from before, and these are to be run."""

    def start(self, group: Group) -> None:
        """Cells are being run, several at once on a GPU."""

    def epochs(self, group: Group, done: int) -> None:
        """So many of their epochs are done."""

    def finish(self, cell: Cell, outcomes: Sequence[Outcome], seconds: float) -> None:
        """One of them is finished and recorded; of the time it has its share."""

    def elsewhere(self, cell: Cell) -> None:
        """Another process has finished it."""

    def wait(self, cells: Sequence[Cell]) -> None:
        """All that is left is being run by other processes."""

    def note(self, text: str) -> None:
        """Something worth a line."""
