"""What is run, what is not run again, and what is refused before anything is run."""

import errno
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gnn_vpa.analysis import split_by_setting
from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.experiments import (
    Cell,
    Progress,
    Store,
    afterwards,
    expand,
    identify,
    read_ceilings,
    read_curves,
    read_folds,
    read_provenance,
    rescue,
    run_grid,
    runner,
    train_group,
    try_lock,
)
from gnn_vpa.experiments.groups import Group
from gnn_vpa.experiments.store import query
from gnn_vpa.experiments.workers import Order
from gnn_vpa.graphs import Ceiling, FeatureKind, GraphSet
from gnn_vpa.training import Protocol

from .conftest import FakeFit


class Notes(Progress):
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.planned: tuple[int, int] | None = None

    def plan(self, pending: Sequence[Cell], finished: int) -> None:
        self.planned = len(pending), finished

    def note(self, text: str) -> None:
        self.texts.append(text)


def _cells(**settings: object) -> list[Cell]:
    protocol = Protocol(epochs=3)
    grid = expand(["MUTAG"], **{"protocol": protocol, "folds": 4, **settings})  # type: ignore[arg-type]
    return identify(grid.cells).cells


def test_each_cell_is_run_once(fake_fit: FakeFit, tmp_path: Path) -> None:
    run_grid(_cells(aggrs=["sum", "vpa"]), tmp_path, device="cpu")
    run_grid(_cells(), tmp_path, device="cpu")
    assert [aggr for _, aggr, _ in fake_fit.calls] == ["sum", "vpa", "mean", "max"]
    folds = read_folds(tmp_path)
    assert len(folds) == 4 * 4
    assert (folds["test_score"] == (folds["fold"] / 100).astype("float32")).all()
    assert len(read_curves(tmp_path)) == 4 * 4 * 3
    assert [path.name for path in tmp_path.iterdir()] == ["results.sqlite"]


def test_what_is_planned_counts_what_is_finished(fake_fit: FakeFit, tmp_path: Path) -> None:
    run_grid(_cells(aggrs=["sum"]), tmp_path, device="cpu")
    notes = Notes()
    run_grid(_cells(), tmp_path, device="cpu", progress=notes)
    assert notes.planned == (3, 1)


def test_another_protocol_in_the_same_folder_is_not_mixed(
    fake_fit: FakeFit, tmp_path: Path
) -> None:
    run_grid(_cells(aggrs=["vpa"]), tmp_path, device="cpu")
    assert set(read_folds(tmp_path)["protocol"]) == {""}  # one needs no name
    run_grid(_cells(aggrs=["vpa"], protocol=Protocol()), tmp_path, device="cpu")
    run_grid(_cells(aggrs=["vpa"], options={"width": 8}), tmp_path, device="cpu")
    folds = read_folds(tmp_path)
    assert set(folds["variant"]) == {"released"}
    columns = ["options", "protocol", "epochs", "batch_size", "learning_rate"]
    assert set(folds[columns].itertuples(index=False, name=None)) == {
        ("", "", 200, 64, 0.001),
        ("", "3 epochs", 3, 64, 0.001),
        ("width=8", "3 epochs", 3, 64, 0.001),
    }
    assert [str(setting) for setting, _ in split_by_setting(folds)] == [
        "models as released, the data's own node features",
        "models as released, 3 epochs, the data's own node features",
        "models as released, width=8, 3 epochs, the data's own node features",
    ]
    assert len(fake_fit.calls) == 3


def test_a_baseline_with_another_number_of_folds_is_not_mixed(
    fake_fit: FakeFit, tmp_path: Path
) -> None:
    for folds in (4, 10):
        cells = _cells(models=[], folds=folds, baselines=["majority"])
        run_grid(cells, tmp_path, device="cpu")
    counts = read_folds(tmp_path).groupby("aggregation")["fold"].count()
    assert counts.to_dict() == {"": 10, "4 folds": 4}


