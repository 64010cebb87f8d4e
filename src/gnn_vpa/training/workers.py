"""Groups of lanes divided among processes of one thread each.

Threads that share small products mostly wait for each other; processes with lanes of their own do
not wait at all. They are started as programs, not forked: a fork of a process whose threads or GPU
are in use may hang, and this way nothing of the caller's script runs twice.
"""

import logging
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import torch

from ..errors import GnnVpaError
from ..host import offer_to_be_killed
from .task import Outcome, Training

_log = logging.getLogger("gnn_vpa")
_KILLS = 3  # processes that one group may end before it is given up


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


class Killed(GnnVpaError):
    """Every process that trained some group was killed."""


class _Lost(NamedTuple):
    """What a process leaves that was killed: the group it trained, if any."""

    job: Job | None


_News = Report | Exception | _Lost


def divided(train: Train, jobs: Sequence[Job], workers: int) -> Generator[Report]:
    """Train groups here and in ``workers - 1`` more processes, and yield what all of them report.

    Closing the iterator ends the processes. An exception in one of them is raised here. What one
    of them was at that is killed goes on from the last state it has reported, with fewer
    processes; `Killed` is raised where the same group ends one process after the other.
    """
    waiting, news = deque(jobs), SimpleQueue[_News]()
    unfinished = sum(len(job.trainings) for job in jobs)
    states: dict[int, dict[str, Any]] = {}
    kills: Counter[int] = Counter()
    processes = max(1, min(workers, len(jobs)))
    with ExitStack() as others:
        for _ in range(processes - 1):
            others.enter_context(_another(train, waiting, news))
        while unfinished > 0:
            mine = train(waiting.popleft()) if waiting else _from(news, wait=True)
            for own in mine:
                for report in (own, *_from(news)):
                    if isinstance(report, _Lost):
                        processes -= 1
                        _warn(processes)
                        if report.job is not None:
                            waiting.append(_again(report.job, states, kills))
                        continue
                    if report.state is not None:
                        states[report.places.start] = report.state
                    unfinished -= len(report.outcomes or ())
                    yield report


def _warn(processes: int) -> None:
    left = "1 process" if processes == 1 else f"{processes} processes"
    _log.warning(
        "A process that trained some of the folds has ended, most likely killed because memory ran "
        "out: going on with %s.", left,
    )  # fmt: skip


def _again(job: Job, states: dict[int, dict[str, Any]], kills: Counter[int]) -> Job:
    """Return what is left to do of a group whose process was killed."""
    kills[job.place] += 1
    if kills[job.place] >= _KILLS:
        raise Killed(
            f"{_KILLS} processes that trained the same folds were killed one after the other, most "
            "likely because memory ran out: use fewer workers, or a machine with more memory. "
            "What a checkpoint has is kept."
        )
    return job._replace(state=states.get(job.place, job.state))


def _from(news: SimpleQueue[_News], wait: bool = False) -> Iterator[Report | _Lost]:
    """Yield what has arrived; with ``wait``, at least one."""
    while True:
        try:
            report = news.get(block=wait)
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
def _another(train: Train, waiting: deque[Job], news: "SimpleQueue[_News]") -> Iterator[None]:
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
    thread = threading.Thread(target=_feed, args=(here, train, waiting, news), daemon=True)
    thread.start()
    try:
        yield
    finally:
        process.kill()
        process.wait()
        thread.join()
        here.close()


def _feed(link: Connection, train: Train, waiting: deque[Job], news: "SimpleQueue[_News]") -> None:
    """Give a process one group after the other, and pass its reports on."""
    job = None
    try:
        link.send_bytes(pickle.dumps(train))
        link.recv_bytes()  # until it is ready others take what is waiting
        while waiting:
            job = waiting.popleft()
            link.send_bytes(pickle.dumps(job))
            while job is not None:
                report = pickle.loads(link.recv_bytes())
                if isinstance(report, Exception) or report.outcomes is not None:
                    job = None
                news.put(report)
    except IndexError:
        pass  # another one was quicker to take the last
    except (EOFError, OSError):
        news.put(_Lost(job))
    except Exception as error:
        news.put(error)


def _work(handle: int) -> None:
    """Train the groups that arrive, in a process of its own."""
    offer_to_be_killed()
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
