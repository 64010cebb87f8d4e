"""Cells that are trained in one go, and what is recorded of each."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gnn_vpa.experiments import (
    Cell,
    Group,
    Progress,
    expand,
    grouped,
    groups,
    identify,
    preset,
    protocols,
    read_curves,
    read_folds,
    run_grid,
    runner,
    train_group,
    try_lock,
)
from gnn_vpa.experiments.groups import shortened
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Outcome, Protocol, checkpoint

from .conftest import FakeFit


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let cells be grouped on the CPU as they are on a GPU."""
    monkeypatch.setattr(groups, "shares_steps", lambda _: True)


class Seen(Progress):
    def __init__(self, stop_at: int | None = None) -> None:
        self.started: list[str] = []
        self.shares: list[float] = []
        self.done: list[int] = []
        self._stop_at = stop_at

    def start(self, group: Group) -> None:
        self.started.append(str(group))

    def epochs(self, group: Group, done: int) -> None:
        self.done.append(done)
        if done == self._stop_at:
            raise KeyboardInterrupt

    def finish(self, cell: Cell, outcomes: Any, seconds: float) -> None:
        self.shares.append(seconds)


def test_both_tables_are_divided_into_what_shares_an_architecture() -> None:
    cells = preset("table1") + preset("table-a1")
    found = grouped(cells, "cuda")
    # GIN and GCN: linear aggregations, and max; SGC and GAT: both aggregations.
    assert len(found) == (9 + 5) * 6
    assert Counter(cell for group in found for cell in group.cells) == Counter(cells)
    for group in found:
        alike = {replace(cell.task, aggr="") for cell in group.cells}
        assert len(alike) == 1
        assert len({(cell.dataset, cell.protocol, cell.folds) for cell in group.cells}) == 1


def test_seeds_run_side_by_side() -> None:
    cells = expand(["MUTAG"], ["sgc"], seeds=[0, 3]).cells
    (group,) = grouped(cells, "cuda")
    assert str(group) == "SGC default, vpa on MUTAG, seeds 0, 3"
    assert [(cell.task.aggr, cell.seed) for cell in group.cells] == [
        ("default", 0), ("default", 3), ("vpa", 0), ("vpa", 3),
    ]  # fmt: skip


def test_a_group_has_the_same_seeds_of_every_task() -> None:
    cells = expand(["MUTAG"], ["sgc"], seeds=[0, 3]).cells
    left = grouped(cells[1:], "cuda")  # without the default form's seed 0
    assert [str(group) for group in left] == [
        "SGC vpa on MUTAG, seeds 0, 3",
        "SGC on MUTAG, seed 3",
    ]
    for group in left:
        assert len(group.cells) == len(group.methods) * len(group.runs)


def test_baselines_and_the_cpu_keep_to_single_cells() -> None:
    cells = expand(["MUTAG"], ["sgc"], baselines=["majority", "wl"]).cells
    assert [len(group.cells) for group in grouped(cells, "cuda")] == [2, 1, 1]
    assert [len(group.cells) for group in grouped(cells, "cpu")] == [1, 1, 1, 1]


@pytest.mark.usefixtures("sharing")
def test_each_cell_gets_its_own_outcomes(
    tmp_path: Path, toy: GraphSet, monkeypatch: pytest.MonkeyPatch, fake_fit: FakeFit
) -> None:
    def fit(
        graphs: GraphSet, tasks: Any, protocols: list[Protocol], lanes: Any, **_: Any
    ) -> list[Outcome]:
        """Give each training an accuracy that names it."""
        worth = {"sum": 0.1, "mean": 0.2, "vpa": 0.4, "max": 0.8}
        return [
            replace(
                fake_fit.outcome(lane, protocols[0].epochs), test_score=worth[task.aggr] + lane.seed
            )
            for task in tasks
            for lane in lanes
        ]

    monkeypatch.setattr(train_group, "fit", fit)
    cells = expand(["MUTAG"], protocol=Protocol(epochs=3), folds=4, seeds=[0, 1]).cells
    seen = Seen()
    run_grid(cells, tmp_path, device="cpu", progress=seen, workers=1)
    assert seen.started == [
        "GIN sum, mean, vpa on MUTAG, seeds 0, 1",
        "GIN max on MUTAG, seeds 0, 1",
    ]
    found = read_folds(tmp_path).groupby(["aggregation", "seed"])["test_score"].mean()
    assert found.round(6).to_dict() == {
        ("sum", 0): 0.1, ("sum", 1): 1.1, ("mean", 0): 0.2, ("mean", 1): 1.2,
        ("vpa", 0): 0.4, ("vpa", 1): 1.4, ("max", 0): 0.8, ("max", 1): 1.8,
    }  # fmt: skip
    assert len(set(seen.shares[:6])) == 1  # cells of a group share its time equally


@pytest.mark.usefixtures("sharing")
def test_a_group_records_what_single_cells_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=2), folds=2, seeds=[0, 1]).cells
    run_grid(cells, tmp_path / "together", device="cpu", workers=1)
    monkeypatch.setattr(groups, "shares_steps", lambda _: False)
    run_grid(cells, tmp_path / "alone", device="cpu", workers=1)
    keys = ["aggregation", "seed", "fold"]
    together, alone = (
        read_folds(tmp_path / name).drop(columns="seconds").set_index(keys).sort_index()
        for name in ("together", "alone")
    )
    pd.testing.assert_frame_equal(together, alone)


