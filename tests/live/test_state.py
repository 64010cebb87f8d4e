"""What there is to see of a run."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import Group
from gnn_vpa.experiments.journal import Journal
from gnn_vpa.experiments.progress import Grown
from gnn_vpa.live import Watched, state
from gnn_vpa.training import Protocol

from .conftest import Run


@pytest.fixture(autouse=True)
def _always_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_FRESH_S", 0.0)


def _settled(watched: Watched) -> dict[str, Any]:
    """The state with the answer of all that is finished."""
    ended = time.monotonic() + 60
    while True:
        found = watched.state()
        if found["answer"] is not None and found["answer"]["cells"] == found["done"]:
            return found
        assert time.monotonic() < ended
        time.sleep(0.02)


def test_a_run_is_waited_for_then_followed_then_shown_as_it_ended(run: Run) -> None:
    watched = Watched(run.folder)
    assert watched.state()["status"] == "waiting"
    cells = [run.cell("sum"), run.cell("vpa")]
    with Journal(run.folder, "cpu") as journal:
        journal.plan(cells, finished=0)
        journal.start(Group((cells[0],)))
        journal.write()
        found = watched.state()
        assert (found["status"], found["done"], found["total"]) == ("running", 0, 2)
        assert found["left"] is None  # nothing is known yet
        (at,) = found["running"]
        assert (at["group"], at["epoch"], at["epochs"]) == ("GIN+sum on toy", 0, 4)
        run.finish(cells[0])
        journal.finish(cells[0], [], 1.0)
        journal.start(Group((cells[1],)))
        journal.write()
        found = watched.state()
        assert (found["done"], found["total"], found["status"]) == (1, 2, "running")
        assert found["latest"][0]["score"] == "51.0 ± 1.0 %"
        run.finish(cells[1], score=0.9)
    found = _settled(watched)
    assert (found["status"], found["done"], found["total"]) == ("finished", 2, 2)
    assert found["running"] == []
    (question,) = found["answer"]["questions"]
    assert question["headline"].startswith("With GIN on toy, ")
    assert question["headline"].endswith("vpa or sum may be the best.")


def test_a_run_that_was_killed_is_stopped_and_nothing_of_it_is_running(run: Run) -> None:
    cells = [run.cell("sum"), run.cell("vpa")]
    try:
        with Journal(run.folder, "cpu") as journal:
            journal.plan(cells, finished=0)
            journal.start(Group((cells[0],)))
            journal.write()
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        run.finish(cells[0])
    found = Watched(run.folder).state()
    assert (found["status"], found["done"], found["total"]) == ("stopped", 1, 2)
    assert (found["running"], found["left"]) == ([], None)


def test_the_time_left_counts_the_epochs_that_are_done(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1e9]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    cells = [run.cell(aggr, protocol=Protocol(epochs=100)) for aggr in ("sum", "mean", "vpa")]
    group = Group((cells[0],))
    with Journal(run.folder, "cpu") as journal:
        journal.plan(cells, finished=0)
        journal.epochs(group, 0)
        journal.write()
        journal.epochs(group, 50)
        clock[0] += 60
        journal.write()
        # Half a cell took a minute: two and a half are left.
        assert Watched(run.folder).state()["left"] == "about 5 min (3 min 20 s to 7 min 30 s)"


def test_on_a_gpu_the_time_left_is_known_before_the_first_epoch(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1e9)
    cells = [replace(run.cell(aggr), dataset="RDT-M5K") for aggr in ("sum", "mean", "vpa")]
    cells = [replace(cell, protocol=Protocol(), folds=10) for cell in cells]
    with Journal(run.folder, "cuda") as journal:
        journal.plan(cells, finished=0)
        journal.write()
        assert Watched(run.folder).state()["left"] == "about 29 s (10 s to 1 min 26 s)"


def test_what_a_checkpoint_had_does_not_make_the_rest_look_short(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1e9]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    cell = run.cell(protocol=Protocol(epochs=100))
    group = Group((cell,))
    with Journal(run.folder, "cpu") as journal:
        journal.plan([cell], finished=0)
        journal.epochs(group, 80)  # where it goes on
        journal.epochs(group, 90)
        clock[0] += 60
        journal.write()
        assert Watched(run.folder).state()["left"] == "about 1 min (40 s to 1 min 30 s)"


def test_curves_grow_beside_those_that_are_finished(run: Run) -> None:
    done, growing = run.cell("sum"), run.cell("vpa")
    run.finish(done, diverged=[2])
    curves = np.array([[2.0, 1.0], [0.5, 0.6], [0.4, 0.5]], np.float32)
    with Journal(run.folder, "cpu") as journal:
        grown = [Grown(growing, 0, curves), Grown(growing, 1, curves * np.float32(np.inf))]
        journal.tell("here", Group((growing,)), 2, grown)
        journal.write()
        found = Watched(run.folder).state()
    (picture,) = found["pictures"]
    assert (picture["name"], picture["metric"], picture["epochs"]) == ("GIN on toy", "Accuracy", 4)
    finished, grows = picture["lines"]
    assert (finished["name"], finished["growing"], finished["loss"]) == (
        "sum", False, [2.0, 1.0, 0.8, 0.7],
    )  # fmt: skip
    assert (grows["name"], grows["growing"], grows["valid"]) == ("vpa", True, [0.5, 0.6])
    assert [(each["name"], each["folds"]) for each in found["diverged"]] == [
        ("GIN+vpa on toy", [1]), ("GIN+sum on toy", [2]),
    ]  # fmt: skip


def test_a_cell_that_is_recorded_is_not_shown_as_running_too(run: Run) -> None:
    first, second = run.cell("sum"), run.cell("vpa")
    curves = np.ones((3, 4), np.float32)
    with Journal(run.folder, "cpu") as journal:
        grown = [Grown(cell, 0, curves) for cell in (first, second)]
        journal.tell("one", Group((first,)), 4, grown[:1])
        journal.tell("two", Group((first, second)), 4, grown)
        journal.write()
        run.finish(first)  # and the journal does not know it yet
        found = Watched(run.folder).state()
    assert [at["worker"] for at in found["running"]] == ["two"]
    (picture,) = found["pictures"]
    assert [(line["name"], line["growing"]) for line in picture["lines"]] == [
        ("sum", False), ("vpa", True),
    ]  # fmt: skip


def test_of_a_large_grid_a_part_is_drawn_and_the_rest_is_counted(run: Run) -> None:
    run.finish(*(run.cell("vpa", seed=seed) for seed in range(10)))
    run.finish(*(run.cell("vpa", dataset=f"set {n}") for n in range(12)))
    found = Watched(run.folder).state()
    assert (len(found["pictures"]), found["pictures_left_out"]) == (12, 1)
    run.finish(run.cell("vpa", seed=10))
    found = Watched(run.folder).state()
    (first, *_) = found["pictures"]
    assert (first["name"], len(first["lines"]), first["left_out"]) == ("GIN on toy", 8, 3)
    assert len({line["colour"] for line in first["lines"]}) == 1  # the page gives them colours


def test_names_have_no_control_characters(run: Run) -> None:
    run.finish(run.cell(dataset="evil\x1b[31m\u202e<script>"))
    found = Watched(run.folder).state()
    assert found["latest"][0]["name"] == "GIN+vpa on evil[31m<script>"


def test_results_that_cannot_be_read_are_said_and_looked_at_again(run: Run) -> None:
    run.folder.mkdir()
    (run.folder / "results.sqlite").write_text("no results, and long enough to be none" * 100)
    found = Watched(run.folder).state()
    assert (found["status"], found["done"]) == ("error", 0)
    assert "no results file" in found["error"]


def test_the_results_file_names_the_run_too_and_another_file_does_not(run: Run) -> None:
    run.finish(run.cell())
    assert Watched(run.folder / "results.sqlite").state()["done"] == 1
    (run.folder / "report.html").write_text("")
    with pytest.raises(UsageError, match=r"report\.html is no run"):
        Watched(Path(run.folder, "report.html"))
