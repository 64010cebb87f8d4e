"""Lanes against the plain loop, and against themselves after an interruption."""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import FeatureKind, GraphSet, Split, load, splits
from gnn_vpa.training import Lane, Outcome, Protocol, Task, fit
from gnn_vpa.training.seldom import Seldom

METHODS = [
    *(("gin", aggr) for aggr in ("sum", "mean", "max", "vpa")),
    *(("gcn", aggr) for aggr in ("sum", "mean", "max", "vpa")),
    *((model, aggr) for model in ("gat", "sgc") for aggr in ("default", "vpa")),
]
SHORT = Protocol(epochs=2, batch_size=16)


def lanes_of(graphs: GraphSet, count: int = 3, folds: int = 5) -> list[Lane]:
    return [Lane(fold, split) for fold, split in enumerate(splits(graphs.y, folds))][:count]


def curves_of(outcome: Outcome) -> np.ndarray:
    return np.stack([outcome.curve_train_loss, outcome.curve_val, outcome.curve_test])


@pytest.mark.parametrize(("model", "aggr"), METHODS)
@pytest.mark.parametrize("merging", [False, True], ids=["whole", "merged"])
@pytest.mark.parametrize("features", ["ones", "degree", "labels"])
@pytest.mark.sampled(7)
def test_two_epochs_equal_the_plain_loop(
    toy: GraphSet,
    reference: ModuleType,
    model: str,
    aggr: str,
    merging: bool,
    features: FeatureKind,
) -> None:
    if model == "gin" and aggr in ("mean", "max") and features == "ones":
        pytest.skip("all nodes are alike: BatchNorm and Adam divide rounding by rounding")
    task, lanes = Task(model, aggr, features=features), lanes_of(toy, 2)
    outcomes = fit(toy, task, SHORT, lanes, dtype=torch.float64, merging=merging)
    for lane, outcome in zip(lanes, outcomes, strict=True):
        expected = reference.train_one_fold(toy, task, SHORT, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("model", "aggr"), METHODS)
@pytest.mark.sampled(5)
def test_a_giant_among_single_nodes_equals_the_plain_loop(
    uneven: GraphSet, reference: ModuleType, model: str, aggr: str
) -> None:
    task, lanes = Task(model, aggr, features="labels"), lanes_of(uneven, 1)
    outcomes = fit(uneven, task, SHORT, lanes, dtype=torch.float64)
    for lane, outcome in zip(lanes, outcomes, strict=True):
        expected = reference.train_one_fold(uneven, task, SHORT, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("model", "aggr"), METHODS)
