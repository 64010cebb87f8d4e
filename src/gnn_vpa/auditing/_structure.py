"""Sizes and degrees of the graphs, and what is odd about their edges."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..graphs import GraphSet


class Spread(NamedTuple):
    """How numbers are spread.

    Example:
        >>> Spread(least=1, median=2.0, mean=2.5, most=7).most
        7
    """

    least: int
    median: float
    mean: float
    most: int


class Structure(NamedTuple):
    """The graphs as networks see them: an edge is directed, an undirected one counts twice.

    Attributes:
        nodes: Nodes of a graph.
        edges: Edges of a graph.
        degree: In-degree of a node: over how many neighbours a layer aggregates.
        empty_graphs: Graphs without nodes.
        edgeless_graphs: Graphs without edges.
        isolated: Nodes without any edge.
        without_messages: Nodes that no edge leads to: an aggregation gives them 0.
        self_loops: Edges from a node to itself.
        parallel: Edges beyond the first from one node to another.
        one_way: Pairs of nodes with edges in one direction alone.
        edge_attributes: Columns of edge attributes, which the networks of the paper do not see.
    """

    nodes: Spread
    edges: Spread
    degree: Spread
    empty_graphs: int
    edgeless_graphs: int
    isolated: int
    without_messages: int
    self_loops: int
    parallel: int
    one_way: int
    edge_attributes: int


def structure_of(graphs: GraphSet) -> Structure:
    """Count what there is to count."""
    nodes, degree = graphs.node_ptr.diff(), graphs.degree()
    edges = graphs.rowptr[graphs.node_ptr].diff()
    sends = torch.zeros(graphs.num_nodes, dtype=torch.bool)
    sends[graphs.col.long()] = True
    silent = degree == 0
    loops, parallel, one_way = _odd_edges(graphs)
    attributes = graphs.edge_attributes
    return Structure(
        nodes=_spread(nodes),
        edges=_spread(edges),
        degree=_spread(degree),
        empty_graphs=int((nodes == 0).sum()),
        edgeless_graphs=int((edges == 0).sum()),
        isolated=int((silent & ~sends).sum()),
        without_messages=int(silent.sum()),
        self_loops=loops,
        parallel=parallel,
        one_way=one_way,
        edge_attributes=0 if attributes is None else attributes.shape[1],
    )


def _spread(numbers: Tensor) -> Spread:
    if len(numbers) == 0:
        return Spread(0, 0.0, 0.0, 0)
    values = numbers.numpy()
    return Spread(
        int(values.min()), float(np.median(values)), float(values.mean()), int(values.max())
    )


def _odd_edges(graphs: GraphSet) -> tuple[int, int, int]:
    """Count self-loops, parallel edges, and pairs of nodes with edges in one direction alone."""
    from scipy.sparse import csr_array

    size = graphs.num_nodes
    # To turn rows into columns and back is to sort, in a time that grows with the edges.
    marks = np.ones(graphs.num_edges, np.int8)
    around = csr_array((marks, graphs.col.numpy(), graphs.rowptr.numpy()), shape=(size, size))
    outgoing = around.tocsc()
    incoming = outgoing.tocsr()
    rows = np.repeat(np.arange(size, dtype=np.int32), np.diff(incoming.indptr))
    loops = int((rows == incoming.indices).sum())
    again = (rows[1:] == rows[:-1]) & (incoming.indices[1:] == incoming.indices[:-1])
    parallel = int(again.sum())
    if np.array_equal(incoming.indptr, outgoing.indptr) and np.array_equal(
        incoming.indices, outgoing.indices
    ):
        return loops, parallel, 0
    there = _pairs(rows, incoming.indices, size)
    back = _pairs(incoming.indices, rows, size)
    return loops, parallel, len(np.setdiff1d(there, back, assume_unique=True))


def _pairs(rows: NDArray[np.int32], columns: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    return np.unique(rows.astype(np.int64) * size + columns)