@pytest.mark.usefixtures("sharing")
def test_an_interrupted_group_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_PAUSE", 0.0)
    cells = identify(expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=4), folds=2).cells).cells
    run_grid(cells, tmp_path / "whole", device="cpu", workers=1)
    broken = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        run_grid(cells, broken, device="cpu", progress=Seen(stop_at=3), workers=1)
    assert [path.name for path in (broken / "checkpoints").iterdir()] == [f"{cells[0].key}.pt"]
    rest = Seen()
    run_grid(cells, broken, device="cpu", progress=rest, workers=1)
    assert rest.done[0] == 3  # the first cell and half of the second were trained before
    pd.testing.assert_frame_equal(read_curves(broken), read_curves(tmp_path / "whole"))
    assert not (broken / "checkpoints").exists()


@pytest.mark.usefixtures("sharing")
def test_a_cell_that_another_process_runs_is_left_out_of_the_group(
    tmp_path: Path, fake_fit: FakeFit, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = identify(expand(["MUTAG"], aggrs=["sum", "mean", "vpa"], folds=4).cells).cells
    lock = try_lock(tmp_path / "checkpoints" / f"{cells[1].key}.lock")
    assert lock.__enter__()

    class Waiting(Seen):
        def wait(self, waiting: Any) -> None:
            assert self.started == ["GIN sum, vpa on MUTAG"]
            lock.__exit__(None, None, None)

    seen = Waiting()
    monkeypatch.setattr(runner, "_POLL_S", 0.0)
    run_grid(cells, tmp_path, device="cpu", progress=seen, workers=1)
    assert seen.started == ["GIN sum, vpa on MUTAG", "GIN+mean on MUTAG"]
    assert len(read_folds(tmp_path)) == 3 * 4


def test_the_whole_paper_has_each_cell_once_and_sgc_with_both_k() -> None:
    cells = preset("paper")
    published = set(preset("table1") + preset("table-a1"))
    assert len(published) == 168
    assert len(set(cells)) == len(cells)
    more = [cell for cell in cells if cell not in published]
    assert len(more) == 28
    assert {(cell.task.model, cell.task.options) for cell in more} == {("sgc", (("K", 5),))}
    assert len(preset("paper", "printed")) == 168


def test_many_seeds_are_named_as_a_range() -> None:
    (group,) = grouped(expand(["MUTAG"], ["gin"], ["vpa"], seeds=range(2500)).cells, "cuda")
    assert str(group) == "GIN vpa on MUTAG, seeds 0 to 2499"
    assert shortened([3, 1, 2, *range(10, 30), 40]) == ["1 to 3", "10 to 29", "40"]


# Settings and repeats ---------------------------------------------------------------------------


def test_settings_that_change_no_shapes_share_a_step() -> None:
    grid = expand(
        ["MUTAG"],
        aggrs=["sum", "vpa"],
        protocol=protocols({"lr": "0.01,0.001", "weight_decay": "0,0.1", "batch_size": "32,64"}),
        options={"width": [8, 16]},
        repeats=2,
    )
    found = grouped(grid.cells, "cuda")
    assert len(found) == 2 * 2  # widths and sizes of batches
    assert Counter(cell for group in found for cell in group.cells) == Counter(grid.cells)
    for group in found:
        assert len(group.cells) == len(group.methods) * len(group.runs) == 2 * 4 * 2
    assert str(found[0]) == "GIN (4 settings) sum, vpa on MUTAG, repeats 0, 1"


def test_a_choice_stands_alone() -> None:
    grid = expand(
        ["MUTAG"], aggrs=["sum", "vpa"], protocol=protocols({"lr": "0.01,0.001"}), final_runs=3,
        seeds=[0, 1],
    )  # fmt: skip
    sizes = Counter(len(group.cells) for group in grouped(grid.cells, "cuda"))
    assert sizes == {1: 4, 8: 1}


@pytest.mark.usefixtures("sharing")
def test_a_group_of_settings_and_repeats_records_what_single_cells_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = expand(
        ["MUTAG"],
        ["sgc"],
        protocol=protocols({"lr": "0.01,0.001", "epochs": 2}),
        folds=2,
        repeats=2,
    ).cells
    seen = Seen()
    run_grid(cells, tmp_path / "together", device="cpu", workers=1, progress=seen)
    assert len(seen.started) == 1
    monkeypatch.setattr(groups, "shares_steps", lambda _: False)
    run_grid(cells, tmp_path / "alone", device="cpu", workers=1)
    keys = ["aggregation", "protocol", "repeat", "fold"]
    together, alone = (
        read_folds(tmp_path / name).drop(columns="seconds").set_index(keys).sort_index()
        for name in ("together", "alone")
    )
    assert len(together) == 2 * 2 * 2 * 2
    pd.testing.assert_frame_equal(together, alone)


def test_repeats_have_other_folds_and_other_random_numbers(tmp_path: Path) -> None:
    cells = expand(["MUTAG"], ["sgc"], ["vpa"], protocol=Protocol(epochs=1), folds=2, repeats=2)
    run_grid(cells.cells, tmp_path, device="cpu")
    folds = read_folds(tmp_path)
    assert folds.set_index(["repeat", "fold"]).index.tolist() == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert folds["train_loss"].nunique() == 4
    # More repeats are added later: those that are there keep their keys.
    more = expand(["MUTAG"], ["sgc"], ["vpa"], protocol=Protocol(epochs=1), folds=2, repeats=3)
    kept = {cell.key for cell in identify(cells.cells).cells}
    assert kept < {cell.key for cell in identify(more.cells).cells}
