"""From layer to layer: rows that stay the same, or that a layer tells apart for the first time."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from ..ops import Graph
from ..ops._aggregate import Aggregation, weighted_sum
from ._message import GraphLike, WithSelf, aggregate, with_self
from ._self_loops import Looped


class Hop(NamedTuple):
    """The way from the rows of one level to those of the next.

    Attributes:
        graph: Its sources are the rows before, its targets those after.
        own: The row before that each row after stems from; None where ``graph`` is ``WithSelf``.
        nodes: How many nodes each row after stands for; 0 where it is empty.
    """

    graph: Graph | WithSelf | Looped
    own: Tensor | None
    nodes: Tensor | None

    @property
    def is_sum(self) -> bool:
        """Whether it is a weighted sum, own term and all: a product may come first then."""
        return isinstance(self.graph, WithSelf)

    def take(self, rows: Tensor) -> Tensor:
        """Give each row after what the row before has that it stems from."""
        assert self.own is not None
        return rows.index_select(0, self.own)

    def add_up(self, rows: Tensor) -> Tensor:
        """Return ``sum_j w_ij x_j`` for each row after; the weights count its own term."""
        assert isinstance(self.graph, WithSelf)
        return weighted_sum(rows, *self.graph)

    def with_own(self, rows: Tensor, aggr: Aggregation) -> Tensor:
        """Return ``x_i + aggr_j x_j`` for each row after."""
        assert isinstance(self.graph, Graph)
        return self.take(rows) + aggregate(rows, self.graph, aggr)


class Stay(NamedTuple):
    """A layer that leaves the rows as they are: each of them is a node, or several merged ones."""

    graph: GraphLike | WithSelf | Looped
    nodes: Tensor | None

    is_sum = False

    def take(self, rows: Tensor) -> Tensor:
        """Return the rows."""
        return rows

    def with_own(self, rows: Tensor, aggr: Aggregation) -> Tensor:
        """Return ``x_i + aggr_j x_j`` for each row."""
        assert not isinstance(self.graph, Looped)
        return with_self(rows, self.graph, aggr)


class Layers(NamedTuple):
    """A batch by levels, in the place of a model's ``graph``.

    At level ``l`` a row stands for all nodes of a lane's graphs that ``l`` layers cannot tell apart
    (a colour of 1-WL after ``l`` rounds), so the first levels have few rows. BatchNorm treats all
    rows of a lane alike, so this is exact. The readout that goes with it is a ``Joint``, or a tuple
    of a ``Graph`` for each level.
    """

    hops: tuple[Hop, ...]


class Joint(NamedTuple):
    """A readout of several levels in one go: a weighted sum, with all of its scale.

    Attributes:
        graph: Its sources are the rows of the levels, one level after the other, its targets the
            graphs, as often.
        weight: ``[num_edges]``, a constant.
    """

    graph: Graph
    weight: Tensor


def hops(
    graph: GraphLike | WithSelf | Looped | Layers, nodes: Tensor | None, depth: int
) -> Sequence[Hop] | Sequence[Stay]:
    """Return the way through each of ``depth`` layers."""
    return graph.hops if isinstance(graph, Layers) else [Stay(graph, nodes)] * depth
