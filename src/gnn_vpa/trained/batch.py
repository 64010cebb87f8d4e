"""Neighbouring graphs of a data set as a model is called with them, without sorting."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..errors import UsageError
from ..graphs import GraphSet
from ..graphs.batches import cut, read_batches
from ..ops import Graph
from ..ops.internal import CSR, rows

if TYPE_CHECKING:
    from torch_geometric.data import Data

SIZE = 1 << 18  # of a batch, see `cut`: some thousand rows of features stay in a core's cache


class Part:
    """The graphs ``begin`` to ``end`` of a data set: nodes and edges are ranges of its arrays.

    Attributes:
        graphs: The data set.
        begin: Its first graph here.
        end: The first behind.
        first: The number that users give to its graph ``begin``.
        nodes: Its nodes.
        edges: Its edges.

    Example:
        >>> from torch_geometric.data import Data
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> part = Part(GraphSet.from_pyg([pair] * 3, target=""), 1, 3)
        >>> part.col
        tensor([1, 0, 3, 2], dtype=torch.int32)
    """

    def __init__(self, graphs: GraphSet, begin: int, end: int, first: int | None = None) -> None:
        self.graphs, self.begin, self.end = graphs, begin, end
        self.first = begin if first is None else first
        begins, ends = int(graphs.node_ptr[begin]), int(graphs.node_ptr[end])
        self.nodes = slice(begins, ends)
        self.edges = slice(int(graphs.rowptr[begins]), int(graphs.rowptr[ends]))

    @property
    def num_graphs(self) -> int:
        """Number of graphs, B."""
        return self.end - self.begin

    @property
    def num_nodes(self) -> int:
        """Number of nodes, N."""
        return int(self.nodes.stop - self.nodes.start)

    @cached_property
    def ptr(self) -> Tensor:
        """Where each graph's nodes begin: ``[B + 1]``."""
        return self.graphs.node_ptr[self.begin : self.end + 1] - self.nodes.start

    @cached_property
    def rowptr(self) -> Tensor:
        """Where the edges of each node begin: ``[N + 1]``."""
        return self.graphs.rowptr[self.nodes.start : self.nodes.stop + 1] - self.edges.start

    @cached_property
    def col(self) -> Tensor:
        """Source of each edge, numbered as in the batch: ``[E]``."""
        return self.graphs.col[self.edges] - self.nodes.start

    def where(self, node: int) -> str:
        """Say in words which node of the batch it is."""
        graph = int(torch.searchsorted(self.ptr, node, right=True)) - 1
        return f"graph {self.first + graph}, node {node - int(self.ptr[graph])}"

    def graph(self) -> Graph:
        """Return the edges for our operators."""
        return _graph(self.rowptr, self.col, (self.num_nodes, self.num_nodes))

    def readout(self) -> Graph:
        """Return which nodes belong to which graph, for our operators."""
        nodes = torch.arange(self.num_nodes, dtype=torch.int32)
        return _graph(self.ptr, nodes, (self.num_nodes, self.num_graphs))

    def edge_index(self) -> Tensor:
        """Return the edges as PyG has them: ``[2, E]``."""
        target = rows(self.rowptr, len(self.col))
        return torch.stack([self.col.long(), target])

    def batch(self) -> Tensor:
        """Return the graph of each node: ``[N]``."""
        return rows(self.ptr, self.num_nodes)


def _graph(rowptr: Tensor, col: Tensor, sizes: tuple[int, int]) -> Graph:
    longest = int(rowptr.diff().max()) if len(rowptr) > 1 else 0
    return Graph.from_csr(CSR(rowptr.int(), col, None, longest), None, sizes)


def parts(graphs: "GraphSet | Iterable[Data]", size: int = SIZE) -> Iterator[Part]:
    """Yield graphs in batches of a bounded size, in order.

    Which graphs share a batch depends on the graphs alone, not on what they are given in.

    Raises:
        UsageError: They are no graphs, or one has no nodes.

    Example:
        >>> from torch_geometric.data import Data
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> [part.num_graphs for part in parts([pair] * 5, size=260)]
        [2, 2, 1]
    """
    if isinstance(graphs, GraphSet):
        found: Iterator[Part] = (Part(graphs, *ends) for ends in cut(graphs, size))
    else:
        read = read_batches(_iterated(graphs), size)
        found = (Part(batch, 0, batch.num_graphs, first) for first, batch in read)
    for part in found:
        empty = part.ptr.diff() == 0
        if bool(empty.any()):
            number = part.first + int(empty.nonzero()[0])
            raise UsageError(f"graph {number} has no nodes, so that there is nothing to go by")
        yield part


def _iterated(graphs: object) -> "Iterator[Data]":
    from torch_geometric.data import Data  # it loads slowly

    if isinstance(graphs, Data):
        return iter([graphs])
    try:
        return iter(graphs)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise UsageError(
            "expected a GraphSet, a list of torch_geometric.data.Data or an iterator over them, "
            f"got {type(graphs).__name__}"
        ) from None
