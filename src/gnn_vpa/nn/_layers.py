"""A batch whose rows differ from layer to layer: one for all that a layer cannot tell apart."""

from functools import partial
from typing import NamedTuple

from torch import Tensor

from ..ops import Graph
from ..ops._aggregate import Aggregation, weighted_sum
from ._batch_norm import Counts
from ._blocks import Blocks
from ._linear import Mix
from ._message import Scaled, WithSelf, aggregate, scaled_sum
from ._self_loops import Looped


class Hop(NamedTuple):
    """The way from the rows of one level to those of the next.

    Attributes:
        graph: Its sources are the rows before, its targets those after.
        own: The row before that each row after stems from, as indices or as a graph of one edge
            for each row after; None where ``graph`` is ``WithSelf``.
        nodes: How many nodes each row after stands for.
    """

    graph: Graph | WithSelf | Looped
    own: Tensor | Graph | None
    nodes: Counts | Blocks

    @property
    def is_sum(self) -> bool:
        """Whether it is a weighted sum, own term and all: a product may come first then."""
        return isinstance(self.graph, WithSelf)

    def take(self, rows: Tensor) -> Tensor:
        """Give each row after what the row before has that it stems from."""
        assert self.own is not None
        if isinstance(self.own, Tensor):
            return rows.index_select(0, self.own)
        return weighted_sum(rows, self.own)

    def with_self(self, aggr: Aggregation) -> Mix:
        """Return the map of rows to ``x_i + aggr_j x_j``, one for each row after."""
        if isinstance(self.graph, WithSelf):
            return partial(weighted_sum, graph=self.graph.graph, weight=self.graph.weight)
        return lambda rows: self.take(rows) + self.around(rows, aggr)

    def around(self, rows: Tensor, aggr: Aggregation) -> Tensor:
        """Return ``aggr_j x_j`` for each row after."""
        assert isinstance(self.graph, Graph)
        return aggregate(rows, self.graph, aggr)


class Layers(NamedTuple):
    """A batch by levels, in the place of a model's ``graph``.

    At level ``l`` a row stands for all nodes of a lane's graphs that ``l`` layers cannot tell apart
    (a colour of 1-WL after ``l`` rounds), so the first levels have few rows. BatchNorm treats all
    rows of a lane alike, so this is exact. The readout that goes with it is a ``Joint``
    or ``Readouts``.
    """

    hops: tuple[Hop, ...]


class Readouts(NamedTuple):
    """A readout of its own for each level that is read out, from the first of these on.

    A ``Scaled`` graph is a sum, whatever the model's aggregation is.
    """

    graphs: tuple[Graph | Scaled, ...]

    def pools(self, aggr: Aggregation) -> list[Mix]:
        """Return the maps of each level's rows to graphs."""
        return [
            partial(scaled_sum, graph=own.graph, scale=own.scale)
            if isinstance(own, Scaled)
            else partial(aggregate, graph=own, aggr=aggr)
            for own in self.graphs
        ]


class Joint(NamedTuple):
    """A readout of several levels in one go.

    Attributes:
        graph: Its sources are the rows of the levels that are read out, one level after the other,
            its targets the graphs, as often.
        weight: ``[num_edges]``, constants that hold all of the sum's scale; None: the maximum.
        first: The readout of the input, ``[graphs, in_channels]``, which needs no weights and so
            is known; None where only the last level is read out.
    """

    graph: Graph
    weight: Tensor | None
    first: Tensor | None

    def pool(self, rows: Tensor) -> Tensor:
        """Read the rows out."""
        if self.weight is None:
            return aggregate(rows, self.graph, "max")
        return weighted_sum(rows, self.graph, self.weight)
