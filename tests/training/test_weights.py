"""Graphs that count differently in the loss."""

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, global_add_pool

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import GraphSet, Split, splits
from gnn_vpa.training import Lane, Protocol, Task, fit
from gnn_vpa.training.objective import Objective
from gnn_vpa.training.own import register, source_hash
from gnn_vpa.training.task import Training


class Net(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv, self.head = GCNConv(in_channels, 8), nn.Linear(8, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        out: Tensor = self.head(global_add_pool(self.conv(x, edge_index).relu(), batch))
        return out


def drawn(graphs: GraphSet) -> Tensor:
    """Weights from 0 to 3, among them some zeros."""
    draw = torch.Generator().manual_seed(0)
    return (torch.rand(graphs.num_graphs, 1, generator=draw) * 4 - 1).clamp(min=0)


@pytest.mark.parametrize(("model", "aggr"), [("gin", "vpa"), ("gcn", "max"), ("sgc", "vpa")])
def test_weighted_graphs_equal_the_plain_loop(
    toy: GraphSet, reference: ModuleType, model: str, aggr: str
) -> None:
    weighted = replace(toy, weights=drawn(toy))
    task, protocol = Task(model, aggr), Protocol(epochs=3, batch_size=16)
    lanes = [Lane(fold, split) for fold, split in enumerate(splits(toy.y, 5))][:3]
    outcomes = fit(weighted, task, protocol, lanes, dtype=torch.float64)
    plain = fit(toy, task, protocol, lanes, dtype=torch.float64)
    for lane, outcome, other in zip(lanes, outcomes, plain, strict=True):
        loss, *_ = reference.train_one_fold(weighted, task, protocol, lane, torch.float64)
        np.testing.assert_allclose(outcome.curve_train_loss, loss, rtol=0, atol=1e-9)
        assert np.abs(outcome.curve_train_loss - other.curve_train_loss).max() > 1e-3


@pytest.mark.parametrize("kind", ["balanced", "labels", "regression"])
def test_weighted_targets_of_all_kinds_equal_the_plain_loop(
    toy: GraphSet, reference: ModuleType, kind: str
) -> None:
    draw = torch.Generator().manual_seed(1)
    y = toy.y
    if kind == "labels":
        y = torch.randint(-1, 2, (toy.num_graphs, 3), generator=draw).to(torch.int8)
        y[:, 0] = y[:, 0].abs()
    elif kind == "regression":
        y = torch.rand(toy.num_graphs, 2, generator=draw)
        y[::5, 1] = torch.nan
    weighted = replace(toy, y=y, weights=drawn(toy), class_names=None)
    protocol = Protocol(epochs=3, batch_size=16)
    if kind == "balanced":
        protocol = replace(protocol, class_weight="balanced")
    lane = Lane(0, splits(toy.y, 5)[0])
    (outcome,) = fit(weighted, Task("gcn", "vpa"), protocol, [lane], dtype=torch.float64)
    loss, *_ = reference.train_one_fold(weighted, Task("gcn", "vpa"), protocol, lane, torch.float64)
    np.testing.assert_allclose(outcome.curve_train_loss, loss, rtol=0, atol=1e-9)


@pytest.mark.parametrize("lanes", [1, 2], ids=["a loop", "side by side"])
def test_a_graph_of_no_weight_is_as_if_it_was_not_there_for_models_of_ones_own(
    toy: GraphSet, lanes: int
) -> None:
    keep = toy.node_ptr.diff() > 0
    task = Task(register(Net), "", source=source_hash(Net))
    protocol = Protocol(epochs=3, batch_size=100)  # one step: the order does not matter
    whole = splits(toy.y, 5)[:lanes]
    weights = keep.float().unsqueeze(1)
    weights[::3] = 0
    some = [split._replace(train=split.train[weights[split.train, 0] > 0]) for split in whole]
    toy = replace(toy, seed_name="toy")  # both start from the same weights
    weighted = replace(toy, weights=weights)
    ours = fit(weighted, task, protocol, [Lane(0, s) for s in whole], dtype=torch.float64)
    fewer = fit(toy, task, protocol, [Lane(0, s) for s in some], dtype=torch.float64)
    for one, other in zip(ours, fewer, strict=True):
        np.testing.assert_allclose(one.curve_train_loss, other.curve_train_loss, atol=1e-9)


def test_a_step_in_which_nothing_counts_has_no_gradient() -> None:
    y, every = torch.tensor([0, 1]), torch.tensor([0, 1])
    training = Training(Task("gin", "vpa"), Lane(0, Split(every, every, every)))
    objective = Objective(y, [training], 2, torch.float32, torch.device("cpu"))
    scores = torch.zeros(2, 2, requires_grad=True)
    mean, total = objective.losses(scores, y, torch.zeros(1, 2))
    mean.sum().backward()
    assert (mean.item(), total.item()) == (0, 0)
    assert scores.grad is not None
    assert not scores.grad.any()


def test_a_gpu_is_refused_before_anything_is_trained(toy: GraphSet) -> None:
    weighted = replace(toy, weights=drawn(toy))
    lane = Lane(0, splits(toy.y, 5)[0])
    with pytest.raises(UsageError, match=r"sample_weight.*on the CPU alone"):
        fit(weighted, Task("gin", "vpa"), Protocol(epochs=1), [lane], device="cuda")


def test_weights_are_part_of_the_content() -> None:
    pair = torch.tensor([[0, 1], [1, 0]])
    data = GraphSet.from_pyg([Data(edge_index=pair, num_nodes=2, y=i) for i in range(2)])
    weighted = replace(data, weights=torch.ones(2, 1))
    assert data.checksum() != weighted.checksum()
