"""Planned steps against the plain loop. Without a GPU they run as they would be captured."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from gnn_vpa.graphs import FeatureKind, GraphSet, splits
from gnn_vpa.training import Lane, Outcome, Protocol, Task, captured, fit, level_tables
from gnn_vpa.training.lanes import families

SHORT = Protocol(epochs=2, batch_size=16)
FAMILIES = [
    *([Task(model, a) for a in ("sum", "mean", "vpa", "power(0.3)")] for model in ("gin", "gcn")),
    *([Task(model, "max")] for model in ("gin", "gcn")),
    *([Task(model, a) for a in ("default", "vpa", "power(0.3)")] for model in ("gat", "sgc")),
]


def lanes_of(graphs: GraphSet, count: int = 3, folds: int = 5) -> list[Lane]:
    return [Lane(fold, split) for fold, split in enumerate(splits(graphs.y, folds))][:count]


def curves_of(outcome: Outcome) -> np.ndarray:
    return np.stack([outcome.curve_train_loss, outcome.curve_val, outcome.curve_test])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f[0].model}-{f[0].aggr}")
@pytest.mark.parametrize("merging", [False, True], ids=["whole", "merged"])
@pytest.mark.parametrize("features", ["ones", "degree", "labels"])
@pytest.mark.sampled(5)
def test_tasks_side_by_side_equal_the_plain_loop(
    toy: GraphSet,
    reference: ModuleType,
    planned: None,
    family: list[Task],
    merging: bool,
    features: FeatureKind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if features == "degree":
        monkeypatch.setattr("gnn_vpa.training.trainer.MAX_DENSE_COLUMNS", 1)  # codes are looked up
    divides_rounding = {"mean", "max"} if features == "ones" and family[0].model == "gin" else {}
    tasks = [
        Task(task.model, task.aggr, features=features)
        for task in family
        if task.aggr not in divides_rounding  # all nodes are alike: see test_trainer.py
    ]
    if not tasks:
        pytest.skip("all nodes are alike: BatchNorm and Adam divide rounding by rounding")
    lanes = lanes_of(toy, 2)
    assert len(families(tasks)) == 1
    outcomes = fit(toy, tasks, SHORT, lanes, dtype=torch.float64, merging=merging)
    trainings = [(task, lane) for task in tasks for lane in lanes]
    for (task, lane), outcome in zip(trainings, outcomes, strict=True):
        expected = reference.train_one_fold(toy, task, SHORT, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f[0].model}-{f[0].aggr}")
@pytest.mark.sampled(4)
def test_graphs_without_nodes(
    hollow: GraphSet, reference: ModuleType, planned: None, family: list[Task]
) -> None:
    tasks = [Task(task.model, task.aggr, features="labels") for task in family]
    protocol = Protocol(epochs=2, batch_size=16 if tasks[0].model == "gin" else 3)
    lanes = lanes_of(hollow, 1)
    outcomes = fit(hollow, tasks, protocol, lanes, dtype=torch.float64)
    trainings = [(task, lane) for task in tasks for lane in lanes]
    for (task, lane), outcome in zip(trainings, outcomes, strict=True):
        expected = reference.train_one_fold(hollow, task, protocol, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f[0].model}-{f[0].aggr}")
@pytest.mark.sampled(3)
def test_a_giant_among_single_nodes(
    uneven: GraphSet, reference: ModuleType, planned: None, family: list[Task]
) -> None:
    tasks = [Task(task.model, task.aggr, features="labels") for task in family]
    lanes, protocol = lanes_of(uneven, 2), Protocol(epochs=2, batch_size=16)
    outcomes = fit(uneven, tasks, protocol, lanes, dtype=torch.float64)
    trainings = [(task, lane) for task in tasks for lane in lanes]
    for (task, lane), outcome in zip(trainings, outcomes, strict=True):
        expected = reference.train_one_fold(uneven, task, protocol, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=1e-9, atol=1e-9)


def test_sgc_with_wide_features_propagates_in_the_step(
    toy: GraphSet, reference: ModuleType, planned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(level_tables, "MAX_PROPAGATED_COLUMNS", 2)
    monkeypatch.setattr(level_tables, "_propagated", None)  # would fail, called beforehand
    tasks = [Task("sgc", aggr, features="degree") for aggr in ("default", "vpa")]
    lanes = lanes_of(toy, 2)
    outcomes = fit(toy, tasks, SHORT, lanes, dtype=torch.float64)
    trainings = [(task, lane) for task in tasks for lane in lanes]
    for (task, lane), outcome in zip(trainings, outcomes, strict=True):
        expected = reference.train_one_fold(toy, task, SHORT, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=0, atol=1e-9)


def test_steps_planned_one_by_one_are_the_same(
    toy: GraphSet, planned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, lanes = [Task("gin", "vpa"), Task("gin", "sum")], lanes_of(toy)
    expected = fit(toy, tasks, SHORT, lanes, dtype=torch.float64)
    monkeypatch.setattr(captured, "PLANNED_GRAPHS", 1)
    monkeypatch.setattr(captured, "EVALUATED_ROWS", 1)
    outcomes = fit(toy, tasks, SHORT, lanes, dtype=torch.float64)
    for got, right in zip(outcomes, expected, strict=True):
        np.testing.assert_allclose(curves_of(got), curves_of(right), rtol=0, atol=1e-12)


def test_too_little_memory_means_fewer_lanes(
    toy: GraphSet, planned: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tasks, lanes = [Task("gin", "vpa"), Task("gin", "sum")], lanes_of(toy)
    expected = fit(toy, tasks, SHORT, lanes, dtype=torch.float64)
    run = captured.CapturedGroup.run_epoch

    def run_epoch(self: captured.CapturedGroup) -> None:
        if len(self.lanes) > 2:
            raise torch.cuda.OutOfMemoryError("out of memory")
        run(self)

    monkeypatch.setattr(captured.CapturedGroup, "run_epoch", run_epoch)
    outcomes = fit(toy, tasks, SHORT, lanes, dtype=torch.float64)
    assert "6 trainings at once do not fit into the GPU's memory, going on with 3" in caplog.text
    for got, right in zip(outcomes, expected, strict=True):
        np.testing.assert_allclose(curves_of(got), curves_of(right), rtol=0, atol=1e-12)


def test_an_interrupted_run_of_several_tasks_goes_on(
    toy: GraphSet, planned: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("gnn_vpa.training.checkpoint._PAUSE", 0.0)
    tasks = [Task("gcn", aggr) for aggr in ("sum", "max", "vpa")]
    lanes, path, protocol = lanes_of(toy, 2), tmp_path / "state.pt", replace(SHORT, epochs=3)
    expected = fit(toy, tasks, protocol, lanes, dtype=torch.float64)
    calls = []

    class Killed(Exception):
        pass

    def stop(done: int) -> None:
        calls.append(done)
        if len(calls) % 2 == 0:
            raise Killed

    for _ in range(20):
        try:
            outcomes = fit(
                toy, tasks, protocol, lanes, dtype=torch.float64, checkpoint=path, progress=stop
            )
            break
        except Killed:
            assert path.exists()
    for got, right in zip(outcomes, expected, strict=True):
        np.testing.assert_allclose(curves_of(got), curves_of(right), rtol=0, atol=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f[0].model}-{f[0].aggr}")
@pytest.mark.parametrize("features", ["degree", "labels"])
def test_on_a_gpu_too(
    toy: GraphSet,
    reference: ModuleType,
    family: list[Task],
    features: FeatureKind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    if features == "degree":
        monkeypatch.setattr("gnn_vpa.training.trainer.MAX_DENSE_COLUMNS", 1)
    tasks = [Task(task.model, task.aggr, features=features) for task in family]
    lanes = lanes_of(toy, 2)
    outcomes = fit(toy, tasks, SHORT, lanes, dtype=torch.float64, device="cuda")
    trainings = [(task, lane) for task in tasks for lane in lanes]
    for (task, lane), outcome in zip(trainings, outcomes, strict=True):
        expected = reference.train_one_fold(toy, task, SHORT, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f[0].model}-{f[0].aggr}")
@pytest.mark.parametrize("features", ["degree", "labels"])
@pytest.mark.sampled(4)
def test_rows_in_bfloat16_train_as_rows_in_float32_do_up_to_their_rounding(
    toy: GraphSet,
    planned: None,
    family: list[Task],
    features: FeatureKind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gnn_vpa.training.trainer.MAX_DENSE_COLUMNS", 1)  # degrees are looked up
    tasks = [Task(task.model, task.aggr, features=features) for task in family]
    lanes = lanes_of(toy, 1)
    exact, half = Protocol(epochs=2, batch_size=512), Protocol(2, 512, precision="bfloat16")
    expected = fit(toy, tasks, exact, lanes)
    outcomes = fit(toy, tasks, half, lanes)
    for one, other in zip(outcomes, expected, strict=True):
        assert one.curve_train_loss.dtype == np.float32
        np.testing.assert_allclose(one.curve_train_loss, other.curve_train_loss, rtol=0.03)
        assert not np.allclose(one.curve_train_loss, other.curve_train_loss, rtol=1e-7, atol=0)
