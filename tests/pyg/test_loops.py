"""Self-loops by other ways than PyG's: the same numbers."""

from unittest.mock import patch

import pytest
import torch
from torch import Tensor
from torch_geometric import utils

from gnn_vpa.pyg import VPGATConv, vp_gcn_norm
from gnn_vpa.pyg._loops import _unit_norm_traced, add_remaining_self_loops, unit_norm

PLAIN = torch.tensor([[0, 1, 2, 2, 0], [1, 0, 0, 0, 2]])
LOOPS = torch.tensor([[0, 1, 2, 2, 3], [1, 1, 0, 2, 0]])
every_edges = pytest.mark.parametrize("edges", [PLAIN, LOOPS], ids=["plain", "loops"])


def dense(edges: Tensor, weight: Tensor) -> Tensor:
    out = torch.zeros(5, 5, dtype=weight.dtype)
    return out.index_put((edges[1], edges[0]), weight, accumulate=True)


@every_edges
def test_what_a_compiler_can_trace_has_the_same_weights(edges: Tensor) -> None:
    weight = torch.rand(5, dtype=torch.float64)
    with patch("torch.compiler.is_compiling", return_value=True):
        found = add_remaining_self_loops(edges, weight, 2.0, 5)
    assert found[0].shape == (2, 10)
    expected = utils.add_remaining_self_loops(edges, weight, 2.0, 5)
    torch.testing.assert_close(dense(*found), dense(*expected))


@pytest.mark.parametrize("fill", [1.0, 2.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_norm_of_units_is_that_of_weights_of_1(fill: float, dtype: torch.dtype) -> None:
    found = unit_norm(PLAIN, 5, fill, dtype)
    assert found is not None
    ones = torch.ones(5, dtype=dtype)
    expected = vp_gcn_norm(PLAIN.clone(), ones, 5, improved=fill == 2)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("edges", [LOOPS, PLAIN - 1, PLAIN + 4], ids=["loops", "below", "above"])
def test_other_edges_are_left_to_the_general_way(edges: Tensor) -> None:
    assert unit_norm(edges, 5, 1.0, torch.float32) is None


@every_edges
@pytest.mark.parametrize("heads", [1, 2])
def test_attention_in_parts_is_attention_of_edges(edges: Tensor, heads: int) -> None:
    layer, x = VPGATConv(4, 3, heads=heads).double(), torch.randn(5, 4, dtype=torch.float64)
    expected, _ = layer(x, edges, return_attention_weights=True)  # asked for, they are made
    grads = torch.autograd.grad(expected.square().sum(), list(layer.parameters()))
    out = layer(x, edges)
    torch.testing.assert_close(out, expected)
    found = torch.autograd.grad(out.square().sum(), list(layer.parameters()))
    torch.testing.assert_close(found, grads)


@every_edges
@pytest.mark.parametrize("fill", [1.0, 2.0])
def test_the_norm_that_a_compiler_traces_is_the_same(edges: Tensor, fill: float) -> None:
    with patch("torch.compiler.is_compiling", return_value=True):
        found = _unit_norm_traced(edges, 5, fill, torch.float64)
    expected = vp_gcn_norm(edges.clone(), None, 5, improved=fill == 2, dtype=torch.float64)
    assert isinstance(expected, tuple)
    torch.testing.assert_close(dense(*found), dense(*expected))
