"""How far a run is: bars in a terminal, a line for each finished cell elsewhere."""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, stdev
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from ..escape import plain, printable
from ..experiments import Cell, Forecast, Group, Progress, fold_scores, format_duration
from ..experiments.progress import Grown
from ..training import METRICS, Outcome
from ._console import console, say

# A grid of more cells has no line for each: one for each percent, and one a minute.
_EACH = 200
_PAUSE_S = 60.0
_WORKERS = 12  # of other machines that are shown one by one


class Lines(Progress):
    """Plain lines on standard error: one for each cell, or in a large grid for many at a time.

    Args:
        out: The run's folder, whose finished cells say how long others will take.
        device: Where it runs.
        speed: How much faster all processes on GPUs are than one, see `Forecast`.

    Example:
        >>> Lines("runs/none").time_left()
        ''
    """

    def __init__(self, out: str | Path, device: str = "cpu", speed: float = 1.0) -> None:
        self._out = out
        self._forecast = Forecast(out, device, speed)
        self._total = self._done = 0
        self._every = 1  # cells to a line
        self._told, self._told_at = 0, time.monotonic()  # how many were done in the last line
        self._waiting = False
        self._at: dict[str, str] = {}  # what workers on other machines are at
        self._listed_at = self._told_at

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is to be put away."""

    def plan(self, pending: Sequence[Cell], finished: int) -> None:
        """Say what is done and what remains."""
        self._total = len(pending) + finished
        self._done = self._told = finished
        self._told_at = time.monotonic()
        self._every = 1 if len(pending) <= _EACH else -(-len(pending) // 100)
        self._forecast.plan(pending)
        kept = f", {finished:,} finished before" if finished else ""
        cells = "1 cell" if len(pending) == 1 else f"{len(pending):,} cells"
        left = self.time_left()
        basis = " if this GPU is as fast as an H200" if left and self._forecast.is_typical else ""
        self.note(f"{cells} to run{kept}{left}{basis}.")

    def start(self, group: Group) -> None:
        """Say what is trained at once, where that is more than one cell."""
        if (several := len(group.cells)) > 1:
            trainings = sum(cell.trainings for cell in group.cells)
            self.note(f"{group}: {several} cells, {trainings} trainings together.")

    def tell(
        self,
        worker: str,
        group: Group | None,
        epoch: int | None = None,
        grown: Iterable[Grown] = (),
        *,
        device: str = "",
    ) -> None:
        """Say once a minute what workers on other machines are at."""
        if group is None:
            self._at.pop(worker, None)
            return
        epochs = f", epoch {epoch} of {group.protocol.epochs}" if epoch and group.protocol else ""
        self._at[worker] = f"{group}{epochs}"
        if time.monotonic() - self._listed_at >= _PAUSE_S:
            self._listed_at = time.monotonic()
            shown = [f"{name}: {what}" for name, what in [*self._at.items()][:_WORKERS]]
            more = len(self._at) - len(shown)
            self.note("; ".join([*shown, *([f"and {more} more"] if more else [])]))

    def finish(self, cell: Cell, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Say what came out."""
        if self._is_told(cell):
            reached = [outcome.test_score for outcome in outcomes if outcome.diverged_epoch is None]
            self._tell(cell, f"{_came_out(reached, cell)}, {format_duration(seconds)}")

    def elsewhere(self, cell: Cell) -> None:
        """Say what came out in a process beside this one."""
        if self._is_told(cell):
            self._tell(cell, _came_out(fold_scores(self._out, cell), cell))

    def wait(self, cells: Sequence[Cell]) -> None:
        """Say once what is waited for."""
        if not self._waiting:
            self._waiting = True
            which = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            self.note(f"Waiting for {which} that other processes run.")

    def note(self, text: str) -> None:
        """Write a line."""
        say(text, err=True)

    def time_left(self) -> str:
        """Return the expected time as the end of a sentence, where anything is known."""
        left = self._forecast.left()
        return f"; {left} left" if left else ""

    def _is_told(self, cell: Cell) -> bool:
        """Count a finished cell, and return whether it is time for a line."""
        self._forecast.finish(cell)
        self._done += 1
        is_due = self._done - self._told >= self._every or self._done == self._total
        return is_due or time.monotonic() - self._told_at >= _PAUSE_S

    def _tell(self, cell: Cell, came_out: str) -> None:
        more, self._told, self._told_at = self._done - self._told, self._done, time.monotonic()
        place, rest = f"[{self._done}/{self._total}]", self.time_left()
        if self._every == 1:
            self.note(f"{place} {cell}: {came_out}{rest}")
            return
        rate = f"; {self._forecast.a_minute():,.0f} cells a minute"
        several = f"{more:,} more cells, the last: " if more > 1 else ""
        self.note(f"{place} {several}{cell}: {came_out}{rate}{rest}")


