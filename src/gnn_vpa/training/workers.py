"""Groups of lanes divided among processes of one thread each.

Threads that share small products mostly wait for each other; processes with lanes of their own do
not wait at all. They are started as programs, not forked: a fork of a process whose threads or GPU
are in use may hang, and this way nothing of the caller's script runs twice.
"""

import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import torch

from ..errors import GnnVpaError
from .task import Outcome, Training


class Job(NamedTuple):
    """A group that is to be trained."""

    place: int  # of its first training among all
    trainings: Sequence[Training]
    state: dict[str, Any] | None = None  # where it was when it was interrupted
    pause: float = float("inf")  # seconds between two states that are reported


class Report(NamedTuple):
    """How far a group is."""

    places: range  # of its trainings among all
    epoch: int
    state: dict[str, Any] | None = None
    outcomes: list[Outcome] | None = None  # in its last report


Train = Callable[[Job], Iterator[Report]]


def divided(train: Train, jobs: Sequence[Job], workers: int) -> Generator[Report]:
    """Train groups here and in ``workers - 1`` more processes, and yield what all of them report.

    Closing the iterator ends the processes. An exception in one of them is raised here.
    """
    waiting, reports = deque(jobs), SimpleQueue[Report | Exception]()
    unfinished = sum(len(job.trainings) for job in jobs)
    with ExitStack() as others:
        for _ in range(min(workers, len(jobs)) - 1):
            others.enter_context(_another(train, waiting, reports))
        while unfinished > 0:
            mine = train(waiting.popleft()) if waiting else _from(reports, wait=True)
            for own in mine:
                for report in (own, *_from(reports)):
                    unfinished -= len(report.outcomes or ())
                    yield report


def _from(reports: "SimpleQueue[Report | Exception]", wait: bool = False) -> Iterator[Report]:
    """Yield what has arrived; with ``wait``, at least one."""
    while True:
        try:
            report = reports.get(block=wait)
        except Empty:
            return
        if isinstance(report, Exception):
            raise report
        yield report
        wait = False


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use a single thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _another(
    train: Train, waiting: deque[Job], reports: "SimpleQueue[Report | Exception]"
) -> Iterator[None]:
    """Keep one more process at work on what is waiting; it ends with this one."""
    here, there = Pipe()
    command = f"from {__name__} import _work; _work({there.fileno()})"
    process = subprocess.Popen(
        [sys.executable, "-c", command],
        pass_fds=[there.fileno()],
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
        start_new_session=True,  # Ctrl-C is for the process that was started by hand
    )
    there.close()
    thread = threading.Thread(target=_feed, args=(here, train, waiting, reports), daemon=True)
    thread.start()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        thread.join()
        here.close()


def _feed(
    link: Connection,
    train: Train,
    waiting: deque[Job],
    reports: "SimpleQueue[Report | Exception]",
) -> None:
    """Give a process one group after the other, and pass its reports on."""
    try:
        link.send_bytes(pickle.dumps(train))
        link.recv_bytes()  # until it is ready others take what is waiting
        while waiting:
            link.send_bytes(pickle.dumps(waiting.popleft()))
            done = False
            while not done:
                report = pickle.loads(link.recv_bytes())
                reports.put(report)
                done = isinstance(report, Exception) or report.outcomes is not None
    except IndexError:
        pass  # another one was quicker to take the last
    except (EOFError, OSError):
        reports.put(
            GnnVpaError(
                "a process that trained lanes was ended from outside, perhaps for want of memory: "
                "start again with fewer workers. What a checkpoint has is kept."
            )
        )
    except Exception as error:
        reports.put(error)


def _work(handle: int) -> None:
    """Train the groups that arrive, in a process of its own."""
    torch.set_num_threads(1)
    link, jobs = Connection(handle), SimpleQueue[Job]()
    train: Train = pickle.loads(link.recv_bytes())
    link.send_bytes(b"ready")
    threading.Thread(target=_receive, args=(link, jobs), daemon=True).start()
    while True:
        try:
            for report in train(jobs.get()):
                link.send_bytes(pickle.dumps(report))
        except Exception as error:
            link.send_bytes(_pickled(error))


def _receive(link: Connection, jobs: SimpleQueue[Job]) -> None:
    while True:
        try:
            jobs.put(pickle.loads(link.recv_bytes()))
        except (EOFError, OSError):
            os._exit(1)  # the sender is gone, however that came


def _pickled(error: Exception) -> bytes:
    """Return an exception to be raised elsewhere, in words where it cannot travel."""
    error.add_note("In a process beside this one:\n" + traceback.format_exc())
    try:
        content = pickle.dumps(error)
        pickle.loads(content)
    except Exception:
        return pickle.dumps(GnnVpaError(f"{type(error).__name__}: {error}"))
    return content
