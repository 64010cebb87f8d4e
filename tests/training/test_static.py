"""Batches of a fixed shape hold what batches of their own shape hold."""

import pytest
import torch

from gnn_vpa.nn import Looped
from gnn_vpa.training import Task
from gnn_vpa.training.batch import EMPTY, cut
from gnn_vpa.training.resident import model_for, resident
from gnn_vpa.training.static import Shape, cut_static


@pytest.mark.parametrize("model", ["gin", "gat", "sgc"])
@pytest.mark.parametrize("merging", [False, True], ids=["whole", "merged"])
@pytest.mark.parametrize("spare", [0, 7])
def test_a_model_sees_the_same_graphs(toy, model, merging, spare):
    task = Task(model, "vpa", features="ones")
    network = model_for(task, toy).double().train()
    data = resident(toy, task, network, torch.device("cpu"), torch.float64, merging)
    ids = torch.tensor([[3, 17, 4, 80], [5, 6, EMPTY, EMPTY], [9, EMPTY, 2, 8]])
    ragged = cut(data, ids)
    slots = len(ragged.x) // 3 + 1 + spare
    graph = ragged.graph.graph if isinstance(ragged.graph, Looped) else ragged.graph
    edges = 1 if graph is None else graph.num_edges + 1 + spare
    fixed = cut_static(data, ids, Shape(slots, edges))

    assert torch.equal(fixed.real[:, :-1], ragged.real)
    assert not fixed.real[:, -1].any()
    assert fixed.nodes.sum() == ragged.nodes.sum()
    results = []
    for batch in (ragged, fixed):
        network.zero_grad()
        scores = network(batch.x, batch.graph, batch.readout, batch.nodes, _half(network, batch))
        own = scores.view(3, -1, scores.shape[1])[:, :4][ids >= 0]
        own.square().sum().backward()
        results.append([own.detach(), *(p.grad.clone() for p in network.parameters())])
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


def _half(network, batch):
    """Numbers that drop nothing."""
    return torch.full(network.dropout_shape(len(batch.y)), 0.9, dtype=torch.float64)
