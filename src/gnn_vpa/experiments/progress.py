"""What a run tells about itself while it goes on."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..training import Outcome
from ..training.task import Curves
from .cell import Cell
from .groups import Group


class Grown(NamedTuple):
    """The curves of a fold that is being trained, as far as they go.

    Attributes:
        cell: The cell.
        fold: The fold, counted from 0 in every repeat.
        curves: Training loss, validation and test score by epoch, ``[3, epochs]``. The last loss of
            a fold that has diverged is not finite.

    Example:
        >>> import numpy as np
        >>> from gnn_vpa.training import Task
        >>> grown = Grown(Cell("MUTAG", Task("gin", "vpa")), 3, np.ones((3, 20), np.float32))
        >>> grown.curves.shape[1]
        20
    """

    cell: Cell
    fold: int
    curves: Curves


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

    def curves(self, group: Group, grown: Sequence[Grown]) -> None:
        """Some of their folds have come so far; told about once a second."""

    def tell(
        self,
        worker: str,
        group: Group | None,
        epoch: int | None = None,
        grown: Iterable[Grown] = (),
        *,
        device: str = "",
    ) -> None:
        """A worker on another machine is at this group; None: it is idle, or gone."""

    def finish(self, cell: Cell, outcomes: Sequence[Outcome], seconds: float) -> None:
        """One of them is finished and recorded; of the time it has its share."""

    def elsewhere(self, cell: Cell) -> None:
        """Another process has finished it."""

    def wait(self, cells: Sequence[Cell]) -> None:
        """All that is left is being run by other processes."""

    def note(self, text: str) -> None:
        """Something worth a line."""


class Several(Progress):
    """Tells several of what it is told.

    Example:
        >>> class Lines(Progress):
        ...     def note(self, text):
        ...         print(text)
        >>> Several(Lines(), Progress(), Lines()).note("done")
        done
        done
    """

    def __init__(self, *told: Progress) -> None:
        self._told = told

    def plan(self, pending: Sequence[Cell], finished: int) -> None:
        """Tell what is to be run."""
        for each in self._told:
            each.plan(pending, finished)

    def start(self, group: Group) -> None:
        """Tell what is being run."""
        for each in self._told:
            each.start(group)

    def epochs(self, group: Group, done: int) -> None:
        """Tell how far it is."""
        for each in self._told:
            each.epochs(group, done)

    def curves(self, group: Group, grown: Sequence[Grown]) -> None:
        """Tell what its folds have come to."""
        for each in self._told:
            each.curves(group, grown)

    def tell(
        self,
        worker: str,
        group: Group | None,
        epoch: int | None = None,
        grown: Iterable[Grown] = (),
        *,
        device: str = "",
    ) -> None:
        """Tell what a worker is at."""
        for each in self._told:
            each.tell(worker, group, epoch, grown, device=device)

    def finish(self, cell: Cell, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Tell what came out."""
        for each in self._told:
            each.finish(cell, outcomes, seconds)

    def elsewhere(self, cell: Cell) -> None:
        """Tell what is finished elsewhere."""
        for each in self._told:
            each.elsewhere(cell)

    def wait(self, cells: Sequence[Cell]) -> None:
        """Tell what is waited for."""
        for each in self._told:
            each.wait(cells)

    def note(self, text: str) -> None:
        """Tell what is worth a line."""
        for each in self._told:
            each.note(text)
