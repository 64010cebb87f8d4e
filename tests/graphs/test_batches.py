"""Batches of a bounded size, the same from a data set and from an iterator."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gnn_vpa import UsageError
from gnn_vpa.graphs import GraphSet
from gnn_vpa.graphs.batches import NODE, cut, read_batches

SIZES = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 12)), min_size=1, max_size=20)


def graphs_of(sizes: list[tuple[int, int]]) -> list[Data]:
    """Return graphs with so many nodes and edges."""
    return [
        Data(edge_index=torch.zeros(2, edges, dtype=torch.int64), num_nodes=nodes)
        for nodes, edges in sizes
    ]


@given(SIZES, st.integers(1, 40 * NODE))
def test_batches_are_as_large_as_they_may_be(sizes: list[tuple[int, int]], most: int) -> None:
    found = list(cut(GraphSet.from_pyg(graphs_of(sizes), target=""), most))
    assert [begin for begin, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == len(sizes)
    total = [NODE * nodes + edges for nodes, edges in sizes]
    for begin, end in found:
        assert sum(total[begin:end]) <= most or end == begin + 1
        assert end == len(sizes) or sum(total[begin : end + 1]) > most


@given(SIZES, st.integers(1, 40 * NODE))
def test_an_iterator_is_cut_as_a_data_set_is(sizes: list[tuple[int, int]], most: int) -> None:
    graphs = graphs_of(sizes)
    read = [(first, first + b.num_graphs) for first, b in read_batches(iter(graphs), most)]
    assert read == list(cut(GraphSet.from_pyg(graphs, target=""), most))


def test_a_fault_is_counted_from_the_first_graph_of_all() -> None:
    graphs = graphs_of([(2, 1)] * 5)
    graphs[4].edge_index = torch.tensor([[7], [0]])
    with pytest.raises(UsageError, match="graph 4: edge_index goes from 0 to 7"):
        list(read_batches(graphs, most=5 * NODE))
