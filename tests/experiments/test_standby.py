"""Processes that wait for an order: they are used where there are any, and none is left over."""

import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from gnn_vpa import processes
from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import Cell, crew, expand, mps, run_grid, runner
from gnn_vpa.experiments import standby as standby_module
from gnn_vpa.experiments.standby import Standby
from gnn_vpa.experiments.workers import Assistants, Order
from gnn_vpa.nn import MODELS
from gnn_vpa.training import Task

# It does nothing but to wait for an order, and its exit code says that it has come.
_PROGRAM = """
import sys
length = int.from_bytes(sys.stdin.buffer.read(8), "big")
if length:
    sys.exit(len(sys.stdin.buffer.read(length)) == length and 7)
"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Let processes import nothing, and note them."""
    found: list[subprocess.Popen[bytes]] = []

    def start(environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        found.append(processes.start(["-c", _PROGRAM], environment, **pipes))
        return found[-1]

    monkeypatch.setattr(standby_module, "start", start)
    return found


def _order() -> Order:
    return Order([], Path("runs/none"), None, "cpu")


def test_those_that_wait_come_first_and_the_rest_are_started(
    started: list[subprocess.Popen[bytes]],
) -> None:
    with Standby() as standby:
        standby.fill(2, {"A": "1"})
        assert len(started) == 2
        with Assistants([_order()] * 3, {"A": "1"}, alone=True, standby=standby) as others:
            assert len(started) == 3
            while others.are_at_work():
                pass
    assert [process.wait() for process in started] == [7, 7, 7]


def test_whoever_has_no_order_is_ended_as_soon_as_all_orders_are_given(
    started: list[subprocess.Popen[bytes]],
) -> None:
    with Standby() as standby:
        standby.fill(3, {})
        with Assistants([_order()], {}, alone=True, standby=standby):
            assert [process.poll() for process in started[:2]] == [-signal.SIGKILL] * 2
            assert started[2].wait() == 7


def test_one_that_was_killed_while_it_waited_gets_no_order(
    started: list[subprocess.Popen[bytes]],
) -> None:
    with Standby() as standby:
        standby.fill(2, {})
        started[1].kill()
        started[1].wait()
        assert standby.take() is started[0]
        assert standby.take() is started[2]
    for process in started:
        standby_module._end(process)


@contextmanager
def _two() -> Iterator[tuple[Standby, mps.Sooner]]:
    with Standby() as standby:
        standby.fill(2, {})
        yield standby, mps.Sooner()


@pytest.mark.parametrize("error", [UsageError, KeyboardInterrupt])
def test_where_data_are_refused_nobody_is_left(
    started: list[subprocess.Popen[bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
) -> None:
    def refuses(*_: object) -> None:
        assert [process.poll() for process in started] == [None, None]
        raise error

    monkeypatch.setattr(runner, "ahead", lambda *_: _two())
    monkeypatch.setattr(runner, "identify", refuses)
    with pytest.raises(error):
        run_grid([], tmp_path / "out", device="cpu")
    assert [process.poll() for process in started] == [-signal.SIGKILL] * 2
    assert not (tmp_path / "out").exists()


def test_where_one_cannot_be_started_the_others_are_ended(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = standby_module.start

    def fails(environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        if len(started) == 2:
            raise OSError("no more processes")
        return start(environment)

    monkeypatch.setattr(standby_module, "start", fails)
    with pytest.raises(OSError, match="no more"), Standby() as standby:
        standby.fill(3, {})
    assert [process.poll() for process in started] == [-signal.SIGKILL] * 2


def test_whoever_waits_with_other_variables_gets_no_order(
    started: list[subprocess.Popen[bytes]],
) -> None:
    with Standby() as standby:
        standby.fill(1, {"CUDA_MPS_PIPE_DIRECTORY": "here"})
        assert standby.take({"CUDA_MPS_PIPE_DIRECTORY": "elsewhere"}) is started[1]
        assert standby.take() is started[2]
    for process in started[1:]:
        standby_module._end(process)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc to look at")
def test_variables_of_the_service_are_there_from_the_first_moment_on() -> None:
    # Processes that got them later, when torch was imported, took turns on a GPU.
    with Standby() as standby:
        standby.fill(1, {"CUDA_MPS_PIPE_DIRECTORY": "here"})
        process = standby.take({"CUDA_MPS_PIPE_DIRECTORY": "here"})
        environ = Path(f"/proc/{process.pid}/environ").read_bytes()
        standby_module._end(process)
    assert b"CUDA_MPS_PIPE_DIRECTORY=here" in environ.split(b"\0")


def _paper() -> list[Cell]:
    return expand(["RDT-B", "RDT-M5K", "COLLAB"], ["gin", "gcn"]).cells


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Let the multi-process service be there, and note what is begun ahead."""
    found: list[object] = []
    served = {"CUDA_MPS_PIPE_DIRECTORY": "here"}

    def begin(
        _: mps.Sooner,
        devices: list[str],
        planned: object,
        asked: int | None,
        then: Callable[[mps.Sharing], None],
    ) -> None:
        found.append((devices, asked))
        then(mps.Sharing(1 if asked == 1 else asked or mps.PROCESSES, True, served))

    monkeypatch.delenv("GNN_VPA_WORKERS", raising=False)
    monkeypatch.setattr(mps, "_obstacle", lambda: None)
    monkeypatch.setattr(mps.Sooner, "begin", begin)
    monkeypatch.setattr(Standby, "fill", lambda _, *asked: found.append(asked))
    return found


@pytest.mark.parametrize(
    ("cells", "devices", "workers", "count"),
    [
        (_paper(), ["cuda"], None, 6),
        (_paper(), ["cuda:0", "cuda:1"], None, 12),
        (_paper(), ["cuda"], 2, 2),
        (_paper(), ["cuda"], 1, 0),
        (_paper(), ["cpu"], 4, 0),
        (_paper()[:3], ["cuda"], 6, 3),
        ([], ["cuda"], 6, 0),
        (expand(["MUTAG"], ["gin"]).cells, ["cuda"], None, 0),
        ([Cell("mine.zip", Task(model, "vpa")) for model in MODELS], ["cuda"], None, 0),
    ],
)
def test_they_are_started_where_several_are_going_to_share_a_gpu(
    tmp_path: Path,
    begun: list[object],
    cells: list[Cell],
    devices: list[str],
    workers: int | None,
    count: int,
) -> None:
    with crew.ahead(cells, tmp_path, devices, workers):
        asked = None if workers is None else min(workers, len(cells))
        filled = (count, {"CUDA_MPS_PIPE_DIRECTORY": "here"})
        assert begun == [(devices, asked), filled] * (count > 0)


@pytest.mark.usefixtures("fake_fit")
def test_none_are_started_where_a_part_is_finished(tmp_path: Path, begun: list[object]) -> None:
    cells = expand(["MUTAG"], [], baselines=["majority"]).cells
    run_grid(cells, tmp_path, device="cpu")
    begun.clear()
    with crew.ahead(_paper(), tmp_path, ["cuda"], None):
        assert begun == []


def test_none_are_started_where_the_service_is_refused(
    tmp_path: Path, begun: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mps.Sooner, "begin", lambda *asked: asked[-1](mps.Sharing(1)))
    with crew.ahead(_paper(), tmp_path, ["cuda"], None):
        assert begun == []


def test_what_they_import_does_not_call_cuda() -> None:
    # A process that waits for an order holds no memory of a GPU.
    program = """
import torch
def called(*_, **__): raise SystemExit("CUDA was called")
for name in ("is_available", "device_count", "init", "_lazy_init", "get_device_capability"):
    setattr(torch.cuda, name, called)
import sklearn.model_selection, gnn_vpa.experiments.runner
print("not called")
"""
    with processes.start(["-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"not called\n"