@pytest.mark.sampled(5)
def test_graphs_without_nodes_equal_the_plain_loop(
    hollow: GraphSet, reference: ModuleType, model: str, aggr: str
) -> None:
    # With BatchNorm PyTorch needs two nodes in a batch; otherwise a batch may be without nodes.
    protocol = Protocol(epochs=2, batch_size=16 if model == "gin" else 3)
    task, lanes = Task(model, aggr, features="labels"), lanes_of(hollow, 1)
    outcomes = fit(hollow, task, protocol, lanes, dtype=torch.float64)
    for lane, outcome in zip(lanes, outcomes, strict=True):
        expected = reference.train_one_fold(hollow, task, protocol, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("aggr", ["vpa", "max"])
def test_batches_without_nodes_are_trained_on(hollow: GraphSet, aggr: str) -> None:
    alone = Protocol(epochs=1, batch_size=1)
    (outcome,) = fit(hollow, Task("gin", aggr), alone, lanes_of(hollow, 1))
    assert outcome.diverged_epoch is None


@pytest.mark.parametrize(("model", "aggr"), METHODS)
@pytest.mark.sampled(5)
def test_real_data_equals_the_plain_loop(
    tu_dir: Path, reference: ModuleType, model: str, aggr: str
) -> None:
    graphs = load("MUTAG", data_dir=tu_dir)
    task, lanes, protocol = Task(model, aggr), lanes_of(graphs, 2, 10), Protocol(epochs=1)
    outcomes = fit(graphs, task, protocol, lanes, dtype=torch.float64)
    for lane, outcome in zip(lanes, outcomes, strict=True):
        expected = reference.train_one_fold(graphs, task, protocol, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("aggr", ["default", "vpa"])
def test_wide_features_are_not_written_out(
    toy: GraphSet, reference: ModuleType, monkeypatch: pytest.MonkeyPatch, aggr: str
) -> None:
    monkeypatch.setattr("gnn_vpa.training.level_tables.MAX_PROPAGATED_COLUMNS", 2)
    task, lanes = Task("sgc", aggr, features="degree"), lanes_of(toy, 2)
    outcomes = fit(toy, task, SHORT, lanes, dtype=torch.float64)
    for lane, outcome in zip(lanes, outcomes, strict=True):
        expected = reference.train_one_fold(toy, task, SHORT, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=0, atol=1e-9)


def test_what_runs_beside_a_lane_does_not_matter(toy: GraphSet) -> None:
    task, lanes = Task("gin", "vpa"), lanes_of(toy, 4)
    together = fit(toy, task, SHORT, lanes, dtype=torch.float64)
    torch.manual_seed(99)  # nor does the global generator
    alone = fit(toy, task, SHORT, lanes[2:3], dtype=torch.float64)[0]
    np.testing.assert_allclose(curves_of(together[2]), curves_of(alone), atol=1e-9)


def test_seeds_and_folds_differ(toy: GraphSet) -> None:
    split = lanes_of(toy)[0].split
    lanes = [Lane(0, split, seed=0), Lane(0, split, seed=1), Lane(1, split, seed=0)]
    losses = [o.curve_train_loss[0] for o in fit(toy, Task("gin", "vpa"), SHORT, lanes)]
    assert len(set(losses)) == 3


def test_the_global_generator_is_left_alone(toy: GraphSet) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(toy, Task("gin", "vpa"), SHORT, lanes_of(toy, 1))
    # The model that is built to look at its shapes draws too, so the state must be restored.
    assert torch.equal(torch.rand(3), expected)


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize(("model", "aggr"), [("gin", "vpa"), ("gcn", "max"), ("gat", "vpa")])
def test_an_interrupted_training_goes_on_to_the_same_bits(
    toy: GraphSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, aggr: str
) -> None:
    monkeypatch.setattr("gnn_vpa.training.checkpoint._PAUSE", 0.0)
    monkeypatch.setattr("gnn_vpa.training.trainer.CACHED_ROWS", 200)  # several groups of lanes
    task, lanes, protocol = Task(model, aggr), lanes_of(toy, 4), Protocol(epochs=4, batch_size=16)
    expected = fit(toy, task, protocol, lanes)
    path = tmp_path / "state.pt"
    calls = []

    def stop(epoch: int) -> None:
        calls.append(epoch)
        if len(calls) % 3 == 0:
            raise Killed

    for _ in range(30):
        try:
            outcomes = fit(toy, task, protocol, lanes, checkpoint=path, progress=stop)
            break
        except Killed:
            assert path.exists()
    else:
        pytest.fail("no progress between interruptions")
    assert len(calls) > 6
    for got, right in zip(outcomes, expected, strict=True):
        assert np.array_equal(curves_of(got), curves_of(right))
        assert (got.fold, got.best_epoch, got.test_score) == (
            right.fold,
            right.best_epoch,
            right.test_score,
        )


@pytest.mark.parametrize("damage", ["truncated", "no file of ours", "another training"])
def test_a_checkpoint_that_does_not_fit_is_ignored(
    toy: GraphSet, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    task, lanes, path = Task("sgc", "vpa"), lanes_of(toy, 2), tmp_path / "state.pt"
    other = Protocol(epochs=5, batch_size=16) if damage == "another training" else SHORT
    fit(toy, task, other, lanes, checkpoint=path)
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:500])
    elif damage == "no file of ours":
        path.write_text("hello")
    again = fit(toy, task, SHORT, lanes, checkpoint=path)
    assert "starting anew" in caplog.text
    expected = fit(toy, task, SHORT, lanes)
    assert all(
        np.array_equal(curves_of(a), curves_of(b)) for a, b in zip(again, expected, strict=True)
    )


def test_a_finished_checkpoint_gives_the_outcomes_back(toy: GraphSet, tmp_path: Path) -> None:
    task, lanes, path = Task("sgc", "vpa"), lanes_of(toy, 2), tmp_path / "state.pt"
    first = fit(toy, task, SHORT, lanes, checkpoint=path)
    called: list[int] = []
    again = fit(toy, task, SHORT, lanes, checkpoint=path, progress=called.append)
    assert called == []
    assert [o.test_score for o in again] == [o.test_score for o in first]


def test_a_lane_that_diverges_harms_no_other(
    toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, lanes = Task("gin", "sum"), lanes_of(toy, 3)
    expected = fit(toy, task, SHORT, lanes)
    from gnn_vpa.training.stacked_group import StackedGroup

    make = StackedGroup.__init__

    def broken(self: StackedGroup, *args: Any) -> None:
        make(self, *args)
        with torch.no_grad():
            for row, lane in enumerate(self.lanes):
                if lane.fold == 1:
                    next(iter(self.params.values()))[row] = torch.inf

    monkeypatch.setattr(StackedGroup, "__init__", broken)
    outcomes = fit(toy, task, SHORT, lanes)
    assert outcomes[1].diverged_epoch == 0
    assert np.isnan(outcomes[1].test_score)
    for lane in (0, 2):
        assert outcomes[lane].diverged_epoch is None
        assert np.array_equal(curves_of(outcomes[lane]), curves_of(expected[lane]))


def test_lanes_of_different_length_do_not_share_steps(toy: GraphSet) -> None:
    everyone = torch.arange(90)
    short = Split(everyone[:16], everyone[70:80], everyone[80:])
    long = Split(everyone[:33], everyone[70:80], everyone[80:])
    lanes = [Lane(0, short), Lane(1, long), Lane(2, short)]
    task = Task("gcn", "vpa")
    together = fit(toy, task, SHORT, lanes, dtype=torch.float64)
    for lane, outcome in zip(lanes, together, strict=True):
        alone = fit(toy, task, SHORT, [lane], dtype=torch.float64)[0]
        np.testing.assert_allclose(curves_of(outcome), curves_of(alone), atol=1e-9)


def test_progress_counts_to_the_number_of_epochs(toy: GraphSet) -> None:
    seen: list[int] = []
    fit(toy, Task("sgc", "vpa"), SHORT, lanes_of(toy, 4), progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == SHORT.epochs


def test_bad_input_is_named(toy: GraphSet) -> None:
    lanes, task = lanes_of(toy, 1), Task("gin", "vpa")
    with pytest.raises(UsageError, match="epochs"):
        fit(toy, task, Protocol(epochs=0), lanes)
    with pytest.raises(UsageError, match="lanes"):
        fit(toy, task, SHORT, [])
    empty = Split(lanes[0].split.train, torch.empty(0, dtype=torch.long), lanes[0].split.test)
    with pytest.raises(UsageError, match="fold 7 of toy has no valid graphs"):
        fit(toy, task, SHORT, [Lane(7, empty)])
    with pytest.raises(UsageError, match="gnn"):
        fit(toy, Task("gnn", "vpa"), SHORT, lanes)


@pytest.mark.gpu
@pytest.mark.parametrize(("model", "aggr"), METHODS)
def test_the_gpu_computes_what_the_cpu_does(toy: GraphSet, model: str, aggr: str) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    task, lanes = Task(model, aggr), lanes_of(toy)
    there = fit(toy, task, SHORT, lanes, device="cuda", dtype=torch.float64)
    here = fit(toy, task, SHORT, lanes, dtype=torch.float64)
    for got, expected in zip(there, here, strict=True):
        np.testing.assert_allclose(curves_of(got), curves_of(expected), rtol=0, atol=1e-9)


def test_curves_are_told_while_they_grow_and_at_the_end_are_those_of_the_outcomes(
    toy: GraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seldom, "is_due", lambda _: True)
    seen: dict[int, list[np.ndarray]] = {}

    def curves(places: Sequence[int], grown: Sequence[np.ndarray]) -> None:
        for place, own in zip(places, grown, strict=True):
            seen.setdefault(place, []).append(own)

    tasks = [Task("gin", "vpa"), Task("gin", "sum")]
    outcomes = fit(toy, tasks, SHORT, lanes_of(toy), curves=curves)
    assert sorted(seen) == list(range(6))
    for place, outcome in enumerate(outcomes):
        assert [own.shape for own in seen[place]] == [(3, 1), (3, 2), (3, 2)]
        for own in seen[place]:
            np.testing.assert_array_equal(own, curves_of(outcome)[:, : own.shape[1]])
