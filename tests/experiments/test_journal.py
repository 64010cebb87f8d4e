"""What a run is at, as another process sees it."""

import fcntl
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import Cell, Group, finished, locks, run_grid
from gnn_vpa.experiments.curve_lines import thinned
from gnn_vpa.experiments.journal import Journal
from gnn_vpa.experiments.journal_files import FOLDER, journals, plans, sweep
from gnn_vpa.experiments.progress import Grown
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Protocol, Task

from .conftest import FakeFit

CELL = Cell("toy", Task("gin", "vpa"), Protocol(epochs=50), folds=2, content="c0ffee")


def _grown(cell: Cell, fold: int, *losses: float) -> Grown:
    return Grown(cell, fold, np.array([losses, losses, losses], np.float32))


def test_a_reader_sees_what_each_worker_is_at_and_nothing_when_it_is_done(tmp_path: Path) -> None:
    with Journal(tmp_path, "cuda:1") as journal:
        journal.plan([CELL, replace(CELL, seed=1)], finished=3)
        journal.tell("node 3", Group((CELL,)), 20, [_grown(CELL, 0, 2.0, 1.0)], device="cuda:7")
        journal.start(Group((replace(CELL, seed=1),)))
        journal.write()
        (plan,), (entry,) = plans(tmp_path), journals(tmp_path)
        assert (list(plan.cells), plan.device, plan.is_alive) == (
            [CELL.key, replace(CELL, seed=1).key], "cuda:1", True,
        )  # fmt: skip
        assert plan.cells[CELL.key] == ("GIN+vpa on toy", ("toy", "gin", ""), 2 * 50)
        assert (entry.pid, entry.is_alive) == (os.getpid(), True)
        first, second = entry.workers
        assert (first["worker"], first["device"], first["epoch"], first["epochs"]) == (
            "node 3", "cuda:7", 20, 50,
        )  # fmt: skip
        assert first["lines"][0]["loss"] == [2.0, 1.0]
        assert second["group"] == "GIN+vpa on toy, seed 1"
        journal.tell("node 3", None)
        journal.finish(CELL, [], 1.0)
        journal.write()
        assert journals(tmp_path)[0].workers == []
    assert list(tmp_path.iterdir()) == []


def test_a_fold_is_told_as_diverged_when_its_last_loss_is_not_finite(tmp_path: Path) -> None:
    with Journal(tmp_path, "cpu") as journal:
        grown = [_grown(CELL, 0, 1.0, 0.5), _grown(CELL, 1, 1.0, float("inf"))]
        journal.tell("a", Group((CELL,)), grown=grown)
        journal.write()
        (line,) = journals(tmp_path)[0].workers[0]["lines"]
    assert line["diverged"] == [1]
    assert line["loss"] == [1.0, 0.5]  # of those that are finite


def test_epochs_that_a_checkpoint_had_are_told_apart(tmp_path: Path) -> None:
    with Journal(tmp_path, "cpu") as journal:
        group = Group((CELL,))
        journal.start(group)
        for epoch in (30, 31, 32):
            journal.epochs(group, epoch)
        journal.write()
        (at,) = journals(tmp_path)[0].workers
    assert (at["first"], at["epoch"]) == (30, 32)


def test_what_was_to_be_run_stays_when_a_run_is_interrupted_until_the_next_begins(
    tmp_path: Path,
) -> None:
    def run() -> None:
        with Journal(tmp_path, "cpu") as journal:
            journal.plan([CELL], finished=0)
            journal.write()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    (plan,) = plans(tmp_path)
    assert (list(plan.cells), plan.is_alive, journals(tmp_path)) == ([CELL.key], False, [])
    with Journal(tmp_path, "cpu") as other:
        sweep(tmp_path / FOLDER)
        assert plans(tmp_path) == []
        other.write()
        assert len(journals(tmp_path)) == 1  # the sweep spares who is there


def test_a_process_that_was_killed_is_not_shown_as_running(tmp_path: Path) -> None:
    with Journal(tmp_path, "cpu") as journal:
        journal.write()
        (news,) = (tmp_path / FOLDER).glob("*.now.json")
        content = news.read_text()
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "7-a.now.json").write_text(content)
    (folder / "7-a.lock").write_text("host 7\n")
    code = "import fcntl, sys, time; file = open(sys.argv[1], 'r+'); fcntl.flock(file, 2)\n"
    code += "print(flush=True); time.sleep(600)"
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, folder / "7-a.lock"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    assert [entry.is_alive for entry in journals(tmp_path)] == [True]
    sweep(folder)
    assert len(list(folder.iterdir())) == 2
    process.kill()
    process.wait()
    process.stdout.close()
    assert [entry.is_alive for entry in journals(tmp_path)] == [False]
    sweep(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_damaged_or_of_another_version_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "1-a.now.json").write_text('{"format": 1, "ho')
    (folder / "1-b.now.json").write_text(json.dumps({"format": 99}))
    (folder / "1-c.plan.json").write_text(json.dumps({"format": 99}))
    assert (journals(tmp_path), plans(tmp_path)) == ([], [])


