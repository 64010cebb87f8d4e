"""NVIDIA's multi-process service, played by a script: it is started where it helps, and ended."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import Cell, Group, mps
from gnn_vpa.experiments.mps import Sharing, Sooner, shared_gpus
from gnn_vpa.experiments.schedule import Planned
from gnn_vpa.training import Task

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the service is for Linux"
)

_CONTROL = """#!/bin/sh
running="${CUDA_MPS_PIPE_DIRECTORY:-HERE/default}/running"
if [ "$1" = -d ]; then
    if [ -e HERE/refuses ]; then echo "no permission" >&2; exit 1; fi
    env >HERE/environment
    touch "$running"
    echo started >>HERE/log
    exit 0
fi
read -r command
if [ ! -e "$running" ]; then echo "Cannot find MPS control daemon process"; exit 1; fi
if [ "$command" = quit ]; then rm "$running"; echo ended >>HERE/log; fi
if [ "$command" = get_server_list ] && [ ! -e HERE/idle ]; then echo 4711; fi
if [ "$command" = "get_client_list 4711" ] && [ -e HERE/clients ]; then cat HERE/clients; fi
exit 0
"""
_LONG = [
    Planned(Group((Cell("RDT-B", Task("gin", aggr)),)), 100.0) for aggr in ("sum", "mean", "max")
]


class Service:
    """What the script has left, and whether it refuses to work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def says(self) -> list[str]:
        log = self.folder / "log"
        return log.read_text().split() if log.exists() else []

    def set(self, what: str) -> None:
        (self.folder / what).touch()


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    (tmp_path / "default").mkdir()
    control = tmp_path / mps.CONTROL
    control.write_text(_CONTROL.replace("HERE", str(tmp_path)))
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    monkeypatch.delenv("GNN_VPA_MPS", raising=False)
    _probe(tmp_path, monkeypatch, free=140 * 10**9)
    return Service(tmp_path)


