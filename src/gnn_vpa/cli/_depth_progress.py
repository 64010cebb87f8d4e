"""How far the depth experiment is: a bar in a terminal, a line for each job elsewhere."""

import time
from collections.abc import Sequence
from typing import Self

from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from ..escape import printable
from ..experiments import format_duration
from ..experiments.depth import Job, Watcher
from ..experiments.depth.train import Outcome
from ._console import console, say


class Lines(Watcher):
    """Plain lines on standard error.

    Example:
        >>> Lines().left()
        ''
    """

    def __init__(self) -> None:
        self._work: dict[Job, float] = {}
        self._done: dict[Job, float] = {}  # the share of each job
        self._finished = self._total = 0
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is to be put away."""

    def plan(self, jobs: Sequence[Job], finished: int) -> None:
        """Say what is done and what remains."""
        self._work = {job: job.work() for job in jobs}
        self._finished, self._total = finished, finished + len(jobs)
        self._began = time.monotonic()
        networks = sum(len(job.variants) for job in jobs)
        kept = f", {finished} finished before" if finished else ""
        self.say(f"{len(jobs)} jobs to run, {networks} networks{kept}.")

    def epoch(self, job: Job, done: int) -> None:
        """Note how far a job is."""
        self._done[job] = done / job.training.epochs

    def finish(self, job: Job, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Say what came out."""
        self._done[job] = 1.0
        self._finished += 1
        learnt = [o for o in outcomes if not o.diverged]
        best = max(learnt, key=lambda o: o.trained.val_score, default=None)
        result = "none is finite"
        if best is not None:
            result = f"up to {100 * best.trained.test_score:.1f} % ({best.variant})"
        place = f"[{self._finished}/{self._total}]"
        self.say(f"{place} {job}: {result}, {format_duration(seconds)}{self.left()}")

    def share(self) -> float:
        """Return which part of the work is done."""
        done = sum(self._work[job] * part for job, part in self._done.items())
        return done / sum(self._work.values()) if done else 0.0

    def left(self) -> str:
        """Return the expected time as the end of a sentence, where anything is known."""
        share = self.share()
        if not 0.02 < share < 1:
            return ""
        spent = time.monotonic() - self._began
        return f"; about {format_duration(spent / share * (1 - share))} left"

    def say(self, text: str) -> None:
        """Write a line."""
        say(text, err=True)


class Terminal(Lines):
    """One bar for the whole experiment, with the time left.

    Example:
        >>> isinstance(Terminal(), Lines)
        True
    """

    def __init__(self) -> None:
        super().__init__()
        self._bars = Bars(
            TextColumn("depth"),
            BarColumn(),
            TextColumn("{task.percentage:.0f} %{task.fields[left]}"),
            console=console(stderr=True),
            transient=True,
        )
        self._bar: TaskID = self._bars.add_task("depth", total=1.0, left="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        self._bars.stop()

    def epoch(self, job: Job, done: int) -> None:
        """Move the bar."""
        super().epoch(job, done)
        self._show()

    def finish(self, job: Job, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Write what came out above the bar, and move it."""
        super().finish(job, outcomes, seconds)
        self._show()

    def _show(self) -> None:
        self._bars.update(self._bar, completed=self.share(), left=self.left())

    def say(self, text: str) -> None:
        """Write a line above the bar."""
        self._bars.console.print(printable(text))


def watching() -> Lines:
    """Return what shows the progress best where standard error goes.

    Example:
        >>> type(watching()).__name__
        'Lines'
    """
    return Terminal() if console(stderr=True).is_terminal else Lines()
