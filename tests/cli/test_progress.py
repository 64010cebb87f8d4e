"""What a run tells about itself."""

import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gnn_vpa.cli._progress import Lines, log_noted
from gnn_vpa.experiments import Pace, expand, grouped, identify, preset, run_grid
from gnn_vpa.experiments.estimate import Paces
from gnn_vpa.experiments.workers import Order, run_alone
from gnn_vpa.training import Outcome, Protocol


def test_a_cell_finished_beside_this_process_shows_what_came_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=2), folds=3).cells
    cells = identify(asked).cells
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
    paces = [Pace("MUTAG", "sgc", 0.1, 3445.0)]  # 100 s for a cell
    monkeypatch.setattr(Paces, "seen", lambda _: paces)
    cells = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=100), folds=10).cells
    for waited, left in ((50.0, "50 s"), (1000.0, "1 min 40 s")):  # a process that waits for
        lines = Lines(tmp_path)  # nobody is not slower than itself
        lines.plan(cells, finished=0)
        now += waited
        lines._is_told(cells[0])
        assert lines.time_left().startswith(f"; about {left}")


def test_on_a_gpu_the_first_line_says_how_long_it_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = preset("paper")
    Lines(tmp_path, "cuda", speed=1.36).plan(cells, finished=0)
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "196 cells to run; about 8 min 50 s (2 min 57 s to 27 min) left if this GPU is as fast as "
        "an H200."
    )
    pace = Pace("RDT-M5K", "gin", 0.1, 4e6, gpu=True)
    monkeypatch.setattr(Paces, "seen", lambda _: [pace])
    Lines(tmp_path, "cuda").plan(cells[:9], finished=1)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("9 cells to run, 1 finished before; about ")
    assert line.endswith(" left.")


def test_of_very_many_cells_there_is_a_line_for_each_percent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(Paces, "seen", lambda _: [Pace("MUTAG", "sgc", 0.05, 3445.0)])
    protocol = Protocol(epochs=1)
    cells = expand(["MUTAG"], ["sgc"], ["vpa"], protocol=protocol, seeds=range(5000)).cells
    lines, outcome = Lines(tmp_path), Outcome.of(0, 0, *(np.full(1, 0.5, np.float32),) * 3)
    lines.plan(cells, finished=7)
    for cell in cells:
        now += 0.5
        lines.finish(cell, [outcome] * 10, 0.5)
    first, *shown = capsys.readouterr().err.splitlines()
    left = "about 42 min (28 min to 1 h 2 min) left"
    assert first == f"5,000 cells to run, 7 finished before; {left}."
    assert len(shown) == 100
    assert shown[0] == (
        "[57/5007] 50 more cells, the last: SGC+vpa on MUTAG, seed 49: 50.0 ± 0.0 %, 1 s; "
        "120 cells a minute; about 41 min (28 min to 1 h 2 min) left"
    )
    assert shown[-1].startswith("[5007/5007] 50 more cells, the last: ")


def test_of_very_many_cells_that_take_long_there_is_a_line_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    cells = expand(["MUTAG"], ["sgc"], ["vpa"], seeds=range(5000)).cells
    lines, outcome = Lines(tmp_path), Outcome.of(0, 0, *(np.full(1, 0.5, np.float32),) * 3)
    lines.plan(cells, finished=0)
    for cell in cells[:20]:
        now += 25.0
        lines.finish(cell, [outcome], 25.0)
    _, *shown = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in shown] == [f"[{n}/5000]" for n in range(3, 21, 3)]


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


def test_a_warning_of_another_process_is_passed_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["30 a fold is lost", "20 MUTAG: small", "a user prints this", "20 MUTAG: small too"]
    command = [sys.executable, "-c", "\n".join(f"print({line!r})" for line in lines)]
    started = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _, **how: started(command, **how))
    with log_noted(Lines("runs/none")):
        run_alone(Order([], Path(), None, "cpu"))
    assert capsys.readouterr().err.splitlines() == ["a fold is lost", "MUTAG: small"]


def test_a_group_is_named_when_it_starts(capsys: pytest.CaptureFixture[str]) -> None:
    sharing = grouped(expand(["NCI1"], ["gin"]).cells, "cuda")
    for group in sharing:
        Lines("runs/none").start(group)
    assert capsys.readouterr().err.splitlines() == [
        "GIN sum, mean, vpa on NCI1: 3 cells, 30 trainings together."
    ]
