"""A batch by levels: what each layer of a model, and its readout, sums over."""

from functools import partial
from typing import NamedTuple

from torch import Tensor

from ..ops import Graph
from ..ops.internal import weighted_sum
from ._lane_rows import LaneRows
from ._linear import Mix
from ._weighted_graph import GraphLike, WeightedGraph, aggregate

Rows = LaneRows | Tensor | None


class Hop(NamedTuple):
    """The way of one layer: from the rows of one level to the rows of the next.

    Attributes:
        graph: Its sources are the rows before, its targets the rows after.
        parent: The row before that each row after stems from, as indices or as a graph of one edge
            for each row after; None: rows before and after are the same, or ``graph`` has weights
            that hold the parent's share.
        rows: How many nodes each row after stands for.

    Example:
        >>> import torch
        >>> hop = Hop(torch.tensor([[1, 2], [0, 0]]))  # nodes 1 and 2 send to node 0
        >>> hop.with_self(torch.tensor([[1.0], [2.0], [4.0]]), "mean").squeeze(1)
        tensor([4., 2., 4.])
    """

    graph: GraphLike
    parent: Tensor | Graph | None = None
    rows: Rows = None

    @property
    def is_sum(self) -> bool:
        """Whether it is a weighted sum, the row's own share and all: a product may come first."""
        return isinstance(self.graph, WeightedGraph) and self.graph.weight is not None

    @property
    def is_plain(self) -> bool:
        """Whether rows before and after are a graph's nodes, as a user passes them."""
        return self.parent is None and not self.is_sum

    def from_parent(self, rows: Tensor) -> Tensor:
        """Give each row after what its parent has."""
        if self.parent is None:
            return rows
        if isinstance(self.parent, Tensor):
            return rows.index_select(0, self.parent)
        return weighted_sum(rows, self.parent)

    def aggregate(self, rows: Tensor, aggr: str) -> Tensor:
        """Return ``aggr_j x_j`` for each row after."""
        return aggregate(rows, self.graph, aggr)

    def with_self(self, rows: Tensor, aggr: str) -> Tensor:
        """Return ``x_i + aggr_j x_j`` for each row after."""
        if self.is_sum:
            return self.aggregate(rows, aggr)
        return self.from_parent(rows) + self.aggregate(rows, aggr)


class LevelBatch(NamedTuple):
    """A batch by levels, in the place of a model's ``graph``, ``readout`` and ``nodes``.

    At level ``l`` a row stands for all nodes of a lane's graphs that ``l`` layers cannot tell apart
    (a colour of 1-WL after ``l`` rounds), so the first levels have few rows. BatchNorm treats all
    rows of a lane alike, so this is exact. A plain graph is the batch whose hops are all the same.

    Attributes:
        hops: One for each layer.
        rows: How many nodes each row of the first level stands for.
        readouts: From rows to graphs, one for each level that is read out.
        first: The readout of the input, ``[graphs, in_channels]``, where it is known beforehand. A
            single readout then serves all other levels: its sources are their rows, one level after
            the other, and its targets the graphs, as often.

    Example:
        >>> import torch
        >>> pair, batch = torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 0])
        >>> plain = LevelBatch.plain(pair, batch, nodes=None, layers=3, levels=1)
        >>> len(plain.hops), plain.hops[0] is plain.hops[2]
        (3, True)
    """

    hops: tuple[Hop, ...]
    rows: Rows
    readouts: tuple[GraphLike, ...]
    first: Tensor | None = None

    @classmethod
    def plain(
        cls,
        graph: GraphLike | None,
        readout: GraphLike | None,
        nodes: Rows,
        layers: int,
        levels: int,
    ) -> "LevelBatch":
        """Let every layer see the same graph, and read every one of the levels out alike."""
        if isinstance(readout, Tensor) and readout.dim() == 1:
            readout = Graph.readout(readout)
        hops = () if graph is None else (Hop(graph, None, nodes),) * layers
        return cls(hops, nodes, () if readout is None else (readout,) * levels)

    def pools(self, aggr: str) -> list[Mix]:
        """Return the maps of each level's rows to graphs."""
        return [partial(aggregate, graph=readout, aggr=aggr) for readout in self.readouts]
