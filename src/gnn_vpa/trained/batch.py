"""Neighbouring graphs of a data set as a model is called with them, without sorting."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..graphs import Features, GraphSet
from ..ops import Graph
from ..ops.internal import CSR


class Slice(NamedTuple):
    """The graphs ``begin`` to ``end`` of a data set, with nodes and edges as ranges."""

    begin: int
    end: int
    nodes: slice
    edges: slice
    node_ptr: Tensor  # [graphs + 1], where each graph's nodes begin in the batch
    rowptr: Tensor  # [nodes + 1]
    col: Tensor  # [edges], numbered as in the batch

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.nodes.stop - self.nodes.start


def sliced(graphs: GraphSet, begin: int, end: int) -> Slice:
    """Return some neighbouring graphs of a data set.

    Example:
        >>> from torch_geometric.data import Data
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> sliced(GraphSet.from_pyg([pair] * 3, target=""), 1, 3).col
        tensor([1, 0, 3, 2], dtype=torch.int32)
    """
    nodes = slice(int(graphs.node_ptr[begin]), int(graphs.node_ptr[end]))
    edges = slice(int(graphs.rowptr[nodes.start]), int(graphs.rowptr[nodes.stop]))
    return Slice(
        begin,
        end,
        nodes,
        edges,
        graphs.node_ptr[begin : end + 1] - nodes.start,
        graphs.rowptr[nodes.start : nodes.stop + 1] - edges.start,
        graphs.col[edges] - nodes.start,
    )


def graph_of(part: Slice) -> Graph:
    """Return the edges of a batch for our operators."""
    rowptr, nodes = part.rowptr.int(), part.num_nodes
    longest = int(rowptr.diff().max()) if nodes else 0
    return Graph.from_csr(CSR(rowptr, part.col, None, longest), None, (nodes, nodes))


def readout_of(part: Slice) -> Graph:
    """Return which nodes belong to which graphs, for our operators."""
    rowptr, nodes = part.node_ptr.int(), part.num_nodes
    col = torch.arange(nodes, dtype=torch.int32)
    return Graph.from_csr(
        CSR(rowptr, col, None, int(rowptr.diff().max())), None, (nodes, part.end - part.begin)
    )


def input_of(features: Features) -> Tensor:
    """Return features as our models take them: codes, or a matrix."""
    if features.dense is None and features.codes is not None:
        return features.codes
    return features.matrix()
