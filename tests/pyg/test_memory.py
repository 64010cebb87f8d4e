"""What is remembered of an edge_index lives as long as it does, and holds while it is unchanged."""

import gc
import weakref

import pytest
import torch
from torch import nn

from gnn_vpa import forget_graphs
from gnn_vpa.pyg import VPGATConv, VPGCNConv, vp_gcn_norm
from gnn_vpa.pyg._memory import remembered


def test_the_same_edges_give_the_same_tensor() -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    first, again = vp_gcn_norm(edge_index), vp_gcn_norm(edge_index)
    assert first[0] is again[0]
    assert vp_gcn_norm(edge_index, num_nodes=5)[0] is not first[0]
    assert vp_gcn_norm(edge_index.clone())[0] is not first[0]


def test_a_change_in_place_is_noticed_at_either_end() -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    made = remembered(edge_index, "key", lambda: (edge_index + 1,))
    edge_index += 1
    assert remembered(edge_index, "key", lambda: (edge_index + 1,))[0] is not made[0]
    (again,) = remembered(edge_index, "key", lambda: (edge_index + 1,))
    again.zero_()
    assert torch.equal(remembered(edge_index, "key", lambda: (edge_index + 1,))[0], edge_index + 1)


def test_nothing_keeps_an_edge_index_alive() -> None:
    for loops in (True, False):
        edge_index = torch.tensor([[0, 1], [1, 0]])
        for layer in (VPGATConv(2, 2, add_self_loops=loops), VPGCNConv(2, 2, add_self_loops=loops)):
            layer(torch.ones(2, 2), edge_index)
        alive = weakref.ref(edge_index)
        del edge_index
        gc.collect()
        assert alive() is None


def test_what_inference_made_serves_training() -> None:
    edge_index, layers = torch.tensor([[0, 1], [1, 0]]), (VPGATConv(2, 2), VPGCNConv(2, 2))
    x = torch.ones(2, 2, requires_grad=True)
    for layer in layers:
        with torch.inference_mode():
            layer(x, edge_index)
        layer(x, edge_index).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("layer", [VPGATConv(2, 2), VPGCNConv(2, 2)], ids=["GAT", "GCN"])
def test_another_content_is_noticed(layer: nn.Module) -> None:
    edge_index, x = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[1.0, 2.0], [3.0, -1.0]])
    before = layer(x, edge_index)
    edge_index.data = torch.tensor([[0, 0], [1, 1]])
    after = layer(x, edge_index)
    assert torch.equal(after, layer(x, edge_index.clone()))
    assert not torch.allclose(after, before)
    edge_index.data[:] = torch.tensor([[0, 1], [1, 0]])  # behind PyTorch's back
    forget_graphs()
    assert torch.equal(layer(x, edge_index), before)


def test_what_was_made_may_get_another_content() -> None:
    edge_index = torch.tensor([[0, 1], [1, 0]])
    (made,) = remembered(edge_index, "key", lambda: (edge_index + 1,))
    made.data = edge_index * 0
    assert torch.equal(remembered(edge_index, "key", lambda: (edge_index + 1,))[0], edge_index + 1)
