"""What is remembered of an edge_index lives as long as it does, and holds while it is unchanged."""

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GAT, GCN

from gnn_vpa import convert, forget_graphs
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


@pytest.mark.parametrize("model", [GCN, GAT])
def test_a_transform_may_be_the_first_to_see_edges(model: Callable[..., nn.Module]) -> None:
    torch.manual_seed(0)
    ours, x = convert(model(4, 8, 2))[0].double(), torch.randn(9, 4, dtype=torch.float64)
    edge_index = torch.randint(9, (2, 30))

    def total(x: Tensor, edges: Tensor) -> Tensor:
        out: Tensor = ours(x, edges).square().sum()
        return out

    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(total(leaf, edge_index), leaf)
    torch.testing.assert_close(torch.func.grad(total)(x, edge_index.clone()), expected)
    edges, ones = edge_index.clone(), torch.ones_like(x)
    along = torch.func.jvp(lambda x: total(x, edges), (x,), (ones,))[1]
    torch.testing.assert_close(along, expected.sum())
    torch.testing.assert_close(total(x, edges), total(x, edge_index))  # nothing is left of it
