"""Aggregation along edges in whatever form they are."""

from torch import Tensor

from .. import ops
from ..aggregations import Aggregation, aggregation
from ..ops import Graph
from ._gathered import Gathered
from ._traced import Traced

Edges = Graph | Gathered | Traced


def aggregate(x: Tensor, graph: Edges, aggr: str, weight: Tensor | None = None) -> Tensor:
    """Aggregate along edges, grouped or not."""
    if not isinstance(graph, Graph):
        entry = aggregation(aggr, among="operators")
        if entry.exponent is not None and (weight is None or _is_plain(weight, x, graph, entry)):
            return graph.sum(x, entry.exponent, weight)
        graph = graph.grouped(len(x))
    return ops.aggregate(x, graph, aggr, weight)


def _is_plain(weight: Tensor, x: Tensor, graph: Gathered | Traced, entry: Aggregation) -> bool:
    """Say whether weights are mere factors; where their squares count, they may be of any size."""
    fits = weight.shape == graph.target.shape and weight.dtype == x.dtype
    return fits and not entry.squares_weights
