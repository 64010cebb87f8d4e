"""Run the jobs of the depth experiment, side by side, and keep what is finished."""

import time
from collections.abc import Generator, Sequence
from functools import partial

from ...training import workers
from ..workers import Team, single_thread
from .job import Job, run_job
from .records import Records
from .train import Outcome


class Watcher:
    """Told of each step of the experiment; does nothing itself, and is there to be derived from.

    Example:
        >>> Watcher().plan([], finished=0)
    """

    def plan(self, jobs: Sequence[Job], finished: int) -> None:
        """These jobs are to be run, and so many are finished from before."""

    def epoch(self, job: Job, done: int) -> None:
        """So many epochs of a job are done; of one in another process only the last is told."""

    def finish(self, job: Job, outcomes: Sequence[Outcome], seconds: float) -> None:
        """A job is finished and recorded."""


def run_jobs(
    jobs: Sequence[Job], records: Records, *, device: str = "cpu", watcher: Watcher | None = None
) -> None:
    """Run jobs, or what is missing of them, and record each as it ends.

    Args:
        jobs: The jobs.
        records: Where the results go.
        device: ``"cpu"``, a process for each core (GNN_VPA_WORKERS overrides it), or ``"cuda"``.
        watcher: Told of each step.
    """
    global _watcher
    watcher = Watcher() if watcher is None else watcher
    left = [rest for job in jobs if (rest := records.missing(job)) is not None]
    watcher.plan(left, finished=len(jobs) - len(left))

    def keep(*reports: workers.Report) -> None:
        for report in reports:
            for outcomes, seconds in report.outcomes or ():
                records.add(left[report.places.start], outcomes, seconds)

    def tell(report: workers.Report) -> None:
        job = left[report.places.start]
        for outcomes, seconds in report.outcomes or ():
            watcher.epoch(job, job.training.epochs)
            watcher.finish(job, outcomes, seconds)

    queue = [workers.Job(place, [job]) for place, job in enumerate(left)]
    _watcher = watcher
    try:
        with single_thread(device):
            count = Team.of(device, len(left)).cells
            workers.train_in_processes(partial(_run, device), queue, count, keep, tell)
    finally:
        _watcher = None


_watcher: Watcher | None = None  # of this process; others are not watched epoch by epoch


def _run(device: str, queued: workers.Job) -> Generator[workers.Report, bool | None]:
    (job,) = queued.trainings
    began = time.monotonic()
    told = None if _watcher is None else partial(_watcher.epoch, job)
    outcomes = run_job(job, device, told)
    done = [(outcomes, time.monotonic() - began)]
    yield workers.Report(range(queued.place, queued.place + 1), job.training.epochs, outcomes=done)
