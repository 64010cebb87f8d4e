"""Processes side by side: the same rows, and none that outlives the one it works for."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gnn_vpa import training
from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import Team, expand, read_folds, run_grid, train_group
from gnn_vpa.host import Host
from gnn_vpa.training import Protocol

_CELLS = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=2), folds=2, seeds=range(4)).cells


def rows(out: Path) -> pd.DataFrame:
    keys = ["aggregation", "seed", "fold"]
    return read_folds(out).drop(columns="seconds").set_index(keys).sort_index()


def test_two_processes_record_what_one_records(tmp_path: Path) -> None:
    run_grid(_CELLS, tmp_path / "one", device="cpu", workers=1)
    run_grid(_CELLS, tmp_path / "two", device="cpu", workers=2)
    pd.testing.assert_frame_equal(rows(tmp_path / "one"), rows(tmp_path / "two"))
    assert not (tmp_path / "two" / "checkpoints").exists()


_ENDLESS = """
from gnn_vpa.experiments import expand, run_grid
from gnn_vpa.training import Protocol
cells = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=10**5), seeds=range(2)).cells
run_grid(cells, {out!r}, device="cpu", workers=2)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for children in /proc")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_assistants_leave_with_the_process_they_work_for(
    tmp_path: Path, end: int, child_of: Callable[[int, str], int | None]
) -> None:
    program = _ENDLESS.format(out=str(tmp_path))
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    try:
        assistant = _until(lambda: child_of(parent.pid, "experiments.workers"), 60)
        assert assistant is not None
        _until(lambda: len(list(tmp_path.glob("checkpoints/*.lock"))) == 2, 60)
        parent.send_signal(end)
        parent.wait(20)
        assert _until(lambda: not Path(f"/proc/{assistant}").exists(), 20)
    finally:
        parent.kill()


def test_after_ctrl_c_the_states_of_all_processes_are_kept(tmp_path: Path) -> None:
    for seconds in (1, 2, 4, 8):  # so that all have trained an epoch; states are due after 20 s
        program = _ENDLESS.format(out=str(tmp_path))
        parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
        try:
            assert _until(lambda: len(list(tmp_path.glob("checkpoints/*.lock"))) == 2, 120)
            time.sleep(seconds)
            parent.send_signal(signal.SIGINT)
            assert parent.wait(60) != 0
        finally:
            parent.kill()
            parent.wait()
        if len(list(tmp_path.glob("checkpoints/*.pt"))) == 2:
            break
    assert len(list(tmp_path.glob("checkpoints/*"))) == 2  # and neither locks nor halves of files


def _until(condition: Callable[[], Any], seconds: float) -> Any:
    """Wait until ``condition`` gives something true, and return it; None when time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    return None


def test_a_process_for_each_core_and_none_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNN_VPA_WORKERS")
    monkeypatch.setattr(Host, "here", lambda: Host(cores=8, memory=None))
    assert Team.of("cpu", pending=1000) == (8, 1)
    assert Team.of("cpu", pending=1) == (1, 8)
    assert Team.of("cuda", pending=1000) == (1, 1)
    monkeypatch.setenv("GNN_VPA_WORKERS", "3")
    assert Team.of("cpu", pending=1000) == (3, 1)
    assert Team.of("cpu", pending=2) == (2, 1)
    assert Team.of("cpu", pending=1) == (1, 3)
    assert Team.of("cpu", pending=1, workers=2) == (1, 2)
    assert Team.of("cpu", pending=0) == (1, 1)
    assert Team.of("cuda", pending=1000) == (3, 1)


def test_no_more_processes_than_memory_is_there_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNN_VPA_WORKERS")
    # REDDIT-MULTI-5K on a host of 64 cores: all of them would ask for more than 100 GB.
    host, need = Host(cores=64, memory=16 * 10**9), 2 * 10**9
    assert Team.of("cpu", pending=1000, host=host, need=need) == (8, 1)
    assert Team.of("cpu", pending=1, host=host, need=need) == (1, 8)
    assert Team.of("cpu", pending=1000, host=host, need=20 * 10**9) == (1, 1)
    assert Team.of("cuda", pending=1000, host=host, need=need) == (1, 1)
    monkeypatch.setenv("GNN_VPA_WORKERS", "12")
    assert Team.of("cpu", pending=1000, host=host, need=need) == (12, 1)


@pytest.mark.parametrize("wrong", ["0", "many", "-1"])
def test_a_wrong_number_of_workers(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("GNN_VPA_WORKERS", wrong)
    with pytest.raises(UsageError, match="GNN_VPA_WORKERS"):
        Team.of("cpu", pending=2)


def test_idle_processes_divide_the_folds_of_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def fit(*args: Any, **settings: Any) -> Any:
        asked.append(settings["workers"])
        return training.fit(*args, **settings)

    monkeypatch.setattr(train_group, "fit", fit)
    run_grid(_CELLS[:1], tmp_path / "one", device="cpu", workers=1)
    run_grid(_CELLS[:1], tmp_path / "three", device="cpu", workers=3)
    assert asked == [1, 3]
    pd.testing.assert_frame_equal(rows(tmp_path / "one"), rows(tmp_path / "three"))
