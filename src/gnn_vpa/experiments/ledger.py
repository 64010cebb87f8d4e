"""Whose a cell is, and which cells are finished, when several processes share a run."""

from collections.abc import Container, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from .cell import Cell
from .groups import Group, first_fold
from .locks import check_still_mine, is_abandoned, try_lock
from .progress import Progress
from .store import Result, Store
from .train_group import CHECKPOINTS


@dataclass
class Ledger:
    """The cells that one process of a run may train, and what has become of them.

    Attributes:
        store: The results.
        cells: The cells to be trained.
        out: Folder of the run.
        progress: Told of what is finished.
        is_rescue: Whether cells count too whose last process was killed.
    """

    store: Store
    cells: Sequence[Cell]
    out: Path
    progress: Progress
    is_rescue: bool = False
    finished: set[str] = field(default_factory=set)  # keys of cells, as far as known here
    latest: int = 0  # number of the last cell that is known to be finished

    def __post_init__(self) -> None:
        # By key: cells of which the progress has not been told yet.
        self.unreported = {cell.key: cell for cell in self.cells}
        self.checkpoints = self.out / CHECKPOINTS

    def claim(self, cell: Cell, locks: ExitStack, taken: list[Cell], abandoned: list[Cell]) -> bool:
        """Return whether a cell is to be run here: it is not finished, nor taken by others.

        Args:
            cell: The cell.
            locks: Holds the lock of a cell that is to be run here.
            taken: Receives the cell where another process runs it.
            abandoned: Receives it where the process that ran it was killed.
        """
        if cell.key in self.finished:
            return False
        path = self.checkpoints / f"{cell.key}.lock"
        if not self.is_rescue and is_abandoned(path):
            if not self.store.is_finished(cell.key):
                abandoned.append(cell)
            return False
        if not locks.enter_context(try_lock(path)):
            taken.append(cell)
            return False
        return not self.store.is_finished(cell.key)

    def claim_group(
        self,
        group: Group,
        locks: ExitStack,
        taken: list[Cell],
        abandoned: list[Cell],
        is_idle: bool = False,
    ) -> list[Cell]:
        """Return the cells of a group that are to be run here; for the rest see `claim`.

        Whoever has the first takes the others too: two processes that come at the same time do not
        divide a group between them. One that is idle takes what it can have.
        """
        mine: list[Cell] = []
        for place, cell in enumerate(group.cells, 1):
            if self.claim(cell, locks, taken, abandoned):
                mine.append(cell)
            elif taken[-1:] == [cell] and not mine and not is_idle:
                taken += group.cells[place:]
                break
        return mine

    def look_around(self) -> None:
        """Take note of what is finished, and tell of what other processes have done."""
        for number, key in self.store.finished_since(self.latest):
            self.latest = number
            self.finished.add(key)
            if (cell := self.unreported.pop(key, None)) is not None:
                self.progress.elsewhere(cell)

    def record(self, *entries: "Entry") -> None:
        """Record what came of groups, in one transaction, and tell of it."""
        with self.store.together():
            for entry in entries:
                self.store.record(
                    entry.results,
                    session=entry.session,
                    seconds=entry.alone,
                    device=entry.device,
                )
        for entry in entries:
            self._tell(entry)

    def _tell(self, entry: "Entry") -> None:
        cells = entry.group.cells
        for cell in cells:
            check_still_mine(self.checkpoints / f"{cell.key}.lock")
        tidy(self.checkpoints, {cell.key for cell in cells})
        for cell, outcomes, *_ in entry.results:
            del self.unreported[cell.key]
            for outcome in outcomes:
                if (epoch := outcome.diverged_epoch) is not None:
                    fold = outcome.fold - first_fold(cell)
                    self.progress.note(f"{cell}: fold {fold} diverged in epoch {epoch}")
            self.progress.finish(cell, outcomes, entry.share)


class Entry(NamedTuple):
    """What came of a group.

    Attributes:
        group: The cells.
        results: What came of each.
        session: Whose work it was.
        device: Where.
        seconds: What all of them took together.
        folds: Number of processes that divided their folds.

    Example:
        >>> Entry(Group(()), [], session=1, device="cpu", seconds=6.0).folds
        1
    """

    group: Group
    results: Sequence[Result]
    session: int
    device: str
    seconds: float
    folds: int = 1

    @property
    def share(self) -> float:
        """A cell's share of the seconds."""
        return self.seconds / len(self.group.cells)

    @property
    def alone(self) -> float:
        """The same for one process: other cells may have fewer to divide their folds."""
        return self.share * (1 if self.group.protocol is None else self.folds)


def tidy(checkpoints: Path, finished: Container[str]) -> None:
    """Remove what finished cells leave, also a lock whose owner was killed.

    Example:
        >>> tidy(Path("no/such/folder"), {"350999e7"})
    """
    for path in checkpoints.glob("*"):
        if path.name.partition(".")[0] in finished:
            path.unlink(missing_ok=True)
