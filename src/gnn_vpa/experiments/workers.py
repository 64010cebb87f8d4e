"""More processes beside this one: one for each core, each with a single thread.

Threads that share small matrix products mostly wait for each other, and on a busy machine they
wait twenty times as long. Processes that each run their own cells do not wait at all. They meet in
the run's folder, where each cell has one owner. One that is killed leaves its cell's lock behind:
no other process takes that cell, until the one that was started by hand has it trained alone.
"""

import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from .. import processes
from ..errors import GnnVpaError, UsageError
from ..host import Host, offer_to_be_killed
from ..training.interrupts import GRACE_S, Impatience
from .cell import Cell
from .groups import Group
from .progress import Progress
from .standby import Standby, start

_log = logging.getLogger("gnn_vpa")


class Team(NamedTuple):
    """How processes share the work: each has one thread, and is one of those in all.

    Attributes:
        cells: How many cells are run side by side.
        folds: How many processes divide the folds of each.

    Example:
        >>> Team.of("cpu", pending=3, workers=8), Team.of("cpu", pending=9, workers=8)
        (Team(cells=3, folds=2), Team(cells=8, folds=1))
    """

    cells: int
    folds: int = 1

    @classmethod
    def of(
        cls,
        device: str,
        pending: int,
        workers: int | None = None,
        host: Host | None = None,
        need: int = 0,
    ) -> "Team":
        """Divide processes among the cells that are to be run.

        Args:
            device: On a GPU there is one process by default. Several pay where NVIDIA's
                multi-process service lets them use it at the same time; otherwise they take turns.
            pending: Number of cells.
            workers: Number of processes; None: the variable GNN_VPA_WORKERS, or as many as the
                host has cores and memory for.
            host: What may be used; None: what this machine has.
            need: Bytes that a process needs, see `gnn_vpa.experiments.memory`.

        Example:
            >>> Team.of("cuda", pending=9)
            Team(cells=1, folds=1)
        """
        is_cpu = device == "cpu"
        count = workers or asked() or (affordable(host or Host.here(), need) if is_cpu else 1)
        cells = max(1, min(count, pending))
        return cls(cells, count // cells if is_cpu and pending > 0 else 1)


def affordable(host: Host, need: int) -> int:
    """Return how many processes a host has cores and memory for, at least 1.

    Example:
        >>> affordable(Host(cores=8, memory=9 * 10**9), need=2 * 10**9)
        4
        >>> affordable(Host(cores=8, memory=None), need=2 * 10**9)
        8
    """
    if host.memory is None or need <= 0:
        return host.cores
    return max(1, min(host.cores, host.memory // need))


def asked() -> int | None:
    """Return the number of processes that GNN_VPA_WORKERS asks for, if it does.

    Example:
        >>> from unittest.mock import patch
        >>> with patch.dict(os.environ, GNN_VPA_WORKERS="3"):
        ...     asked()
        3
    """
    text = os.environ.get("GNN_VPA_WORKERS", "")
    if text and (not text.isdigit() or int(text) == 0):
        raise UsageError(f"GNN_VPA_WORKERS: expected a number from 1 on, got {text!r}.")
    return int(text) if text else None


def single_thread(device: str) -> AbstractContextManager[None]:
    """Let torch use one thread for work on the CPU, or the GPU that is named for work on one."""
    import torch

    from ..training.workers import one_thread

    # Kernels are launched on the current GPU, which is the first one unless it is said.
    return one_thread() if device == "cpu" else torch.cuda.device(device)


@dataclass(frozen=True)
class Order:
    """What a process beside this one is asked to do.

    Attributes:
        cells: The cells to run, identified, those that others run left out.
        out: Folder of the run.
        data_dir: A folder to look for data in first.
        device: Where to train.
        folds: Number of processes that divide the folds of a cell.
        is_rescue: Whether to run cells too whose last process was killed.
        keep: Keys of cells whose models are kept.
        parts: Numbers of cells, by their keys, that groups are divided by, see `grouped`.
        sharing: Number of processes that use the same GPU.
        tensorboard: A folder for TensorBoard, if there is to be one.
    """

    cells: Sequence[Cell]
    out: Path
    data_dir: str | Path | None
    device: str
    folds: int = 1
    is_rescue: bool = False
    keep: frozenset[str] = frozenset()
    parts: Mapping[str, int] = field(default_factory=dict)
    sharing: int = 1
    tensorboard: Path | None = None


class Assistant:
    """A process that carries out an order beside this one, and ends with it.

    Args:
        order: What it is asked to do.
        environment: Variables that it has beside those of this process.
        process: The process, see `standby.start`; None: a new one with these variables.
    """

    def __init__(
        self,
        order: Order,
        environment: Mapping[str, str] | None = None,
        process: "subprocess.Popen[bytes] | None" = None,
    ) -> None:
        self._at: str | None = None  # what it is training; None: it is not ready
        self._said = ""  # its last line that was not for this process
        self._ended = False  # by us
        self._process = process or start(environment)
        self._order = order

    def attend(self) -> None:
        """Send the order, and log here what the process logs there, until it ends."""
        content = pickle.dumps(self._order)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError, ValueError):  # it was ended: its exit code tells
            # Cells may carry their data: it takes a while until they are taken.
            self._process.stdin.write(len(content).to_bytes(8, "big") + content)
            self._process.stdin.flush()
        with self._process.stdout:
            for line in self._process.stdout:
                whole = line.decode(errors="replace").rstrip()
                level, _, text = whole.partition(" ")
                if level == _AT:
                    self._at = text
                elif level.isdigit():  # what a user's own function prints is not passed on
                    _log.log(int(level), "%s", text)
                else:
                    self._said = whole

    def killed(self) -> str | None:
        """Wait for the end, and say in words how the process was killed; None if it was not."""
        code = self._process.wait()
        if self._ended or code >= 0:
            return None
        what = f" while it trained {self._at}" if self._at else ""
        return f"A process {processes.how_ended(code, what)}"

    def failed(self) -> str | None:
        """Wait for the end, and say in words why the process never began; None if it did."""
        code = self._process.wait()
        if self._ended or code <= 0 or self._at is not None:
            return None
        return f"A process {processes.how_ended(code, ' before it was ready', self._said)}"

    def is_at_work(self) -> bool:
        """Say whether the process has not ended yet."""
        return self._process.poll() is None

    def leaving(self) -> "subprocess.Popen[bytes]":
        """Return the process, which is about to be ended from here: it was not killed then."""
        self._ended = True
        return self._process

    def end(self) -> None:
        """End the process, if it has not ended by itself."""
        processes.end(self.leaving())


def _interrupt(assistants: Sequence[Assistant]) -> None:
    """Let processes write the states of what they train, and leave."""
    # They may have processes of their own to wait for.
    processes.interrupt([assistant.leaving() for assistant in assistants], 2 * GRACE_S)


_AT = "at"  # begins a line that tells what is being trained, if anything is


_ADVICE = "mend what it says, or ask for fewer workers"


class Assistants:
    """Processes at work beside this one, as a context; they end with it.

    Args:
        orders: What each of them is asked to do.
        environment: Variables that they have beside those of this process.
        alone: Whether this process leaves all trainings to them.
        standby: Processes that wait already; the rest are started.
    """

    def __init__(
        self,
        orders: Sequence[Order],
        environment: Mapping[str, str] | None = None,
        *,
        alone: bool = False,
        standby: Standby | None = None,
    ) -> None:
        self._orders, self._environment = orders, environment
        self._standby = standby or Standby()
        self._count = len(orders) + (not alone)
        self._assistants: list[Assistant] = []

    def __enter__(self) -> Self:
        try:
            for order in self._orders:
                assistant = Assistant(
                    order, self._environment, self._standby.take(self._environment)
                )
                self._assistants.append(assistant)
                threading.Thread(target=self._watch, args=(assistant,), daemon=True).start()
            self._standby.dismiss()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        try:
            if kind is not None and issubclass(kind, KeyboardInterrupt) and kind is not Impatience:
                _interrupt(self._assistants)
        finally:
            for assistant in self._assistants:
                assistant.end()

    def are_at_work(self) -> bool:
        """Say whether any of them has not ended yet."""
        return any(assistant.is_at_work() for assistant in self._assistants)

    def _watch(self, assistant: Assistant) -> None:
        assistant.attend()
        killed, failed = assistant.killed(), assistant.failed()
        if how := killed or failed:
            self._count = max(1, self._count - 1)  # without any other, this one goes on
            left = "1 process" if self._count == 1 else f"{self._count} processes"
            then = "that cell is trained again" if killed else _ADVICE
            _log.warning("%s: going on with %s; %s.", how, left, then)


def run_alone(order: Order) -> str | None:
    """Carry out an order in a process of its own and wait; say how it was killed, if it was."""
    assistant = Assistant(order)
    try:
        assistant.attend()
        if (how := assistant.failed()) is not None:
            _log.warning("%s: going on without it; %s.", how, _ADVICE)
        return assistant.killed()
    except Impatience:
        raise
    except KeyboardInterrupt:
        _interrupt([assistant])
        raise
    finally:
        assistant.end()


class _Telling(Progress):
    """Tells the sender what is being trained."""

    def start(self, group: Group) -> None:
        print(_AT, group, flush=True)


def _assist() -> None:
    """Carry out the order that arrives on standard input, until it is done or its sender gone."""
    end = processes.Termination.of_worker()
    offer_to_be_killed()
    # What a training needs is imported while the order may still be on its way.
    import sklearn.model_selection  # noqa: F401

    from .runner import assist

    if not (length := int.from_bytes(sys.stdin.buffer.read(8), "big")):
        _leave(0)  # there is nothing to be done
    order: Order = pickle.loads(sys.stdin.buffer.read(length))
    print(_AT, flush=True)
    threading.Thread(target=_leave_with_sender, daemon=True).start()
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(levelno)d %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    try:
        assist(order, _Telling())
    except GnnVpaError as error:
        _log.warning("a process that assisted has left: %s", error)
        _leave(1)
    except KeyboardInterrupt:
        end.die()
    except Exception as error:  # the sender meets it too, unless it is a matter of this process
        _log.warning("a process that assisted has left: %s: %s", type(error).__name__, error)
        _leave(1)


def _leave(code: int) -> None:
    # Without the interpreter's tidying up, which would wait for the thread that reads the stream.
    sys.stdout.flush()
    os._exit(code)


def _leave_with_sender() -> None:
    # The sender never writes more: the end of the stream is its end, however it came. Not by
    # `sys.stdin`: a thread that waits in there makes Python abort when the process is done.
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)