class Terminal(Lines):
    """Bars for cells and epochs, with the time left.

    Example:
        >>> isinstance(Terminal("runs/none"), Lines)
        True
    """

    def __init__(self, out: str | Path, device: str = "cpu", speed: float = 1.0) -> None:
        super().__init__(out, device, speed)
        self._bars = Bars(
            TextColumn("{task.description}", markup=False),  # a data set's name is in it
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=console(stderr=True),
            transient=True,
        )
        self._cells = self._bars.add_task("cells", total=None, left="")
        self._epochs: TaskID | None = None
        self._workers: dict[str, TaskID] = {}
        self._since: tuple[float, int] | None = None

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bars away."""
        self._bars.stop()

    def plan(self, pending: Sequence[Cell], finished: int) -> None:
        """Show what is done and what remains."""
        super().plan(pending, finished)
        self._show_cells()

    def start(self, group: Group) -> None:
        """Show a bar for the epochs of what is run at once."""
        epochs = group.protocol.epochs if group.protocol else 1
        self._since = None
        self._epochs = self._bars.add_task(plain(str(group)), total=epochs, left="")

    def epochs(self, group: Group, done: int) -> None:
        """Move the bar."""
        if self._epochs is None or group.protocol is None:
            return
        now = time.monotonic()
        # A training that goes on begins in the middle: its pace counts from there.
        began, first = self._since = self._since or (now, done)
        pace = (now - began) / max(done - first, 1)
        left = (
            format_duration(pace * (group.protocol.epochs - done)) + " left" if done > first else ""
        )
        self._bars.update(self._epochs, completed=done, left=left)

    def tell(
        self,
        worker: str,
        group: Group | None,
        epoch: int | None = None,
        grown: Iterable[Grown] = (),
        *,
        device: str = "",
    ) -> None:
        """Show a bar for what each worker on another machine is at."""
        if group is None:
            if (bar := self._workers.pop(worker, None)) is not None:
                self._bars.remove_task(bar)
            return
        if worker not in self._workers and len(self._workers) < _WORKERS:
            epochs = group.protocol.epochs if group.protocol else 1
            text = plain(f"{worker}: {group}")
            self._workers[worker] = self._bars.add_task(text, total=epochs, left="")
        if epoch is not None and worker in self._workers:
            self._bars.update(self._workers[worker], completed=epoch)

    def finish(self, cell: Cell, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Show what came out above the bars."""
        if self._epochs is not None:
            self._bars.remove_task(self._epochs)
            self._epochs = None
        super().finish(cell, outcomes, seconds)

    def note(self, text: str) -> None:
        """Write a line above the bars."""
        self._bars.console.print(printable(text))
        self._show_cells()

    def time_left(self) -> str:
        """Return what the lines say, and show it beside the bar until the next one."""
        left = super().time_left()
        self._bars.update(self._cells, left=left.removeprefix("; "))
        return left

    def _is_told(self, cell: Cell) -> bool:
        is_told = super()._is_told(cell)
        self._show_cells()
        return is_told

    def _show_cells(self) -> None:
        self._bars.update(self._cells, total=self._total, completed=self._done)


@contextmanager
def log_noted(progress: Progress) -> Iterator[None]:
    """Write what the library logs among the progress: of each data set once what merging saves.

    Example:
        >>> class Printed(Progress):
        ...     def note(self, text):
        ...         print(text)
        >>> with log_noted(Printed()):
        ...     for model in ("GIN", "GCN"):
        ...         logging.getLogger("gnn_vpa").info("%s: 9 of 90 nodes remain", "MUTAG")
        MUTAG: 9 of 90 nodes remain
    """
    log = logging.getLogger("gnn_vpa")
    handler, level = _Noting(progress), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class _Noting(logging.Handler):
    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.INFO)
        self._progress = progress
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        # Information is about a data set, whose name comes first, and much alike for all models.
        about = text.partition(": ")[0] if record.levelno < logging.WARNING else text
        if about not in self._told:
            self._told.add(about)
            self._progress.note(text)


def progress_of(out: str | Path, device: str, speed: float = 1.0) -> Lines:
    """Return what shows a run's progress best where standard error goes.

    Example:
        >>> type(progress_of("runs/none", "cpu")).__name__
        'Lines'
    """
    return (Terminal if console(stderr=True).is_terminal else Lines)(out, device, speed)


def _came_out(reached: Sequence[float], cell: Cell) -> str:
    """Return the mean over the folds that came to a score, and how many, if not all."""
    if not reached:
        return "diverged"
    metric = METRICS[cell.metric]
    scores = [100 * score if metric.is_share else score for score in reached]
    digits = ".1f" if metric.is_share else ".3g"
    spread = f" ± {stdev(scores):{digits}}" if len(scores) > 1 else ""
    lost = f" ({len(reached)} of {cell.folds} folds)" if len(reached) < cell.folds else ""
    unit = " %" if metric.is_share else ""
    named = "" if metric.name == "accuracy" else f"{metric.title} "
    return f"{named}{fmean(scores):{digits}}{spread}{unit}{lost}"
