"""Groups of trainings divided among processes of one thread each.

Threads that share small products mostly wait for each other; processes with lanes of their own do
not wait at all.
"""

import logging
import os
import pickle
import subprocess
import tempfile
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import IO, Any, NamedTuple

import torch

from .. import processes
from ..errors import GnnVpaError
from ..host import offer_to_be_killed
from .interrupts import GRACE_S, Impatience, deferred
from .job import Job as Job
from .job import NotHereError, Train, last_of
from .job import Report as Report
from .turns import Turns

_log = logging.getLogger("gnn_vpa")
MAX_KILLS = 3  # processes that one group may end before it is given up


class Killed(GnnVpaError):
    """Every process that trained some group was killed."""


class _Lost(NamedTuple):
    """What a process leaves that was killed, or cannot train: the group it had, if any."""

    job: Job | None
    why: str = ""  # it cannot train
    how: str = ""  # the process has ended


_News = Report | Exception | _Lost


def train_in_processes(
    train: Train,
    jobs: Sequence[Job],
    workers: int,
    keep: Callable[..., None],
    tell: Callable[[Report], None],
    ahead: "deque[Started] | None" = None,
) -> None:
    """Train groups here and in ``workers - 1`` more processes, which end with this call.

    Until the others are ready, groups are trained here in turns, see `Turns`.

    An exception in one of the processes is raised here. Ctrl-C is raised after all groups in
    progress have handed over their states, a second one at once. What a process was at that is
    killed goes on from the last state it has reported, with fewer processes; ``Killed`` is raised
    where the same group ends one process after the other.

    Args:
        train: Trains a group.
        jobs: The groups.
        workers: Number of processes, this one among them.
        keep: Called with each report, and with the last ones of groups that are interrupted.
        tell: Called with each report after it is kept.
        ahead: Processes that were started before, see `started_ahead`; they are used first.
    """
    ahead = deque() if ahead is None else ahead
    waiting, news = deque(jobs), SimpleQueue[_News]()
    unfinished = sum(len(job.trainings) for job in jobs)
    states: dict[int, dict[str, Any]] = {}
    kills: Counter[int] = Counter()
    count = max(1, min(workers, len(jobs)))
    with ExitStack() as stack:
        others = [
            stack.enter_context(_worker(train, waiting, news, ahead)) for _ in range(count - 1)
        ]
        turns = stack.enter_context(closing(Turns(train, waiting)))
        arrived = deque[Report | _Lost]()
        try:
            while unfinished > 0:
                for first in turns.begin() or _from(news, wait=True):
                    arrived.append(first)
                    arrived.extend(_from(news))
                    while arrived:
                        report = arrived[0]
                        if isinstance(report, _Lost):
                            arrived.popleft()
                            count -= 1
                            _warn(count, report)
                            if report.job is not None and report.why:
                                waiting.append(report.job)
                            elif report.job is not None:
                                waiting.append(_again(report.job, states, kills))
                            continue
                        keep(report)
                        arrived.popleft()
                        if report.state is not None:
                            states[report.places.start] = report.state
                        unfinished -= len(report.outcomes or ())
                        tell(report)
                    lacking = sum(not other.is_ready.is_set() for other in others)
                    if aside := turns.end(first, lacking):
                        keep(aside)  # whoever takes it may be interrupted before its first report
                        states.pop(aside.places.start, None)  # it waits with a later one
                        break
        except Impatience:
            raise
        except KeyboardInterrupt:
            try:
                here = turns.last()
                waiting.clear()
                whole = [report for report in arrived if isinstance(report, Report)]
                keep(*whole, *here, *_last_of_others(others, news))
            except KeyboardInterrupt:
                raise Impatience from None
            raise


def _last_of_others(others: "Sequence[_Other]", news: SimpleQueue[_News]) -> list[Report]:
    """Interrupt the other processes, and return what they still report."""
    deadline = time.monotonic() + GRACE_S
    processes.interrupt([other.process for other in others], GRACE_S)
    for other in others:
        other.feeder.join(max(0.0, deadline - time.monotonic()))
    arrived = []
    while not news.empty():
        arrived.append(news.get())
    return [report for report in arrived if isinstance(report, Report)]


def _warn(count: int, lost: _Lost) -> None:
    left = "1 process" if count == 1 else f"{count} processes"
    if lost.why:
        _log.warning("Going on with %s. In another one: %s", left, lost.why)
        return
    _log.warning("A process %s: going on with %s.", lost.how, left)


