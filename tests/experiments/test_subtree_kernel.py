"""The subtree kernel against the definition, and against another library's."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gnn_vpa.experiments.subtree_kernel import subtree_kernels
from gnn_vpa.graphs import GraphSet, load, refine


@st.composite
def data_sets(draw: st.DrawFn) -> GraphSet:
    made = []
    for _ in range(draw(st.integers(1, 5))):
        nodes = draw(st.integers(0, 4))
        node = st.integers(0, max(nodes - 1, 0))
        edges = draw(st.lists(st.tuples(node, node), max_size=6)) if nodes else []
        edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
        made.append(Data(edge_index=edge_index, num_nodes=nodes, y=0))
    return GraphSet.from_pyg(made)


@settings(deadline=None, max_examples=60)
@given(data_sets())
def test_the_kernel_counts_pairs_of_nodes_of_one_colour(graphs: GraphSet) -> None:
    start = torch.arange(graphs.num_nodes) % 2
    ranges = list(pairwise(graphs.node_ptr.tolist()))
    total = np.zeros((len(ranges), len(ranges)))
    kernels = list(subtree_kernels(graphs, start, iterations=2))
    for rounds in range(3):
        colour = refine(graphs.rowptr, graphs.col, start, rounds).tolist()
        total += [
            [sum(colour[i] == colour[j] for i in range(*g) for j in range(*h)) for h in ranges]
            for g in ranges
        ]
        if rounds:
            size = np.sqrt(np.maximum(total.diagonal(), 1))
            assert kernels[rounds - 1] == pytest.approx(total / np.outer(size, size))


def test_the_kernel_is_that_of_grakel() -> None:
    grakel = pytest.importorskip("grakel")
    graphs = load("MUTAG")
    assert graphs.node_labels is not None
    start = graphs.node_labels[:, 0]
    ends, col, labels = graphs.rowptr.tolist(), graphs.col.tolist(), start.tolist()
    listed = [
        [{n: col[ends[n] : ends[n + 1]] for n in range(*g)}, {n: labels[n] for n in range(*g)}]
        for g in pairwise(graphs.node_ptr.tolist())
    ]
    for number, ours in enumerate(subtree_kernels(graphs, start, iterations=3), 1):
        theirs = grakel.WeisfeilerLehman(
            n_iter=number, normalize=True, base_graph_kernel=grakel.VertexHistogram
        ).fit_transform(listed)
        assert np.abs(ours - theirs).max() < 1e-12