def _probe(folder: Path, monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    """Let a GPU have so much free memory."""
    program = folder / "probe.py"
    program.write_text(f"import sys\nprint({free}, flush=True)\nsys.stdin.read()\n")
    monkeypatch.setattr(mps, "_PROBE", program)


def _share(
    devices: Sequence[str] = ("cuda",),
    planned: Sequence[Planned] = _LONG,
    workers: int | None = None,
) -> tuple[Sharing, list[str]]:
    notes: list[str] = []
    with shared_gpus(list(devices), planned, workers, notes.append) as sharing:
        pass
    return sharing, notes


def test_it_is_started_for_a_run_and_ended_with_it(service: Service) -> None:
    notes: list[str] = []
    with shared_gpus(["cuda"], _LONG, None, notes.append) as sharing:
        assert (sharing.processes, sharing.is_served) == (mps.PROCESSES, True)
        folder = Path(sharing.environment["CUDA_MPS_PIPE_DIRECTORY"])
        assert (folder / "running").exists()
        assert Path(sharing.environment["CUDA_MPS_LOG_DIRECTORY"]).is_dir()
        assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
    assert service.says() == ["started", "ended"]
    assert not folder.parent.exists()
    assert notes == ["6 processes on cuda, which share it by NVIDIA's multi-process service."]


@pytest.mark.parametrize(
    ("said", "count"), [("", 0), ("17\n18\n", 2), ("Server 4711 not found\n", None)]
)
def test_whom_it_serves_is_asked(service: Service, said: str, count: int | None) -> None:
    (service.folder / "clients").write_text(said)
    with shared_gpus(["cuda"], _LONG) as sharing:
        assert mps.clients(sharing.environment) == count
        service.set("idle")
        assert mps.clients(sharing.environment) == 0  # nobody has begun to use it
    assert mps.clients(sharing.environment) is None


def test_what_is_begun_beside_other_work_serves_whoever_asks_first(service: Service) -> None:
    notes: list[str] = []
    with Sooner() as sooner:
        sooner.begin(["cuda"], _LONG, 2)
        with sooner.shared_gpus(["cuda"], _LONG, 2, notes.append) as sharing:
            assert (sharing.processes, sharing.is_served) == (2, True)
            assert service.says() == ["started"]
        assert service.says() == ["started", "ended"]
        with sooner.shared_gpus(["cuda"], _LONG, None, notes.append) as sharing:
            assert sharing.processes == mps.PROCESSES
    assert service.says() == ["started", "ended"] * 2
    assert [note[:11] for note in notes] == ["2 processes", "6 processes"]


def test_what_nobody_asks_for_ends_with_the_run(service: Service) -> None:
    with suppress(UsageError), Sooner() as sooner:
        sooner.begin(["cuda"], _LONG, None)
        raise UsageError("data are refused")
    assert service.says() == ["started", "ended"]


def test_it_is_begun_while_other_work_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    is_done = threading.Event()

    @contextmanager
    def slow(*_: object) -> Iterator[Sharing]:
        assert is_done.wait(20)
        yield Sharing(2, True)

    monkeypatch.setattr(mps, "shared_gpus", slow)
    with Sooner() as sooner:
        sooner.begin(["cuda"], _LONG, None)
        is_done.set()  # by other work
        with sooner.shared_gpus(["cuda"], _LONG) as sharing:
            assert sharing.processes == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_it_ends_whatever_ends_the_run(service: Service, error: type[BaseException]) -> None:
    with suppress(error), shared_gpus(["cuda"], _LONG):
        raise error
    assert service.says() == ["started", "ended"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # it ends at once
def test_it_ends_with_a_process_that_is_killed(service: Service) -> None:
    if (child := os.fork()) == 0:  # a new one would import torch first
        with mps._service():
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    deadline = time.monotonic() + 20
    while service.says() != ["started", "ended"] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert service.says() == ["started", "ended"]


def test_the_service_sees_all_gpus_and_processes_those_that_are_visible(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,3")
    with shared_gpus(["cuda:0", "cuda:1"], _LONG * 2) as sharing:
        assert "CUDA_VISIBLE_DEVICES" not in sharing.environment
    assert "CUDA_VISIBLE_DEVICES" not in (service.folder / "environment").read_text()


def test_a_service_that_runs_already_is_used_and_left_alone(service: Service) -> None:
    (service.folder / "default" / "running").touch()
    sharing, _ = _share()
    assert (sharing.processes, sharing.is_served, sharing.environment) == (mps.PROCESSES, True, {})
    assert service.says() == []


def test_where_it_refuses_there_is_one_process(service: Service) -> None:
    service.set("refuses")
    sharing, notes = _share()
    assert (sharing.processes, sharing.is_served) == (1, False)
    assert notes == [
        "NVIDIA's multi-process service cannot be used (no permission): there is one process on "
        "each GPU."
    ]
    assert _share(workers=2)[0] == Sharing(2)


def test_where_it_is_missing_there_is_one_process_and_several_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _share() == (Sharing(), [])
    sharing, (note,) = _share(workers=3)
    assert sharing == Sharing(3)
    assert note.startswith("3 processes on each GPU take turns: nvidia-cuda-mps-control")


@pytest.mark.usefixtures("service")
def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNN_VPA_MPS", "0")
    assert _share() == (Sharing(), [])
    monkeypatch.setenv("GNN_VPA_MPS", "never")
    with pytest.raises(UsageError, match="GNN_VPA_MPS: expected 0"):
        _share()


@pytest.mark.parametrize(
    "program",
    ["raise SystemExit('cuInit: CUDA_ERROR_MPS_CONNECTION_FAILED')", "import os; os._exit(1)"],
)
def test_where_cuda_fails_under_it_it_is_ended_and_left_out(
    service: Service, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    failing = service.folder / "failing.py"
    failing.write_text(program)
    monkeypatch.setattr(mps, "_PROBE", failing)
    sharing, (note,) = _share()
    assert sharing == Sharing()
    assert "CUDA_ERROR_MPS_CONNECTION_FAILED" in note or "has ended at once" in note
    assert service.says() == ["started", "ended"]


def test_where_cuda_does_without_it_it_is_left_out(service: Service) -> None:
    service.set("idle")
    sharing, (note,) = _share()
    assert sharing == Sharing()
    assert "CUDA does without it" in note
    assert service.says() == ["started", "ended"]


def test_the_real_probe_says_what_is_missing_where_there_is_no_driver() -> None:
    probe = Path(mps.__file__).with_name("_gpu_probe.py")
    done = subprocess.run(
        [sys.executable, probe, "0"], capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode == 0:
        assert done.stdout.strip().isdigit()
    else:
        assert b"libcuda" in done.stderr or b"CUDA_ERROR" in done.stderr


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(("gigabytes", "processes"), [(140, 6), (80, 5), (40, 2), (24, 1)])
def test_no_more_processes_than_the_gpu_has_memory_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gigabytes: int, processes: int
) -> None:
    _probe(tmp_path, monkeypatch, free=gigabytes * 10**9)
    assert _share()[0].processes == processes
    assert _share(workers=5)[0].processes == 5  # whoever asks may know better


@pytest.mark.parametrize(
    ("devices", "planned", "workers"),
    [
        (["cuda"], _LONG[:2], None),
        (["cuda"], [Planned(group, 1.0) for group, _ in _LONG], None),
        (["cuda:0", "cuda:1"], _LONG, None),
        (["cuda"], _LONG, 1),
        (["cpu"], _LONG, 4),
    ],
)
def test_it_is_not_started_where_it_would_not_help(
    service: Service, devices: list[str], planned: list[Planned], workers: int | None
) -> None:
    assert _share(devices, planned, workers) == (Sharing(), [])
    assert service.says() == []
