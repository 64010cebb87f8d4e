"""Groups of lanes divided among processes of one thread each.

Threads that share small products mostly wait for each other; processes with lanes of their own do
not wait at all. They are started as programs, not forked: a fork of a process whose threads or GPU
are in use may hang, and this way nothing of the caller's script runs twice.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
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
from .interrupts import GRACE_S, Impatience, deferred
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


Train = Callable[[Job], Generator[Report]]


def divided(
    train: Train,
    jobs: Sequence[Job],
    workers: int,
    keep: Callable[..., None],
    tell: Callable[[Report], None],
) -> None:
    """Train groups here and in ``workers - 1`` more processes, which end with this call.

    An exception in one of the processes is raised here. Ctrl-C is raised after all groups in
    progress have handed over their states, a second one at once.

    Args:
        train: Trains a group.
        jobs: The groups.
        workers: Number of processes, this one among them.
        keep: Called with each report, and with the last ones of groups that are interrupted.
        tell: Called with each report after it is kept.
    """
    waiting, reports = deque(jobs), SimpleQueue[Report | Exception]()
    unfinished = sum(len(job.trainings) for job in jobs)
    with ExitStack() as stack:
        others = [
            stack.enter_context(_another(train, waiting, reports))
            for _ in range(min(workers, len(jobs)) - 1)
        ]
        mine, news = _from(reports), deque[Report]()
        try:
            while unfinished > 0:
                mine = train(waiting.popleft()) if waiting else _from(reports, wait=True)
                for own in mine:
                    news.append(own)
                    news.extend(_from(reports))
                    while news:
                        keep(news[0])
                        report = news.popleft()
                        unfinished -= len(report.outcomes or ())
                        tell(report)
        except Impatience:
            raise
        except KeyboardInterrupt:
            try:
                waiting.clear()
                keep(*news, *_last_of(mine), *_last_of_others(others, reports))
            except KeyboardInterrupt:
                raise Impatience from None
            raise


def _last_of(group: Generator[Report]) -> list[Report]:
    """Interrupt a group that waits between two epochs: return its state, if it has one."""
    try:
        return [group.throw(KeyboardInterrupt())]
    except (KeyboardInterrupt, StopIteration):
        return []


def _last_of_others(
    others: "Sequence[_Other]", reports: "SimpleQueue[Report | Exception]"
) -> list[Report]:
    """Interrupt the other processes, and return what they still report."""
    for other in others:
        other.process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + GRACE_S
    for other in others:
        other.feeder.join(max(0.0, deadline - time.monotonic()))
    arrived = []
    while not reports.empty():
        arrived.append(reports.get())
    return [report for report in arrived if isinstance(report, Report)]


def _from(reports: "SimpleQueue[Report | Exception]", wait: bool = False) -> Generator[Report]:
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


class _Other(NamedTuple):
    """A process that trains groups, and the thread here that gives it one after the other."""

    process: subprocess.Popen[bytes]
    feeder: threading.Thread


@contextmanager
def _another(
    train: Train, waiting: deque[Job], reports: "SimpleQueue[Report | Exception]"
) -> Iterator[_Other]:
    """Keep one more process at work on what is waiting; it ends with this one."""
    here, there = Pipe()
    command = f"from {__name__} import _work; _work({there.fileno()})"
    process = subprocess.Popen(
        [sys.executable, "-c", command],
        pass_fds=[there.fileno()],
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)},
        start_new_session=True,  # Ctrl-C is for the process that was started by hand, which
        # then asks for the states of the groups
    )
    there.close()
    thread = threading.Thread(target=_feed, args=(here, train, waiting, reports), daemon=True)
    thread.start()
    try:
        yield _Other(process, thread)
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
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may let it be ignored
    torch.set_num_threads(1)
    link, jobs = Connection(handle), SimpleQueue[Job]()
    train: Train = pickle.loads(link.recv_bytes())
    link.send_bytes(b"ready")
    threading.Thread(target=_receive, args=(link, jobs), daemon=True).start()
    mine: Generator[Report] | None = None
    try:
        while True:
            try:
                mine = train(jobs.get())
                for report in mine:
                    with deferred():  # a report is sent whole
                        link.send_bytes(pickle.dumps(report))
            except Exception as error:
                link.send_bytes(_pickled(error))
    except KeyboardInterrupt:
        for report in [] if mine is None else _last_of(mine):
            link.send_bytes(pickle.dumps(report))


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
