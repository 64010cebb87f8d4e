"""More processes beside this one: one for each core, each with a single thread.

Threads that share small matrix products mostly wait for each other, and on a busy machine they
wait twenty times as long. Processes that each run their own cells do not wait at all. They meet in
the run's folder, where each cell has one owner.
"""

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import GnnVpaError, UsageError
from ..training.interrupts import GRACE_S, Impatience
from .cell import Cell

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
    def of(cls, device: str, pending: int, workers: int | None = None) -> "Team":
        """Divide processes among the cells that are to be run.

        Args:
            device: On a GPU there is one process by default. Several pay where NVIDIA's
                multi-process service lets them use it at the same time; otherwise they take turns.
            pending: Number of cells.
            workers: Number of processes; None: the variable GNN_VPA_WORKERS, or a core each.

        Example:
            >>> Team.of("cuda", pending=9)
            Team(cells=1, folds=1)
        """
        is_cpu = device == "cpu"
        count = workers or _asked() or (len(os.sched_getaffinity(0)) if is_cpu else 1)
        cells = max(1, min(count, pending))
        return cls(cells, count // cells if is_cpu and pending > 0 else 1)


def _asked() -> int | None:
    asked = os.environ.get("GNN_VPA_WORKERS", "")
    if asked and (not asked.isdigit() or int(asked) == 0):
        raise UsageError(f"GNN_VPA_WORKERS: expected a number from 1 on, got {asked!r}.")
    return int(asked) if asked else None


def single_thread(device: str) -> AbstractContextManager[None]:
    """Let torch use one thread for work on the CPU, or the GPU that is named for work on one."""
    import torch

    from ..training.workers import one_thread

    # Kernels are launched on the current GPU, which is the first one unless it is said.
    return one_thread() if device == "cpu" else torch.cuda.device(device)


@contextmanager
def assistants(
    team: Team, cells: Sequence[Cell], out: Path, data_dir: str | Path | None, device: str
) -> Iterator[None]:
    """Keep the rest of a team at work on the cells, beside this process; they end with it."""
    order = pickle.dumps((list(cells), out, data_dir, device, Team(1, team.folds)))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    processes = []
    try:
        for _ in range(team.cells - 1):
            process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}._workers"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the process that was started by hand
            )
            processes.append(process)
            threading.Thread(target=_attend, args=(process, order), daemon=True).start()
        yield
    except Impatience:
        raise
    except KeyboardInterrupt:
        _interrupt(processes)
        raise
    finally:
        for process in processes:
            process.kill()
            process.wait()
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()


def _attend(process: subprocess.Popen[bytes], order: bytes) -> None:
    """Tell a process what to do, and listen to it."""
    assert process.stdin is not None
    with suppress(BrokenPipeError, ValueError):  # it was ended, and its input closed
        # Cells may carry their data: to wait until they are taken would keep the others waiting.
        process.stdin.write(len(order).to_bytes(8, "big") + order)
        process.stdin.flush()
    _log_from(process)


def _interrupt(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Let processes write the states of what they train, and leave."""
    for process in processes:
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + 2 * GRACE_S  # they may have processes of their own to wait for
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))


def _log_from(process: subprocess.Popen[bytes]) -> None:
    """Log here what a process logs there, until it ends."""
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            level, _, text = line.decode(errors="replace").rstrip().partition(" ")
            _log.log(int(level), "%s", text)


def _assist() -> None:
    """Work on the cells that arrive on standard input, until they or the sender are gone."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may let it be ignored
    length = int.from_bytes(sys.stdin.buffer.read(8), "big")
    cells, out, data_dir, device, team = pickle.loads(sys.stdin.buffer.read(length))
    threading.Thread(target=_leave_with_sender, daemon=True).start()
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(levelno)d %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    from .runner import run_grid

    try:
        run_grid(cells, out, data_dir=data_dir, device=device, workers=team)
    except GnnVpaError as error:
        _log.warning("a process that assisted has left: %s", error)
        _leave(1)
    except KeyboardInterrupt:
        _leave(130)  # the sender was interrupted, and passes it on


def _leave(code: int) -> None:
    # Without the interpreter's tidying up, which would wait for the thread that reads the stream.
    sys.stdout.flush()
    os._exit(code)


def _leave_with_sender() -> None:
    # The sender never writes more: the end of the stream is its end, however it came.
    sys.stdin.buffer.read(1)
    os._exit(1)


if __name__ == "__main__":
    _assist()
