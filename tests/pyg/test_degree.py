"""GCN and SGC against the formula, and against their parents in PyG."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv, SGConv

from gnn_vpa import UsageError
from gnn_vpa.pyg import VPGCNConv, VPSGConv, vp_gcn_norm

PAIRS = [(VPGCNConv, GCNConv), (VPSGConv, SGConv)]
pairs = pytest.mark.parametrize(("ours", "parent"), PAIRS, ids=lambda cls: cls.__name__)


def matrix(edge_index: Tensor, weight: Tensor | None, dtype: torch.dtype) -> Tensor:
    (source, target), weight = vp_gcn_norm(edge_index, weight, 6, dtype=dtype)
    return weight.new_zeros(6, 6).index_put((target, source), weight, accumulate=True)


@pytest.mark.parametrize("weighted", [False, True])
def test_gcn_is_one_product_with_the_normalised_matrix(
    weighted: bool, x: Tensor, edge_index: Tensor
) -> None:
    conv = VPGCNConv(4, 3).to(x.dtype)
    weight = torch.arange(1, 9, dtype=x.dtype) if weighted else None
    expected = matrix(edge_index, weight, x.dtype) @ x @ conv.lin.weight.T + conv.bias
    torch.testing.assert_close(conv(x, edge_index, weight), expected)


def test_sgc_is_k_products_with_the_normalised_matrix(x: Tensor, edge_index: Tensor) -> None:
    conv = VPSGConv(4, 3, K=3).to(x.dtype)
    hops = torch.linalg.matrix_power(matrix(edge_index, None, x.dtype), 3)
    torch.testing.assert_close(conv(x, edge_index), conv.lin(hops @ x))


@pairs
def test_on_a_regular_graph_it_is_the_parent_times_a_root(ours: Any, parent: Any) -> None:
    layer, theirs = ours(4, 3, bias=False), parent(4, 3, bias=False)
    layer.load_state_dict(theirs.state_dict(), strict=True)
    nodes = torch.arange(6)
    ring = torch.stack([nodes.repeat(2), torch.cat([(nodes + 1) % 6, (nodes - 1) % 6])])
    x = torch.randn(6, 4)
    torch.testing.assert_close(layer(x, ring), theirs(x, ring) * 3**0.5)


@pairs
def test_a_cached_layer_computes_once(ours: Any, parent: Any, edge_index: Tensor) -> None:
    layer = ours(4, 3, cached=True)
    first = layer(torch.ones(6, 4), edge_index)
    assert torch.equal(layer(torch.ones(6, 4), edge_index[:, :0]), first)
    layer.reset_parameters()
    assert not torch.equal(layer(torch.ones(6, 4), edge_index[:, :0]), first)


@pytest.mark.parametrize("improved", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_edges_without_weights_are_edges_of_weight_1(
    loops: bool, improved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = VPGCNConv(4, 3, improved=improved).double()
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 4], [1, 0, 0, 2 if loops else 3, 5, 5]])
    x = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    weights = [x, *layer.parameters()]
    expected = layer(x, edge_index, torch.ones(6, dtype=torch.float64))
    # A weight for each edge is not made.
    monkeypatch.setattr("gnn_vpa.pyg.degree.vp_gcn_norm", lambda *_: pytest.fail("normalised"))
    out = layer(x, edge_index)
    torch.testing.assert_close(out, expected)
    found, wanted = (torch.autograd.grad(o.square().sum(), weights) for o in (out, expected))
    torch.testing.assert_close(found, wanted)


def test_edges_without_weights_of_features_of_half_types(edge_index: Tensor) -> None:
    layer = VPGCNConv(4, 3).bfloat16()
    x = torch.randn(6, 4, dtype=torch.bfloat16)
    with_weights = layer(x, edge_index, torch.ones(edge_index.shape[1], dtype=torch.bfloat16))
    torch.testing.assert_close(layer(x, edge_index), with_weights, rtol=0.05, atol=0.05)


def test_without_normalisation_it_is_the_parent(x: Tensor, edge_index: Tensor) -> None:
    layer, theirs = (cls(4, 3, normalize=False).to(x.dtype) for cls in (VPGCNConv, GCNConv))
    layer.load_state_dict(theirs.state_dict())
    weight = torch.arange(1, 9, dtype=x.dtype)
    for given in (None, weight):
        torch.testing.assert_close(layer(x, edge_index, given), theirs(x, edge_index, given))


@pairs
def test_flow_turns_the_edges_round(ours: Any, parent: Any, edge_index: Tensor) -> None:
    layer, turned = ours(4, 3), ours(4, 3, flow="target_to_source")
    turned.load_state_dict(layer.state_dict())
    x = torch.randn(6, 4)
    torch.testing.assert_close(turned(x, edge_index), layer(x, edge_index.flip(0)))


@pairs
def test_gradients_are_right(ours: Any, parent: Any, edge_index: Tensor) -> None:
    layer = ours(2, 2).double()
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    weight = (torch.rand(8, dtype=torch.float64) + 0.5).requires_grad_()
    torch.autograd.gradcheck(lambda x, w: layer(x, edge_index, w), (x, weight))


@pairs
def test_another_aggregation_is_refused(ours: Any, parent: Any) -> None:
    with pytest.raises(UsageError, match="aggr: 'max' is not for VP"):
        ours(4, 4, aggr="max")


@pairs
def test_lazy_copied_pickled_printed(ours: Any, parent: Any, edge_index: Tensor) -> None:
    layer = ours(-1, 4)
    out = layer(torch.ones(6, 7), edge_index)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(torch.ones(6, 7), edge_index), out)
    assert repr(layer).startswith(f"VP{parent.__name__}(")


@pytest.mark.parametrize("add_self_loops", [True, False])
@pytest.mark.parametrize("improved", [True, False])
def test_normalisation_is_left_to_the_sum_with_loops_of_any_kind(
    add_self_loops: bool, improved: bool, generator: torch.Generator
) -> None:
    # Self-loops, parallel edges, and nodes that no edge leads to.
    edge_index = torch.randint(6, (2, 20), generator=generator) + torch.tensor([[2], [0]])
    x = torch.randn(8, 4, generator=generator, dtype=torch.float64)
    conv = VPGCNConv(4, 3, improved=improved, add_self_loops=add_self_loops).double()
    ones = torch.ones(20, dtype=torch.float64)
    torch.testing.assert_close(conv(x, edge_index), conv(x, edge_index, ones))
