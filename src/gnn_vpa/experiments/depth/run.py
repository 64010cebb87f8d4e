"""Run the jobs of the depth experiment, a process for each core, and keep what is finished."""

import multiprocessing
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from typing import Any

import torch

from ...errors import GnnVpaError
from ..workers import Team, single_thread
from .job import Job, run_job
from .records import Records
from .train import Outcome

_GLANCE = 0.5  # seconds between two looks at how far the processes are


class Watcher:
    """Told of each step of the experiment; does nothing itself, and is there to be derived from.

    Example:
        >>> Watcher().plan([], finished=0)
    """

    def plan(self, jobs: Sequence[Job], finished: int) -> None:
        """These jobs are to be run, and so many are finished from before."""

    def epoch(self, job: Job, done: int) -> None:
        """So many epochs of a job are done."""

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
    watcher = Watcher() if watcher is None else watcher
    left = [rest for job in jobs if (rest := records.missing(job)) is not None]
    watcher.plan(left, finished=len(jobs) - len(left))
    count = Team.of(device, len(left)).cells
    work = _alone if count == 1 else _together
    for job, outcomes, seconds in work(left, device, count, watcher):
        records.add(job, outcomes, seconds)
        watcher.finish(job, outcomes, seconds)


Done = tuple[Job, list[Outcome], float]


def _alone(jobs: Sequence[Job], device: str, _: int, watcher: Watcher) -> Iterator[Done]:
    with single_thread(device):
        for job in jobs:
            began = time.monotonic()

            def told(epochs: int, job: Job = job) -> None:
                watcher.epoch(job, epochs)

            yield job, run_job(job, device, told), time.monotonic() - began


def _together(jobs: Sequence[Job], device: str, count: int, watcher: Watcher) -> Iterator[Done]:
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    epochs = context.SimpleQueue()
    pool = ProcessPoolExecutor(count, context, initializer=_prepare, initargs=(epochs,))
    try:
        running: dict[Future[tuple[list[Outcome], float]], Job] = {
            pool.submit(_run, number, job, device): job for number, job in enumerate(jobs)
        }
        while running:
            ended, _ = wait(running, timeout=_GLANCE, return_when=FIRST_COMPLETED)
            while not epochs.empty():
                number, done = epochs.get()
                watcher.epoch(jobs[number], done)
            for future in ended:
                job = running.pop(future)
                yield job, *future.result()
    except BrokenExecutor as error:
        raise GnnVpaError(
            "a process was ended from outside, perhaps for want of memory. What is finished is "
            "kept: run it again, with GNN_VPA_WORKERS=1 if need be."
        ) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()


_epochs: Any = None  # of a process: where it tells how far it is


def _prepare(epochs: Any) -> None:
    global _epochs
    _epochs = epochs
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told too, and ends this one
    torch.set_num_threads(1)


def _run(number: int, job: Job, device: str) -> tuple[list[Outcome], float]:
    began = time.monotonic()
    with single_thread(device):
        outcomes = run_job(job, device, lambda done: _epochs.put((number, done)))
    return outcomes, time.monotonic() - began
