"""More processes beside this one: one for each core, each with a single thread.

Threads that share small matrix products mostly wait for each other, and on a busy machine they
wait twenty times as long. Processes that each run their own cells do not wait at all. They meet in
the run's folder, where each cell has one owner.
"""

import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import GnnVpaError, UsageError
from .cell import Cell

_log = logging.getLogger("gnn_vpa")


def worker_count(device: str, pending: int) -> int:
    """Return how many processes are worth their start: a core each on the CPU, one on a GPU.

    The variable GNN_VPA_WORKERS overrides it. Several on a GPU pay where NVIDIA's multi-process
    service lets them use it at the same time; otherwise they take turns.

    Example:
        >>> worker_count("cuda", pending=9), worker_count("cpu", pending=1)
        (1, 1)
    """
    if pending < 2:
        return 1
    asked = os.environ.get("GNN_VPA_WORKERS", "")
    if asked:
        if not asked.isdigit() or int(asked) == 0:
            raise UsageError(f"GNN_VPA_WORKERS: expected a number from 1 on, got {asked!r}.")
        return min(int(asked), pending)
    if device != "cpu":
        return 1
    return min(len(os.sched_getaffinity(0)), pending)


@contextmanager
def single_thread(device: str) -> Iterator[None]:
    """Let torch use one thread for work on the CPU."""
    import torch

    before = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def assistants(
    count: int, cells: Sequence[Cell], out: Path, data_dir: str | Path | None, device: str
) -> Iterator[None]:
    """Keep ``count`` more processes at work on the cells; they end with this one."""
    order = pickle.dumps((list(cells), out, data_dir, device))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    processes = []
    try:
        for _ in range(count):
            process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}._workers"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the process that was started by hand
            )
            processes.append(process)
            assert process.stdin is not None
            threading.Thread(target=_log_from, args=(process,), daemon=True).start()
            process.stdin.write(len(order).to_bytes(8, "big") + order)
            process.stdin.flush()
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()


def _log_from(process: subprocess.Popen[bytes]) -> None:
    """Log here what a process logs there, until it ends."""
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            level, _, text = line.decode(errors="replace").rstrip().partition(" ")
            _log.log(int(level), "%s", text)


def _assist() -> None:
    """Work on the cells that arrive on standard input, until they or the sender are gone."""
    length = int.from_bytes(sys.stdin.buffer.read(8), "big")
    cells, out, data_dir, device = pickle.loads(sys.stdin.buffer.read(length))
    threading.Thread(target=_leave_with_sender, daemon=True).start()
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(levelno)d %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    from .runner import run_grid

    try:
        run_grid(cells, out, data_dir=data_dir, device=device, workers=1)
    except GnnVpaError:
        sys.exit(1)  # the sender meets the same trouble, and can tell of it


def _leave_with_sender() -> None:
    # The sender never writes more: the end of the stream is its end, however it came.
    sys.stdin.buffer.read(1)
    os._exit(1)


if __name__ == "__main__":
    _assist()
