"""What the benchmark computes from what it measured."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from gnn_vpa.graphs import load, splits
from gnn_vpa.training import Protocol


def test_seconds_per_epoch_leave_out_the_preparation(
    benchmark_module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = benchmark_module("_cell")
    monkeypatch.setattr(cell.Cell, "run", lambda self, epochs: 5.0 + 0.25 * epochs)
    measured = cell.Cell(None, [], "cpu", epochs=8).measure().measure()
    assert (measured.epoch, measured.preparation, measured.first) == (0.25, 5.0, 5.25)
    assert cell.Cell(None, [], "cpu", seconds=6.0).epochs == 24
    assert cell.Cell(None, [], "cpu", seconds=1e9).epochs == Protocol().epochs


def test_more_lanes_are_the_folds_with_more_seeds(
    tu_dir: Path, benchmark_module: Callable[[str], ModuleType]
) -> None:
    graphs = load("MUTAG", data_dir=tu_dir)
    lanes = benchmark_module("_cell").lanes_of(graphs, 23)
    assert len({(lane.fold, lane.seed) for lane in lanes}) == 23
    assert torch.equal(lanes[12].split.test, splits(graphs.y)[2].test)


class Clock:
    """A clock that only the peer's work moves: a second for each step, ten for judging."""

    def __init__(self, graphs: int, steps: int) -> None:
        self.now, self.device = 0.0, "cpu"
        size = graphs // steps
        batch = type("Batch", (), {"num_graphs": size})
        self.loader = type("Loader", (list,), {"dataset": range(graphs)})([batch] * steps)

    def perf_counter(self) -> float:
        return self.now

    def train(self, batches: Iterable[object]) -> None:
        for _ in batches:
            self.now += 1.0

    def judge(self) -> None:
        self.now += 10.0


@pytest.mark.parametrize("seconds", [2.5, 1e9], ids=["some steps", "all steps"])
def test_an_epoch_of_the_peer_is_its_steps_and_one_judgement(
    benchmark_module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    cell = benchmark_module("_cell")
    clock = Clock(graphs=120, steps=12)
    monkeypatch.setattr(cell, "time", clock)
    assert cell.peer_epoch(clock, seconds) == pytest.approx(12 + 10)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_growth_rate_is_the_power(
    benchmark_module: Callable[[str], ModuleType], power: float
) -> None:
    edges = [1_000, 2_000, 8_000]
    points = [(count, 3e-4 * count**power) for count in edges]
    assert benchmark_module("training").growth_rate(points) == pytest.approx(power)


def test_random_graphs_are_as_large_as_asked(benchmark_module: Callable[[str], ModuleType]) -> None:
    graphs = benchmark_module("training").random_graphs(nodes=10, degree=8, count=20)
    assert (graphs.num_graphs, graphs.num_nodes, graphs.num_edges) == (20, 200, 1600)


def test_rows_are_kept_as_they_come(
    benchmark_module: Callable[[str], ModuleType],
    tmp_path: Path,
    tu_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GNN_VPA_DATA", str(tu_dir))
    training, record = benchmark_module("training"), benchmark_module("_record")
    out = tmp_path / "results.md"
    settings = training.Settings(
        datasets=["MUTAG", "NOWHERE"], parts=["cells", "lanes"], rounds=1, epochs=1, lanes=[1, 2]
    )
    training.report(settings, record.Record(out, machine="mine"))
    rows = [json.loads(line) for line in out.with_suffix(".jsonl").read_text().splitlines()]
    assert [row["part"] for row in rows] == ["note", "cells", "lanes", "lanes"]
    assert {row["machine"] for row in rows} == {"mine"}
    assert rows[1]["faster"] == rows[1]["peer, ten folds"] / rows[1]["ours, ten folds"]
    assert rows[3]["for each lane"] == rows[3]["an epoch"] / 2
    assert np.isclose(rows[3]["of one lane's alone"] * rows[2]["an epoch"] * 2, rows[3]["an epoch"])
    shown = capsys.readouterr()
    assert "NOWHERE left out" in shown.err
    assert shown.out == out.read_text()
    table = [line for line in shown.out.splitlines() if line.startswith("|")]
    assert len(table) == 2 * 2 + 3
