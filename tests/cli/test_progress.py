"""What a run tells about itself."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gnn_vpa.cli._progress import Lines, log_noted
from gnn_vpa.experiments import Pace, _workers, expand, grouped, run_grid
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


def test_what_merging_saves_is_told_once_for_each_data_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = expand(["MUTAG"], ["gin"], protocol=Protocol(epochs=1), folds=2).cells
    for workers in (1, 2):
        lines = Lines(tmp_path / str(workers))
        with log_noted(lines):
            run_grid(cells, tmp_path / str(workers), device="cpu", progress=lines, workers=workers)
        told = [line for line in capsys.readouterr().err.splitlines() if "tell apart" in line]
        assert len(told) == 1
        assert re.fullmatch(
            r"MUTAG: 188 graphs, 3,371 nodes; nodes that a network of this depth cannot tell apart "
            r"are computed once \(1,\d\d\d remain\)",
            told[0],
        )


def test_a_warning_of_another_process_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    script = "print('30 a fold is lost'); print('20 MUTAG: small'); print('20 MUTAG: small too')"
    with log_noted(Lines("runs/none")):
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        _workers._log_from(process)
        process.wait()
    assert capsys.readouterr().err.splitlines() == ["a fold is lost", "MUTAG: small"]


def test_a_group_is_named_when_it_starts(capsys: pytest.CaptureFixture[str]) -> None:
    sharing = grouped(expand(["NCI1"], ["gin"]).cells, "cuda")
    for group in sharing:
        Lines("runs/none").start(group)
    assert capsys.readouterr().err.splitlines() == [
        "GIN sum, mean, vpa on NCI1: 3 cells, 30 trainings together."
    ]
