"""Merged graphs, scaled graphs, and what the models refuse."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import add_self_loops, remove_self_loops

from gnn_vpa import UsageError, build_model
from gnn_vpa.nn import WeightedGraph
from gnn_vpa.nn._weighted_graph import aggregate
from gnn_vpa.ops import Graph

from .conftest import Batch


def _colours(codes: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
    """Refine colours within each graph until nothing changes: two nodes of one colour are alike."""
    sources = [edge_index[0][edge_index[1] == node].tolist() for node in range(len(codes))]
    colour: list[Any] = list(zip(batch.tolist(), codes.tolist(), strict=True))
    while True:
        signs = [(colour[i], sorted(colour[j] for j in near)) for i, near in enumerate(sources)]
        names = {sign: k for k, sign in enumerate(sorted({repr(sign) for sign in signs}))}
        finer = [names[repr(sign)] for sign in signs]
        if len(set(finer)) == len(set(colour)):
            return torch.tensor(finer)
        colour = finer


def _merged(
    codes: Tensor, edge_index: Tensor, batch: Tensor
) -> tuple[Tensor, Graph, Graph, Tensor]:
    """Merge the nodes of one colour: what remains as codes, graph, readout and nodes."""
    _, group, size = _colours(codes, edge_index, batch).unique(
        return_inverse=True, return_counts=True
    )
    first = torch.tensor([int((group == k).nonzero()[0]) for k in range(len(size))])
    kept = torch.isin(edge_index[1], first)  # the edges into each representative, counted
    edges, count = group[edge_index[:, kept]].unique(dim=1, return_counts=True)
    graph = Graph(edges, len(first), count)
    return codes[first], graph, Graph.readout(batch[first], multiplicity=size), size


def _symmetric_graphs() -> tuple[Tensor, Tensor, Tensor]:
    """A star, a cycle, a complete graph, a grid of two rows, a path and two lone nodes."""
    shapes = [
        (6, [(0, leaf) for leaf in range(1, 6)]),
        (7, [(i, (i + 1) % 7) for i in range(7)]),
        (5, [(i, j) for i in range(5) for j in range(i)]),
        (8, [(i, i + 4) for i in range(4)] + [(i, i + 1) for i in (0, 1, 2, 4, 5, 6)]),
        (6, [(i, i + 1) for i in range(3)]),
    ]
    edges, owner, shift = [], [], 0
    for graph, (size, pairs) in enumerate(shapes):
        edges += [(a + shift, b + shift) for i, j in pairs for a, b in ((i, j), (j, i))]
        owner += [graph] * size
        shift += size
    edge_index, batch = torch.tensor(edges).t(), torch.tensor(owner)
    codes = torch.zeros_like(batch)
    codes[batch == 1] = torch.tensor([1, 0, 0, 1, 0, 0, 1])
    return codes, edge_index, batch


def _alike(
    kind: tuple[str, str],
    whole: tuple[Any, ...],
    small: tuple[Any, ...],
    assert_same_training: Callable[..., None],
) -> None:
    """Train one step on the whole graph and on the merged one."""
    torch.manual_seed(0)
    model = build_model(kind[0], 3, 2, kind[1]).double()
    other = deepcopy(model)
    uniform = torch.rand(model.dropout_shape(5), dtype=torch.float64)
    expected = other(*whole, uniform=uniform)
    assert_same_training(model, model(*small, uniform=uniform), other, expected)


def test_a_graph_merged_by_colours_trains_as_the_whole_one(
    kind: tuple[str, str], assert_same_training: Callable[..., None]
) -> None:
    codes, edge_index, batch = _symmetric_graphs()
    looped = kind[0] in ("gat", "sgc")
    edges = edge_index
    if looped:
        edges, _ = add_self_loops(remove_self_loops(edge_index)[0], num_nodes=len(codes))
    few, graph, readout, nodes = _merged(codes, edges, batch)
    assert 2 * len(few) < len(codes)
    table = torch.randn(3, 3, dtype=torch.float64)
    small = (table[few], WeightedGraph(graph, loops=True) if looped else graph, readout, nodes)
    _alike(kind, (table[codes], edge_index, batch), small, assert_same_training)


def test_a_graph_merged_by_hand_trains_as_the_whole_one(
    kind: tuple[str, str], assert_same_training: Callable[..., None]
) -> None:
    # Five stars of three leaves. By hand: hub 0 has three leaves, each leaf has the hub.
    star = torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]])
    stars = torch.cat([star + 4 * k for k in range(5)], dim=1)
    merged, edges = torch.tensor([[1, 0], [0, 1]]), [3, 1]
    if kind[0] in ("gat", "sgc"):
        merged, edges = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 1]]), [3, 1, 1, 1]
    merged = torch.cat([merged + 2 * k for k in range(5)], dim=1)
    counted = Graph(merged, 10, torch.tensor(edges * 5))
    graph = WeightedGraph(counted, loops=True) if len(edges) == 4 else counted
    nodes = torch.tensor([1, 3] * 5)
    hubs, leaves = torch.randn(2, 5, 3, dtype=torch.float64)
    x = torch.stack([hubs, leaves, leaves, leaves], dim=1).flatten(0, 1)
    few = torch.stack([hubs, leaves], dim=1).flatten(0, 1)
    graphs = torch.arange(5)
    whole = (x, stars, graphs.repeat_interleave(4))
    readout = Graph.readout(graphs.repeat_interleave(2), multiplicity=nodes)
    _alike(kind, whole, (few, graph, readout, nodes), assert_same_training)


@pytest.mark.parametrize("aggr", ["sum", "mean", "vpa"])
@pytest.mark.parametrize("merged", [False, True])
def test_a_scaled_graph_stands_for_an_aggregation(
    aggr: str, merged: bool, make_batch: Callable[..., Batch], dtype: torch.dtype
) -> None:
    x, edge_index, _ = make_batch(0)
    times = torch.arange(edge_index.shape[1]) % 4 if merged else None
    graph = Graph(edge_index, len(x), times)
    power = {"sum": 0, "mean": -1, "vpa": -0.5}[aggr]
    scaled = WeightedGraph(graph, scale=graph.count.clamp(min=1).double() ** power)
    x = x.to(dtype).requires_grad_()
    out, expected = aggregate(x, scaled, "sum"), aggregate(x, graph, aggr)
    assert out.dtype == dtype
    torch.testing.assert_close(out, expected)
    direction = torch.randn_like(out)
    gradients = [torch.autograd.grad(y, x, direction)[0] for y in (out, expected)]
    torch.testing.assert_close(*gradients)


def test_a_scale_cannot_replace_the_maximum(make_batch: Callable[..., Batch]) -> None:
    x, edge_index, batch = make_batch(0)
    graph = WeightedGraph(Graph(edge_index, len(x)), scale=torch.ones(len(x)))
    with pytest.raises(UsageError, match="scaled sums cannot take the place"):
        build_model("gin", 5, 2, "max").double()(x, graph, batch)


def test_a_scaled_graph_is_checked(make_batch: Callable[..., Batch]) -> None:
    x, edge_index, _ = make_batch(0)
    graph = Graph(edge_index, len(x))
    with pytest.raises(UsageError, match="x: expected 23 rows"):
        aggregate(x[1:], WeightedGraph(graph, scale=torch.ones(23)), "sum")
    with pytest.raises(UsageError, match=r"scale: expected shape \[23\].*got \[22\]"):
        aggregate(x, WeightedGraph(graph, scale=torch.ones(22)), "sum")
    with pytest.raises(UsageError, match="scaled sums take no edge weights"):
        aggregate(
            x, WeightedGraph(Graph(torch.eye(23).to_sparse_coo()), scale=torch.ones(23)), "sum"
        )


def test_a_readout_of_another_number_of_nodes_is_refused(
    kind: tuple[str, str], make_batch: Callable[..., Batch]
) -> None:
    x, edge_index, batch = make_batch(0)
    with pytest.raises(UsageError, match="expected 22 rows"):
        build_model(kind[0], 5, 2, kind[1]).double()(x, edge_index, batch[:-1])