def _again(job: Job, states: dict[int, dict[str, Any]], kills: Counter[int]) -> Job:
    """Return what is left to do of a group whose process was killed."""
    kills[job.place] += 1
    if kills[job.place] >= MAX_KILLS:
        raise Killed(
            f"{MAX_KILLS} processes that trained the same folds were killed one after the other, "
            "most likely because memory ran out: use fewer workers, or a machine with more memory. "
            "What a checkpoint has is kept."
        )
    return job._replace(state=states.get(job.place, job.state))


def _from(news: SimpleQueue[_News], wait: bool = False) -> Generator[Report | _Lost]:
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


class _Other(NamedTuple):
    """A process that trains groups, and the thread here that gives it one after the other."""

    process: subprocess.Popen[bytes]
    feeder: threading.Thread
    is_ready: threading.Event  # or gone


class Started(NamedTuple):
    """A process that waits for something to train, and the way to it."""

    process: subprocess.Popen[bytes]
    link: Connection
    errors: IO[bytes]

    def how_ended(self, is_ready: bool) -> str:
        """Wait for the end of the process, and say in words how it came."""
        code = self.process.wait()
        if is_ready:
            return processes.how_ended(code, " while it trained some of the folds")
        self.errors.seek(0)
        last = self.errors.read().decode(errors="replace").rstrip().rpartition("\n")[2]
        return processes.how_ended(code, " before it was ready", last)


@contextmanager
def started_ahead(count: int) -> Iterator[deque[Started]]:
    """Start processes before it is known what they train, as that takes them seconds.

    They end with the context, whether or not they were used.
    """
    with ExitStack() as stack:
        yield deque([stack.enter_context(_started()) for _ in range(count)])


@contextmanager
def _started() -> Iterator[Started]:
    here, there = Pipe()
    # Until it is ready, what it writes on standard error is kept: it tells why it never was.
    with tempfile.TemporaryFile() as errors, os.fdopen(os.dup(2), "wb") as own:
        handles = there.fileno(), own.fileno()
        command = processes.calling(__name__, "_work", handles)
        process = processes.start(
            command, pass_fds=handles, stdin=subprocess.DEVNULL, stderr=errors
        )
        there.close()
        try:
            yield Started(process, here, errors)
        finally:
            processes.end(process)
            here.close()


@contextmanager
def _worker(
    train: Train, waiting: deque[Job], news: SimpleQueue[_News], ahead: deque[Started]
) -> Iterator[_Other]:
    """Keep one more process at work on what is waiting; it ends with this one."""
    with nullcontext(ahead.popleft()) if ahead else _started() as started:
        process, is_ready = started.process, threading.Event()
        given = (started, train, waiting, news, is_ready)
        thread = threading.Thread(target=_serve, args=given, daemon=True)
        thread.start()
        try:
            yield _Other(process, thread, is_ready)
        finally:
            processes.end(process)
            thread.join()


def _serve(
    started: Started,
    train: Train,
    waiting: deque[Job],
    news: SimpleQueue[_News],
    is_ready: threading.Event,
) -> None:
    """Give a process one group after the other, and pass its reports on."""
    job, link = None, started.link
    try:
        link.send_bytes(pickle.dumps(train))
        link.recv_bytes()  # until it is ready others take what is waiting
        is_ready.set()
        while waiting:
            job = waiting.popleft()
            link.send_bytes(pickle.dumps(job))
            while job is not None:
                report = pickle.loads(link.recv_bytes())
                if isinstance(report, NotHereError):
                    news.put(_Lost(job, str(report)))
                    return
                if isinstance(report, Exception) or report.outcomes is not None:
                    job = None
                news.put(report)
    except IndexError:
        pass  # another one was quicker to take the last
    except (EOFError, OSError):
        news.put(_Lost(job, how=started.how_ended(is_ready.is_set())))
    except Exception as error:
        news.put(error)
    finally:
        is_ready.set()  # nobody need wait for it


def _work(handles: tuple[int, int]) -> None:
    """Train the groups that arrive, in a process of its own.

    Args:
        handles: Of the way to the sender, and of its standard error.
    """
    end = processes.Termination.of_worker()
    offer_to_be_killed()
    torch.set_num_threads(1)
    link, jobs = Connection(handles[0]), SimpleQueue[Job]()
    try:
        train: Train = pickle.loads(link.recv_bytes())
    except EOFError:
        return  # the sender has ended before there was something to train
    os.dup2(handles[1], 2)
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
        for last in [] if mine is None else last_of(mine):
            link.send_bytes(pickle.dumps(last))
        end.die()


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
