"""Folds of a user's model: the numbers of a plain loop, one by one and side by side."""

import importlib
import importlib.util
import logging
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.graphs import GraphSet, Split, splits
from gnn_vpa.training import (
    Lane,
    Outcome,
    Protocol,
    Task,
    Training,
    fit,
    initial_model,
)  # fmt: skip
from gnn_vpa.training.own import register
from gnn_vpa.training.own.groups import LanesGroup, LoopGroup

NAMES = ("gin", "gcn", "gat", "gatv2", "sage", "pna", "gine")
SHORT = Protocol(epochs=3, batch_size=16)
TWO = Protocol(epochs=2, batch_size=16)
MANNERS = ("loop", "lanes")


def lanes_of(graphs: GraphSet, count: int = 3) -> list[Lane]:
    return [Lane(fold, split) for fold, split in enumerate(splits(graphs.y, 5))][:count]


def curves_of(outcome: Outcome) -> np.ndarray:
    return np.stack([outcome.curve_train_loss, outcome.curve_val, outcome.curve_test])


@pytest.fixture(scope="session")
def plain() -> ModuleType:
    path = Path(__file__).parent / "plain.py"
    spec = importlib.util.spec_from_file_location("plain", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def manner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Train lanes side by side on the CPU, as on a GPU, or one by one."""
    name: str = request.param
    for place in ("own.family.shares_steps", "trainer._shares_steps"):
        monkeypatch.setattr(f"gnn_vpa.training.{place}", lambda device: name == "lanes")
    return name


both = pytest.mark.parametrize("manner", MANNERS, indirect=True)


@both
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("option", [("norm", "batch_norm"), ("dropout", 0.4)], ids=str)
@pytest.mark.sampled(8)
def test_two_epochs_equal_the_plain_loop(
    bonds: GraphSet,
    plain: ModuleType,
    caplog: pytest.LogCaptureFixture,
    name: str,
    option: tuple[str, Any],
    manner: str,
) -> None:
    caplog.set_level(logging.INFO)
    task, lanes = Task(f"own_nets:{name}", "", options=(option,)), lanes_of(bonds, 2)
    outcomes = fit(bonds, task, TWO, lanes, dtype=torch.float64)
    how = "one after the other, on the CPU" if manner == "loop" else "side by side, which gives"
    assert f"own_nets:{name} on bonds: folds are trained {how}" in caplog.text
    for lane, outcome in zip(lanes, outcomes, strict=True):
        expected = plain.train_one_fold(bonds, task, TWO, lane, torch.float64)
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(5)
def test_a_converted_model_has_the_same_numbers_side_by_side(
    bonds: GraphSet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.INFO)
    if name == "pna":
        pytest.skip("it has nothing to convert but its pooling function")
    task, lanes = Task(f"own_nets:{name}", "vpa"), lanes_of(bonds, 2)
    one_by_one = fit(bonds, task, TWO, lanes, dtype=torch.float64)
    monkeypatch.setattr("gnn_vpa.training.own.family.shares_steps", lambda device: True)
    together = fit(bonds, task, TWO, lanes, dtype=torch.float64)
    assert "side by side" in caplog.text
    for got, expected in zip(together, one_by_one, strict=True):
        np.testing.assert_allclose(curves_of(got), curves_of(expected), rtol=0, atol=1e-9)


@both
def test_weights_that_are_not_used_or_not_trained_stay_as_they_are(
    bonds: GraphSet, plain: ModuleType, manner: str
) -> None:
    task, (lane, *_) = Task("own_nets:Spare", ""), lanes_of(bonds)
    protocol = Protocol(epochs=3, batch_size=16, weight_decay=0.1, learning_rate=0.1)
    (outcome,) = fit(bonds, task, protocol, [lane], dtype=torch.float64, keep_weights=True)
    expected = plain.train_one_fold(bonds, task, protocol, lane, torch.float64)
    np.testing.assert_allclose(curves_of(outcome), expected, rtol=0, atol=1e-9)
    start = initial_model(bonds, Training(task, lane), torch.float64)
    assert outcome.weights is not None
    assert torch.equal(outcome.weights["frozen"], start.get_parameter("frozen"))
    assert torch.equal(outcome.weights["unused.weight"], start.get_parameter("unused.weight"))
    assert not torch.equal(outcome.weights["lin.weight"], start.get_parameter("lin.weight"))


@both
@pytest.mark.parametrize("kind", ["classes", "labels", "regression"])
def test_every_kind_of_target_and_setting_has_the_numbers_of_one_lane(
    bonds: GraphSet, manner: str, kind: str
) -> None:
    """With learning rates of their own, schedules, clipped gradients and patience."""
    draw = torch.Generator().manual_seed(1)
    graphs = bonds
    if kind == "labels":
        graphs = replace(bonds, y=torch.randint(0, 2, (90, 3), generator=draw).to(torch.int8))
    elif kind == "regression":
        graphs = replace(bonds, y=torch.randn(90, 1, generator=draw))
    lanes = lanes_of(bonds, 2)
    task = Task("own_nets:gcn", "", options=(("dropout", 0.2), ("norm", "batch_norm")))
    usual = Protocol(
        epochs=4, batch_size=16, optimizer="adamw", schedule="cosine", clip=0.5, patience=2
    )
    protocols = [usual, replace(usual, learning_rate=0.01, weight_decay=0.1)]
    together = fit(graphs, [task, task], protocols, lanes, dtype=torch.float64)
    alone = [
        fit(graphs, task, protocol, [lane], dtype=torch.float64)[0]
        for protocol in protocols
        for lane in lanes
    ]
    assert len({outcome.curve_train_loss[1] for outcome in alone}) == 4
    for got, expected in zip(together, alone, strict=True):
        np.testing.assert_allclose(curves_of(got), curves_of(expected), rtol=0, atol=1e-9)


@both
def test_what_runs_beside_a_lane_does_not_matter(bonds: GraphSet, manner: str) -> None:
    task, lanes = Task("own_nets:gat", "", options=(("dropout", 0.4),)), lanes_of(bonds, 4)
    together = fit(bonds, task, TWO, lanes, dtype=torch.float64)
    torch.manual_seed(99)
    alone = fit(bonds, task, TWO, lanes[2:3], dtype=torch.float64)[0]
    np.testing.assert_allclose(curves_of(together[2]), curves_of(alone), rtol=0, atol=1e-9)


@both
def test_lanes_of_different_length_have_the_numbers_they_have_alone(
    bonds: GraphSet, manner: str
) -> None:
    everyone = torch.arange(90)
    splits_ = [Split(everyone[:n], everyone[70:80], everyone[80:]) for n in (16, 33, 20, 30)]
    lanes = [Lane(fold, split) for fold, split in enumerate(splits_)]
    task = Task("own_nets:gin", "", options=(("norm", "batch_norm"),))
    together = fit(bonds, task, TWO, lanes, dtype=torch.float64)
    for lane, outcome in zip(lanes, together, strict=True):
        alone = fit(bonds, task, TWO, [lane], dtype=torch.float64)[0]
        np.testing.assert_allclose(curves_of(outcome), curves_of(alone), rtol=0, atol=1e-9)


@both
def test_global_generators_are_left_alone(bonds: GraphSet, manner: str) -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(bonds, Task("own_nets:Noisy", ""), TWO, lanes_of(bonds, 1))
    assert torch.equal(torch.rand(3), expected)


def test_a_model_that_cannot_run_side_by_side_is_trained_one_by_one_and_says_why(
    bonds: GraphSet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    task, lanes = Task("own_nets:Leaky", ""), lanes_of(bonds)
    expected = fit(bonds, task, SHORT, lanes)
    monkeypatch.setattr("gnn_vpa.training.own.family.shares_steps", lambda device: True)
    outcomes = fit(bonds, task, SHORT, lanes)
    assert "one after the other: side by side they cannot run (side by side scores" in caplog.text
    for got, right in zip(outcomes, expected, strict=True):
        assert np.array_equal(curves_of(got), curves_of(right))


def test_lanes_whose_answers_change_later_start_anew_one_by_one(
    bonds: GraphSet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The proof sees one step; a model may ask for something that only later steps answer."""
    caplog.set_level(logging.INFO)
    task, lanes = Task("own_nets:Changing", ""), lanes_of(bonds)
    expected = fit(bonds, task, SHORT, lanes)
    monkeypatch.setattr("gnn_vpa.training.own.family.shares_steps", lambda device: True)
    outcomes = fit(bonds, task, SHORT, lanes)
    assert "one after the other from now on" in caplog.text
    for got, right in zip(outcomes, expected, strict=True):
        assert np.array_equal(curves_of(got), curves_of(right))


class Killed(Exception):
    """Stands for the end of the process."""


@both
def test_an_interrupted_training_goes_on_to_the_same_bits(
    bonds: GraphSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manner: str
) -> None:
    monkeypatch.setattr("gnn_vpa.training.checkpoint._PAUSE", 0.0)
    options = (("dropout", 0.4), ("norm", "batch_norm"))
    task, lanes = Task("own_nets:gin", "", options=options), lanes_of(bonds, 2)
    expected = fit(bonds, task, SHORT, lanes)
    path, calls = tmp_path / "state.pt", []

    def stop(epoch: int) -> None:
        calls.append(epoch)
        if len(calls) % 2:
            raise Killed

    for _ in range(30):
        try:
            outcomes = fit(bonds, task, SHORT, lanes, checkpoint=path, progress=stop)
            break
        except Killed:
            assert path.exists()
    else:
        pytest.fail("no progress between interruptions")
    for got, right in zip(outcomes, expected, strict=True):
        assert np.array_equal(curves_of(got), curves_of(right))


def test_two_processes_have_the_bits_of_one(bonds: GraphSet) -> None:
    task, lanes = Task("own_nets:gat", "", options=(("dropout", 0.4),)), lanes_of(bonds, 4)
    one, two = (fit(bonds, task, TWO, lanes, workers=n) for n in (1, 2))
    for got, right in zip(two, one, strict=True):
        assert np.array_equal(curves_of(got), curves_of(right))


def test_what_a_killed_process_was_at_is_trained_by_the_others(
    bonds: GraphSet, child_of: Callable[[int, str], int | None], caplog: pytest.LogCaptureFixture
) -> None:
    task, lanes = Task("own_nets:gin", ""), lanes_of(bonds, 5)
    protocol = Protocol(epochs=8, batch_size=16)
    expected = fit(bonds, task, protocol, lanes, workers=1)
    killed: list[int] = []

    def kill(_: int) -> None:
        if not killed:
            while (pid := child_of(os.getpid(), "gnn_vpa.training.workers")) is None:
                time.sleep(0.01)
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    outcomes = fit(bonds, task, protocol, lanes, workers=2, progress=kill)
    assert killed
    for got, right in zip(outcomes, expected, strict=True):
        assert np.array_equal(curves_of(got), curves_of(right))


def test_a_model_that_only_this_process_has_is_trained_here(
    bonds: GraphSet, own_nets: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    task = Task(register(lambda i, o: own_nets.gin(i, o)), "")
    (outcome, _) = fit(bonds, task, TWO, lanes_of(bonds, 2), workers=2)
    assert outcome.diverged_epoch is None
    assert "in this process: other processes cannot import" in caplog.text


@both
def test_a_lane_that_diverges_harms_no_other(
    bonds: GraphSet, monkeypatch: pytest.MonkeyPatch, manner: str
) -> None:
    task, lanes = Task("own_nets:gin", "", options=(("norm", "batch_norm"),)), lanes_of(bonds)
    expected = fit(bonds, task, SHORT, lanes)
    kind = LanesGroup if manner == "lanes" else LoopGroup
    make = kind.__init__

    def broken(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        with torch.no_grad():
            for row, lane in enumerate(self.lanes):
                if lane.fold == 1:
                    next(iter(self.params.values()))[row] = torch.inf

    monkeypatch.setattr(kind, "__init__", broken)
    outcomes = fit(bonds, task, SHORT, lanes)
    assert outcomes[1].diverged_epoch == 0
    for lane in (0, 2):
        assert outcomes[lane].diverged_epoch is None
        assert np.array_equal(curves_of(outcomes[lane]), curves_of(expected[lane]))


def test_folds_that_are_finished_outlive_a_model_that_raises(
    bonds: GraphSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task, lanes, path = Task("own_nets:Raising", ""), lanes_of(bonds), tmp_path / "state.pt"

    def break_it(epoch: int) -> None:
        if epoch >= 1:  # the first fold is done
            Path("broken").touch()

    message = r"own_nets:Raising: its model raised RuntimeError in epoch \d of fold 1: no more "
    message += r"\(.*own_nets.py, line \d+\)"
    with pytest.raises(GnnVpaError, match=message):
        fit(bonds, task, SHORT, lanes, checkpoint=path, progress=break_it)
    Path("broken").unlink()
    epochs: list[int] = []
    outcomes = fit(bonds, task, SHORT, lanes, checkpoint=path, progress=epochs.append)
    assert len(epochs) == 2 * SHORT.epochs  # of the two folds that were not
    assert [outcome.diverged_epoch for outcome in outcomes] == [None] * 3


@both
def test_a_model_that_raises_is_named_with_its_line(
    bonds: GraphSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manner: str
) -> None:
    monkeypatch.chdir(tmp_path)
    message = r"own_nets:Raising: its model raised RuntimeError in epoch \d of fold \d: no more"
    with pytest.raises(GnnVpaError, match=message):
        fit(
            bonds, Task("own_nets:Raising", ""), SHORT, lanes_of(bonds),
            progress=lambda _: Path("broken").touch(),
        )  # fmt: skip


@both
def test_a_buffer_that_no_checkpoint_could_hold_is_named(bonds: GraphSet, manner: str) -> None:
    with pytest.raises(GnnVpaError, match="own_nets:Growing: its model makes the buffer 'late'"):
        fit(bonds, Task("own_nets:Growing", ""), SHORT, lanes_of(bonds, 1))


@both
def test_batches_without_an_edge_have_the_numbers_of_one_lane(manner: str) -> None:
    """Rows of edges and self-loops are then as many as rows of nodes: masks must not mix up."""
    none, pair = torch.empty(2, 0, dtype=torch.long), torch.tensor([[0, 1], [1, 0]])
    graphs = GraphSet.from_pyg(
        [
            Data(edge_index=pair if i % 5 == 0 else none, x=torch.eye(3)[[i % 3, 1]], y=i % 2)
            for i in range(40)
        ],
        name="sparse",
    )
    task = Task("own_nets:gat", "", options=(("dropout", 0.4),))
    protocol, lanes = Protocol(epochs=2, batch_size=2), lanes_of(graphs)
    together = fit(graphs, task, protocol, lanes, dtype=torch.float64)
    for lane, outcome in zip(lanes, together, strict=True):
        alone = fit(graphs, task, protocol, [lane], dtype=torch.float64)[0]
        np.testing.assert_allclose(curves_of(outcome), curves_of(alone), rtol=0, atol=1e-9)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:The usage of .scatter:UserWarning")  # PyG, of its own speed
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("option", [("norm", "batch_norm"), ("dropout", 0.4)], ids=str)
@pytest.mark.parametrize("aggr", ["", "vpa"])
def test_the_gpu_computes_what_the_cpu_does(
    bonds: GraphSet,
    caplog: pytest.LogCaptureFixture,
    name: str,
    option: tuple[str, Any],
    aggr: str,
) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    if name == "pna" and aggr:
        pytest.skip("it has nothing to convert but its pooling function")
    caplog.set_level(logging.INFO)
    task, lanes = Task(f"own_nets:{name}", aggr, options=(option,)), lanes_of(bonds)
    there = fit(bonds, task, TWO, lanes, device="cuda", dtype=torch.float64)
    assert "side by side, which gives" in caplog.text
    assert "cannot be captured" not in caplog.text
    here = fit(bonds, task, TWO, lanes, dtype=torch.float64)
    for got, expected in zip(there, here, strict=True):
        np.testing.assert_allclose(curves_of(got), curves_of(expected), rtol=0, atol=1e-9)
