"""Merged graphs: every node and edge is counted, and a network cannot tell the difference."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gnn_vpa.graphs import GraphSet, features, merge
from gnn_vpa.ops import Graph, aggregate

SETS = [
    "MUTAG", "PTC_FM", "PROTEINS", "NCI1", "IMDB-BINARY", "IMDB-MULTI",
    "REDDIT-BINARY", "REDDIT-MULTI-5K", "COLLAB",
]  # fmt: skip


def sample(graphs: GraphSet, count: int = 30) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the first graphs of a data set as CSR, with a kind for each node."""
    node_ptr = graphs.node_ptr[: count + 1]
    num_nodes = int(node_ptr[-1])
    rowptr = graphs.rowptr[: num_nodes + 1]
    own = features(graphs, "auto")
    matrix = own.matrix(slice(0, num_nodes))
    kinds = torch.unique(matrix, dim=0, return_inverse=True)[1]
    return node_ptr, rowptr, graphs.col[: rowptr[-1]], kinds


@pytest.mark.parametrize("name", SETS)
def test_layers_compute_the_same_on_every_real_set(
    real: Callable[[str], GraphSet], name: str
) -> None:
    node_ptr, rowptr, col, kinds = sample(real(name))
    layers, num_nodes, num_graphs = 3, len(rowptr) - 1, len(node_ptr) - 1
    small = merge(node_ptr, rowptr, col, kinds, layers)
    assert int(small.node_times.sum()) == num_nodes
    target = torch.repeat_interleave(torch.arange(num_nodes), rowptr.diff())
    whole = Graph(torch.stack([col.long(), target]), num_nodes)
    merged = Graph(small.edge_index, len(small.node), small.edge_times)
    degree = whole.degree[small.node].to(merged.count.dtype)
    torch.testing.assert_close(merged.count, degree)

    draw = torch.Generator().manual_seed(0)
    table = torch.randn(int(kinds.max()) + 1, 4, generator=draw, dtype=torch.float64)
    table.requires_grad_()
    batch = torch.repeat_interleave(torch.arange(num_graphs), node_ptr.diff())
    batch_small = torch.repeat_interleave(torch.arange(num_graphs), small.node_ptr.diff())
    readouts = (
        Graph.readout(batch, num_graphs),
        Graph.readout(batch_small, num_graphs, small.node_times),
    )
    for aggr in ("sum", "mean", "max", "vpa"):
        results = []
        for x, graph, readout in (
            (table[kinds], whole, readouts[0]),
            (table[kinds[small.node]], merged, readouts[1]),
        ):
            for _ in range(layers):
                x = torch.tanh(x + aggregate(x, graph, aggr) / 8)
            out = aggregate(x, readout, aggr)
            results.append((out, *torch.autograd.grad(out.square().sum(), table)))
        torch.testing.assert_close(results[0], results[1], rtol=1e-9, atol=1e-9)


def test_one_round_too_few_is_not_enough() -> None:
    # The ends of two paths look alike to one layer, and not to three.
    lengths = (4, 5)
    rows = [
        [j + base for j in (i - 1, i + 1) if 0 <= j < n]
        for n, base in zip(lengths, (0, 4), strict=True)
        for i in range(n)
    ]
    rowptr = torch.tensor([0] + [len(row) for row in rows]).cumsum(0)
    col = torch.tensor([j for row in rows for j in row])
    one_graph = torch.tensor([0, 9])
    kinds = torch.zeros(9, dtype=torch.long)
    assert len(merge(one_graph, rowptr, col, kinds, 1).node) == 2
    assert len(merge(one_graph, rowptr, col, kinds, 3).node) == 4
    assert len(merge(one_graph, rowptr, col, kinds, 4).node) == 5


def test_nodes_of_different_graphs_stay_apart() -> None:
    pairs = torch.tensor([0, 1, 2, 3, 4]), torch.tensor([1, 0, 3, 2])
    small = merge(torch.tensor([0, 2, 4]), *pairs, torch.zeros(4, dtype=torch.long), 2)
    assert small.node.tolist() == [0, 2]
    assert small.node_ptr.tolist() == [0, 1, 2]
    assert small.node_times.tolist() == [2, 2]
    assert small.edge_index.tolist() == [[0, 1], [0, 1]]


def test_graphs_without_nodes_or_edges() -> None:
    nothing = torch.empty(0, dtype=torch.long)
    small = merge(
        torch.tensor([0, 0, 2, 2]), torch.zeros(3).long(), nothing, torch.tensor([0, 0]), 2
    )
    assert small.node_ptr.tolist() == [0, 0, 1, 1]
    assert small.edge_index.shape == (2, 0)
    empty = merge(torch.tensor([0, 0]), torch.zeros(1).long(), nothing, nothing, 2)
    assert len(empty.node) == 0
