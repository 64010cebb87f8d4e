"""Under ``vmap`` a batch of graphs is computed as one graph: the numbers of each by itself."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.func import vmap

from gnn_vpa.ops import Graph, aggregate

AGGREGATIONS = ("sum", "mean", "vpa", "max", "power(0.3)")


def batch(seed: int, size: int, nodes: int, edges: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features, edges and weights of several graphs of one size."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(size, nodes, 3, generator=draw, dtype=torch.float64)
    edge_index = torch.randint(nodes, (size, 2, edges), generator=draw)
    weight = torch.randn(size, edges, generator=draw, dtype=torch.float64)
    return x, edge_index, weight


@pytest.mark.parametrize("aggr", AGGREGATIONS)
@pytest.mark.parametrize("is_weighted", [False, True])
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000), size=st.integers(1, 4), nodes=st.integers(1, 9),
    edges=st.integers(0, 30),
)  # fmt: skip
def test_each_graph_has_its_own_numbers(
    aggr: str, is_weighted: bool, seed: int, size: int, nodes: int, edges: int
) -> None:
    x, edge_index, weight = batch(seed, size, nodes, edges)

    def one(x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
        return aggregate(x, Graph(edge_index, nodes), aggr, weight if is_weighted else None)

    results = []
    for call in (
        vmap(one),
        lambda *args: torch.stack([one(*own) for own in zip(*args, strict=True)]),
    ):
        given = [x.clone().requires_grad_(), weight.clone().requires_grad_()]
        out = call(given[0], edge_index, given[1])
        (out * torch.arange(1.0, 4.0, dtype=out.dtype)).sin().sum().backward()
        results.append([out.detach(), given[0].grad, given[1].grad if is_weighted else None])
    for got, expected in zip(*results, strict=True):
        assert (got is None) == (expected is None)
        if got is not None:
            torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def test_the_readout_of_a_batch_is_each_graphs_own() -> None:
    x = torch.arange(12.0).view(2, 6, 1)
    owner = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 1, 1, 2, 2, 2]])
    out = vmap(lambda x, owner: aggregate(x, Graph.readout(owner, 3), "sum"))(x, owner)
    assert out.squeeze(2).tolist() == [[1.0, 9.0, 5.0], [6.0, 15.0, 30.0]]


def test_an_edge_out_of_range_is_named_in_a_batch_too() -> None:
    from gnn_vpa.errors import UsageError

    edges = torch.tensor([[[0, 1], [1, 0]], [[0, 1], [1, 7]]])
    with pytest.raises(UsageError, match="target index 7 is out of range"):
        vmap(lambda e: aggregate(torch.ones(2, 1), Graph(e, 2), "sum"))(edges)
