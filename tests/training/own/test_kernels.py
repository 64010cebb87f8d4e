"""A user's sums are ours to compute where that gives the same numbers, and PyG's otherwise."""

import logging
from types import ModuleType

import pytest
import torch
from torch import nn
from torch_geometric.nn import SAGEConv

from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.pyg.internal import VPMessagePassing
from gnn_vpa.training import Lane, Protocol, Task, Training, fit
from gnn_vpa.training.own import Source, kernels
from gnn_vpa.training.own.build import check
from gnn_vpa.training.own.groups import LoopGroup


def training_of(bonds: GraphSet, model: str) -> Training:
    lane = Lane(0, splits(bonds.y, 5)[0])
    return Training(Task(f"own_nets:{model}", ""), lane, Protocol(epochs=1, batch_size=16))


def serve(bonds: GraphSet, model: str) -> bool:
    training = training_of(bonds, model)
    source = Source(bonds, "auto", torch.device("cpu"), torch.float32)
    return kernels.serve(bonds, training, check(bonds, training.task), source)


@pytest.mark.parametrize("name", ["gin", "sage", "gat"])
def test_a_loop_sums_by_our_kernels(
    bonds: GraphSet, own_nets: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert serve(bonds, name)
    seen: list[nn.Module] = []
    run_epoch = LoopGroup.run_epoch

    def watched(self: LoopGroup) -> None:
        seen.append(self.model)
        run_epoch(self)

    monkeypatch.setattr(LoopGroup, "run_epoch", watched)
    training = training_of(bonds, name)
    fit(bonds, training.task, training.protocol, [training.lane])
    assert any(isinstance(module, VPMessagePassing) for module in seen[0].modules())


@pytest.mark.parametrize("name", ["Leaky", "pna"])
def test_where_there_is_no_such_sum_there_is_nothing_to_prove(
    bonds: GraphSet, own_nets: ModuleType, name: str
) -> None:
    assert not serve(bonds, name)


def test_other_numbers_are_noticed_and_said(
    bonds: GraphSet,
    own_nets: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The gradient alone is wrong, by a little."""

    def wrong(model: nn.Module) -> bool:
        layers = [module for module in model.modules() if isinstance(module, SAGEConv)]
        for layer in layers:
            layer.lin_l.weight.register_hook(lambda g: g * (1 + 1e-6))
        return bool(layers)

    caplog.set_level(logging.INFO)
    monkeypatch.setattr(kernels, "sum_by_kernels", wrong)
    assert not serve(bonds, "sage")
    assert "own_nets:sage: its sums are PyG's own, as the gradient of body.convs" in caplog.text


def test_a_model_that_raises_is_left_to_the_training(
    bonds: GraphSet, own_nets: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(model: nn.Module) -> bool:
        model.register_forward_pre_hook(lambda *_: 1 / 0)
        return True

    monkeypatch.setattr(kernels, "sum_by_kernels", broken)
    assert not serve(bonds, "gin")
