"""From layer to layer: rows that stay the same, or that a layer tells apart for the first time."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from ..ops import Aggregation, Graph
from ._message import GraphLike, aggregate


class Hop(NamedTuple):
    """The way from the rows of one level to those of the next.

    Attributes:
        graph: Its sources are the rows before, its targets those after. With weights it is all of
            a linear layer, the row's own term too: ``sum_j w_ij x_j``.
        own: The row before that each row after stems from; None where ``graph`` has weights.
        nodes: How many nodes each row after stands for; 0 where it is empty.
    """

    graph: Graph
    own: Tensor | None
    nodes: Tensor | None

    @property
    def linear(self) -> bool:
        """Whether the hop is a weighted sum. It may follow a product then, on its fewer rows."""
        return self.own is None

    def take(self, rows: Tensor) -> Tensor:
        """Give each row after what the row before has that it stems from."""
        assert self.own is not None
        return rows.index_select(0, self.own)

    def add_up(self, rows: Tensor, aggr: Aggregation) -> Tensor:
        """Return ``x_i + aggr_j x_j`` for each row after."""
        if self.linear:
            return aggregate(rows, self.graph, "sum")
        return self.take(rows) + aggregate(rows, self.graph, aggr)


class Stay(NamedTuple):
    """A layer that leaves the rows as they are: each of them is a node, or several merged ones."""

    graph: GraphLike
    nodes: Tensor | None

    linear = False

    def take(self, rows: Tensor) -> Tensor:
        """Return the rows."""
        return rows

    def add_up(self, rows: Tensor, aggr: Aggregation) -> Tensor:
        """Return ``x_i + aggr_j x_j`` for each row."""
        return rows + aggregate(rows, self.graph, aggr)


class Layers(NamedTuple):
    """A batch by levels, in the place of a model's ``graph``.

    At level ``l`` a row stands for all nodes of a lane's graphs that ``l`` layers cannot tell apart
    (a colour of 1-WL after ``l`` rounds), so the first levels have few rows. BatchNorm treats all
    rows of a lane alike, so this is exact. Two kinds of readout go with it: a ``Graph`` with
    weights, from the rows of all levels that are read out, one level after the other, to as many
    times the graphs; or, where that is no weighted sum, a tuple of a ``Graph`` for each level.
    """

    hops: tuple[Hop, ...]


def hops(
    graph: GraphLike | Layers, nodes: Tensor | None, depth: int
) -> Sequence[Hop] | Sequence[Stay]:
    """Return the way through each of ``depth`` layers."""
    return graph.hops if isinstance(graph, Layers) else [Stay(graph, nodes)] * depth
