"""What a run tells about itself."""

import time
from pathlib import Path

import pytest

from gnn_vpa.cli._progress import Lines
from gnn_vpa.experiments import Pace, expand, run_grid
from gnn_vpa.training import Protocol


def test_a_cell_finished_beside_this_process_shows_what_came_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=2), folds=3).cells
    run_grid(cells[:1], tmp_path, device="cpu")
    lines = Lines(tmp_path)
    lines.plan(cells, finished=0)
    lines.elsewhere(cells[0])
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("2 cells to run; about")
    assert last.startswith("[1/2] SGC on MUTAG: ")
    assert " ± " in last
    assert last.endswith(" left")


def test_processes_at_once_shorten_the_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    cells = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=100), folds=10).cells
    lines = Lines(tmp_path)
    lines.plan(cells, finished=0)
    lines._finished, lines._pending = cells[:1], cells[1:]
    lines._paces = [Pace("MUTAG", "sgc", 0.1, 3445.0)]  # 100 s for a cell
    now = 50.0
    assert lines.time_left().startswith("; about 50 s")
    now = 1000.0  # a process that waits for nobody is not slower than itself
    assert lines.time_left().startswith("; about 1 min 40 s")
