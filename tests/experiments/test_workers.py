"""Processes side by side: the same rows, and none that outlives the one it works for."""

import os
import signal
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gnn_vpa import training
from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import Team, expand, read_folds, run_grid, train_group
from gnn_vpa.experiments.journal_files import Entry, journals
from gnn_vpa.host import Host
from gnn_vpa.training import Protocol

_WAIT_S = 300.0  # until a process is taken for stuck: imports alone take long on a busy machine
_CELLS = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=2), folds=2, seeds=range(4)).cells


def rows(out: Path) -> pd.DataFrame:
    keys = ["aggregation", "seed", "fold"]
    return read_folds(out).drop(columns="seconds").set_index(keys).sort_index()


def test_two_processes_record_what_one_records(tmp_path: Path) -> None:
    run_grid(_CELLS, tmp_path / "one", device="cpu", workers=1)
    run_grid(_CELLS, tmp_path / "two", device="cpu", workers=2)
    pd.testing.assert_frame_equal(rows(tmp_path / "one"), rows(tmp_path / "two"))
    assert not (tmp_path / "two" / "checkpoints").exists()


_ENDLESS = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=10**5), seeds=range(2)).cells


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for children in /proc")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_assistants_leave_with_the_process_they_work_for_and_after_ctrl_c_states_are_kept(
    tmp_path: Path,
    end: signal.Signals,
    child_of: Callable[[int, str], int | None],
    in_process: Callable[..., ForkServerProcess],
) -> None:
    parent = in_process(run_grid, _ENDLESS, tmp_path, device="cpu", workers=2)
    try:
        # Both train: states would be written by themselves after 20 s, and these cells never end.
        _until(lambda: len(_at_work(tmp_path)) == 2)
        assistant = child_of(parent.pid or 0, "experiments.workers")
        assert assistant is not None
        os.kill(parent.pid or 0, end)
        parent.join(_WAIT_S)
        assert parent.exitcode not in (None, 0)
        _until(lambda: not Path(f"/proc/{assistant}").exists())
    finally:
        parent.kill()
    if end is signal.SIGINT:  # neither locks nor halves of files
        kept = [path.suffix for path in tmp_path.glob("checkpoints/*")]
        assert kept == [".pt", ".pt"]


def _at_work(out: Path) -> list[Entry]:
    """Return the processes that have trained an epoch."""
    return [entry for entry in journals(out) if any(at["epoch"] for at in entry.workers)]


def _until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


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