def test_a_diverged_fold_is_recorded_and_the_others_go_on(
    fake_fit: FakeFit, tmp_path: Path
) -> None:
    fake_fit.diverging = {2}
    notes = Notes()
    run_grid(_cells(aggrs=["vpa"]), tmp_path, device="cpu", progress=notes)
    folds = read_folds(tmp_path).set_index("fold")
    assert folds["status"].tolist() == ["done", "done", "diverged", "done"]
    assert folds.loc[2, "diverged_epoch"] == 1
    assert folds["test_score"].isna().tolist() == [False, False, True, False]
    assert notes.texts == ["GIN+vpa on MUTAG: fold 2 diverged in epoch 1"]


def test_a_failing_cell_leaves_those_before_it(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*args: object, **settings: object) -> object:
        if len(fake_fit.calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return fake_fit(*args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(train_group, "fit", fit)
    with pytest.raises(OSError, match="No space"):
        run_grid(_cells(), tmp_path, device="cpu")
    assert len(read_folds(tmp_path)) == 2 * 4
    monkeypatch.setattr(train_group, "fit", fake_fit)
    run_grid(_cells(), tmp_path, device="cpu")
    assert len(fake_fit.calls) == 4


def test_a_gpu_that_disappears_is_named_and_nothing_is_lost(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*args: object, **settings: object) -> object:
        if len(fake_fit.calls) == 2:
            raise RuntimeError("CUDA error: device(s) is/are busy or unavailable\nSearch for ...")
        return fake_fit(*args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(train_group, "fit", fit)
    with pytest.raises(GnnVpaError, match=r"busy or unavailable\).* is kept: run the same command"):
        run_grid(_cells(), tmp_path, device="cpu")
    assert len(read_folds(tmp_path)) == 2 * 4


def test_other_errors_of_a_training_keep_their_traceback(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: object, **__: object) -> object:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(train_group, "fit", fit)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        run_grid(_cells(), tmp_path, device="cpu")


def test_too_few_members_are_found_before_anything_is_trained(
    fake_fit: FakeFit, tmp_path: Path
) -> None:
    cells = _cells(aggrs=["sum"]) + _cells(aggrs=["vpa"], folds=30)
    with pytest.raises(UsageError, match=r"MUTAG: class 0 has 20 member.* use fewer folds"):
        run_grid(cells, tmp_path, device="cpu")
    assert fake_fit.calls == []


def test_features_that_the_data_do_not_have_are_refused_and_leave_no_folder(
    fake_fit: FakeFit, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="MUTAG"):
        run_grid(_cells(features="labels"), tmp_path / "run", device="cpu")
    assert fake_fit.calls == []
    assert not (tmp_path / "run").exists()


def test_leftovers_of_a_killed_process_are_removed(fake_fit: FakeFit, tmp_path: Path) -> None:
    cells = _cells(aggrs=["sum", "vpa"])
    run_grid(cells[:1], tmp_path, device="cpu")
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    for cell in cells:
        for ending in ("pt", "123.part", "lock"):
            (checkpoints / f"{cell.key}.{ending}").touch()
    run_grid(cells, tmp_path, device="cpu")
    assert not checkpoints.exists()
    assert len(fake_fit.calls) == 2


def test_a_cell_of_another_process_is_waited_for(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = _cells(aggrs=["sum", "vpa"])
    lock = try_lock(tmp_path / "checkpoints" / f"{cells[0].key}.lock")
    assert lock.__enter__()

    def other_process_dies(_: float) -> None:
        assert [aggr for _, aggr, _ in fake_fit.calls] == ["vpa"]
        lock.__exit__(None, None, None)

    # The runner's own clock: others, such as subprocess, may sleep too.
    clock = SimpleNamespace(sleep=other_process_dies, perf_counter=time.perf_counter)
    monkeypatch.setattr(runner, "time", clock)
    run_grid(cells, tmp_path, device="cpu")
    assert [aggr for _, aggr, _ in fake_fit.calls] == ["vpa", "sum"]


def test_a_cell_that_no_other_process_can_run_is_run_here_where_its_error_can_be_told(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, asked = _cells(aggrs=["sum", "vpa"]), []

    class KilledMeanwhile(Progress):
        def start(self, group: Group) -> None:
            if group.cells == (cells[0],):  # the lock of a process that was killed
                (tmp_path / "checkpoints" / f"{cells[1].key}.lock").write_text("host 1\n")

    def fails(order: Order) -> None:
        asked.append(list(order.cells))  # it cannot read the data, say

    monkeypatch.setattr(rescue, "run_alone", fails)
    run_grid(cells, tmp_path, device="cpu", progress=KilledMeanwhile())
    assert asked == [[cells[1]]]
    assert [aggr for _, aggr, _ in fake_fit.calls] == ["sum", "vpa"]


def test_two_runs_at_once_share_the_cells(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = _cells()

    def fit(*args: object, **settings: object) -> object:
        monkeypatch.setattr(train_group, "fit", fake_fit)
        run_grid(cells[1:], tmp_path, device="cpu")  # while the first cell is at work
        return fake_fit(*args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(train_group, "fit", fit)
    run_grid(cells, tmp_path, device="cpu")
    assert [aggr for _, aggr, _ in fake_fit.calls] == ["mean", "max", "vpa", "sum"]
    assert query(tmp_path, "SELECT session, count(*) AS cells FROM cells GROUP BY session") == [
        {"session": 1, "cells": 1},
        {"session": 2, "cells": 3},
    ]


def test_what_other_processes_finish_is_told_at_once_and_once(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, told = _cells(), []

    class Told(Progress):
        def start(self, group: Group) -> None:
            told.append(("start", group.cells[0].task.aggr))

        def elsewhere(self, cell: Cell) -> None:
            told.append(("elsewhere", cell.task.aggr))

    def fit(*args: object, **settings: object) -> object:
        monkeypatch.setattr(train_group, "fit", fake_fit)
        run_grid(cells[2:], tmp_path, device="cpu")  # while the first cell is at work
        return fake_fit(*args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(train_group, "fit", fit)
    run_grid(cells, tmp_path, device="cpu", progress=Told())
    first, second, third, fourth = (cell.task.aggr for cell in cells)
    others = [("elsewhere", third), ("elsewhere", fourth)]
    assert told == [("start", first), *others, ("start", second)]


def test_provenance_says_what_when_and_with_what(fake_fit: FakeFit, tmp_path: Path) -> None:
    run_grid(_cells(aggrs=["vpa"]), tmp_path, device="cpu", configuration={"command": "run"})
    provenance = read_provenance(tmp_path)
    session = provenance["sessions"]["1"]
    assert session["versions"]["torch"] == torch.__version__
    assert session["configuration"] == {"command": "run"}
    assert session["started"] <= session["finished"]
    assert provenance["configuration"]["epochs"] == [3]


def test_a_store_can_be_opened_twice(tmp_path: Path) -> None:
    with Store(tmp_path) as one, Store(tmp_path) as other:
        assert one.finished() == other.finished() == set()


def test_the_best_possible_accuracy_is_recorded_once(
    fake_fit: FakeFit, toy: GraphSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def best(graphs: GraphSet, kind: FeatureKind, rounds: int) -> list[Ceiling]:
        asked.append(kind)
        return [Ceiling(rounds, 1, 3 + len(asked), graphs.num_graphs)]

    monkeypatch.setattr(afterwards, "ceiling", best)
    for aggr, kind in (("vpa", "auto"), ("sum", "degree"), ("mean", "auto")):
        run_grid(_cells(aggrs=[aggr], features=kind), tmp_path, device="cpu")
    assert asked == ["auto", "degree"]
    graphs = toy.num_graphs
    expected = {("MUTAG", "auto"): 4 / graphs, ("MUTAG", "degree"): 5 / graphs}
    assert read_ceilings(tmp_path) == expected