def test_a_disk_that_cannot_be_written_to_does_not_stop_a_run(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("a file, where the folder should be")
    with Journal(tmp_path, "cpu") as journal:
        journal.plan([CELL], 0)
        journal.start(Group((CELL,)))
        journal.write()
    assert journals(tmp_path) == []


def test_curves_are_thinned_to_means_of_what_is_there() -> None:
    long = np.arange(3000, dtype=np.float32).reshape(3, 1000)
    found = thinned([long, long[:, :10] + 2])
    assert len(found["epoch"]) == 120
    assert (found["epoch"][0], found["epoch"][-1]) == (1, 1000)
    assert found["loss"][0] == 1.0  # the mean of 0 and 2
    assert (found["loss"][-1], found["valid"][-1], found["test"][-1]) == (999.0, 1999.0, 2999.0)
    assert thinned([]) == {"epoch": [], "loss": [], "valid": [], "test": []}
    assert thinned([np.full((3, 1), np.nan, np.float32)])["loss"] == [None]


def test_a_run_tells_its_journal_all_and_leaves_nothing(
    tmp_path: Path, fake_fit: FakeFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, float, int]] = []

    def tell(self: Journal, worker: str, group: Group | None, *rest: Any, **_: Any) -> None:
        told(self, worker, group, *rest)
        self.write()
        (entry,) = journals(tmp_path)
        seen.append((str(group), len(entry.workers), len(plans(tmp_path)[0].cells)))

    told = Journal.tell
    monkeypatch.setattr(Journal, "tell", tell)
    cells = [Cell("toy", Task("gin", aggr), Protocol(epochs=3), folds=2) for aggr in ("sum", "vpa")]
    run_grid(cells, tmp_path, device="cpu", workers=1)
    assert seen == [
        ("GIN+sum on toy", 1, 2), ("None", 0, 2), ("GIN+vpa on toy", 1, 2), ("None", 0, 2),
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["results.sqlite"]


def test_curves_of_a_real_training_reach_the_journal(
    tmp_path: Path, toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[dict[str, object]] = []

    def finish(self: Journal, *_: object) -> None:
        self.write()
        lines.extend(journals(tmp_path)[0].workers[0]["lines"])

    monkeypatch.setattr(Journal, "finish", finish)
    cell = Cell("toy", Task("gin", "vpa"), Protocol(epochs=3), folds=2, source=toy)
    run_grid([cell], tmp_path, device="cpu", workers=1)
    (line,) = lines
    assert (line["picture"], line["line"], line["epoch"]) == ("GIN on toy", "vpa", [1, 2, 3])
    assert None not in (line["loss"], line["valid"], line["test"])


def test_a_run_is_refused_before_it_trains_where_locks_exclude_nobody(
    tmp_path: Path, fake_fit: FakeFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_trusted", set())
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    cell = Cell("toy", Task("gin", "vpa"), Protocol(epochs=3), folds=2)
    with pytest.raises(GnnVpaError, match=f"do not exclude other processes in {tmp_path}"):
        run_grid([cell], tmp_path, device="cpu", workers=1)
    assert fake_fit.calls == []


def test_a_cell_whose_lock_was_given_to_another_host_is_recorded_and_said(
    tmp_path: Path, fake_fit: FakeFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(*arguments: object) -> object:
        (lock,) = (tmp_path / "checkpoints").glob("*.lock")
        lock.write_text("node9 77\n")  # what a process there does whose lock is another
        return made(*arguments)  # type: ignore[arg-type]

    made = fake_fit.outcome
    monkeypatch.setattr(fake_fit, "outcome", outcome)
    cell = Cell("toy", Task("gin", "vpa"), Protocol(epochs=3), folds=2)
    with pytest.raises(GnnVpaError, match=r"by process 77 on node9.*What is finished is kept"):
        run_grid([cell], tmp_path, device="cpu", workers=1)
    assert len(finished(tmp_path)) == 1
