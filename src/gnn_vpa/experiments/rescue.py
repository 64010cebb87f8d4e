"""Cells whose process was killed: each is trained in a process of its own, with no other."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..errors import GnnVpaError
from ..host import Host
from .cell import Cell
from .groups import Group, grouped
from .locks import release_abandoned
from .memory import in_bytes
from .progress import Progress
from .train_group import CHECKPOINTS
from .workers import Order, run_alone

_ATTEMPTS = 2  # to train a cell alone whose process was killed


class Rescue:
    """Trains cells whose process was killed, apart from all others.

    Not in this process: what was too large for that process may be too large for this one, and the
    run would end with it.

    Example:
        >>> from pathlib import Path
        >>> rescue = Rescue(Order([], Path("runs/none"), None, "cpu"), Progress())
        >>> rescue.run([])
        []
        >>> rescue.check()
    """

    def __init__(self, order: Order, progress: Progress) -> None:
        self._order, self._progress = order, progress
        self._kills: Counter[str] = Counter()
        self.lost: list[Group] = []

    def run(self, abandoned: Sequence[Cell]) -> list[Cell]:
        """Train such cells again, from their checkpoints; return what is left to be done."""
        left: list[Cell] = []
        for group in grouped(abandoned, self._order.device, self._order.parts):
            order = replace(self._order, cells=group.cells, folds=1, is_rescue=True)
            if (how := run_alone(order)) is None:
                # They are finished, or an error has kept them from it: that can be told here.
                release_abandoned(self._order.out / CHECKPOINTS, {c.key for c in group.cells})
                left += group.cells
                continue
            self._kills[group.key] += 1
            if self._kills[group.key] < _ATTEMPTS:
                self._progress.note(f"{how}: that cell is trained once more.")
                left += group.cells
            else:
                self._progress.note(f"{how}: that cell is left out.")
                self.lost.append(group)
        return left

    def check(self) -> None:
        """Raise an error if there are cells that could not be trained."""
        if self.lost:
            free = Host.here().memory
            room = "" if free is None else f" ({in_bytes(free)} are free now)"
            raise GnnVpaError(
                f"{', '.join(map(str, self.lost))}: every process that trained it was killed, at "
                f"last with no other beside it, most likely because memory ran out{room}. All "
                "other cells are finished and kept. With more memory, or a larger limit of the "
                "container, the same command goes on."
            )
