"""Where the models aggregate: neighbours into nodes, and nodes into graphs."""

from typing import NamedTuple

from torch import Tensor

from .. import ops
from ..errors import UsageError
from ..ops import Graph
from ..ops._aggregate import Aggregation, counted, weighted_sum
from ..ops._check import check_graph
from ..ops._dtypes import accumulator
from ..ops._formats import check_device


class Scaled(NamedTuple):
    """A graph with a scale for each target, in the place of the model's own aggregation.

    ``out_i = scale_i * sum_j m_ij x_j``, with the graph's own multiplicities ``m``. So the lanes
    of one step may differ in their aggregation: 1 for sum, 1/N for mean, 1/sqrt(N) for vpa. Given
    for the graph, the readout or both.

    Attributes:
        graph: The edges, without weights.
        scale: ``[num_targets]``, a constant.

    Example:
        >>> import torch
        >>> pair = Scaled(Graph(torch.tensor([[0, 1], [0, 0]]), 2), torch.tensor([0.5, 1.0]))
        >>> aggregate(torch.tensor([[2.0], [4.0]]), pair, "sum")
        tensor([[3.],
                [0.]])
    """

    graph: Graph
    scale: Tensor


class WithSelf(NamedTuple):
    """A graph whose edges hold the node's own share too: all that GIN adds up, in one sum.

    ``out_i = sum_j w_ij x_j``, with ``w_ii = 1`` for one edge of every node to itself, and the
    aggregation's ``s_i m_ij`` for the others.

    Attributes:
        graph: The edges, without weights of their own.
        weight: ``[num_edges]``, a constant.

    Example:
        >>> import torch
        >>> own = WithSelf(Graph(torch.tensor([[0, 1], [0, 0]]), 2), torch.tensor([1.0, 0.5]))
        >>> with_self(torch.tensor([[2.0], [4.0]]), own, "mean")
        tensor([[4.],
                [0.]])
    """

    graph: Graph
    weight: Tensor


GraphLike = Graph | Tensor | Scaled


def with_self(x: Tensor, graph: GraphLike | WithSelf, aggr: Aggregation) -> Tensor:
    """Return ``x_i + aggr_j x_j``."""
    if isinstance(graph, WithSelf):
        return weighted_sum(x, graph.graph, graph.weight)
    return x + aggregate(x, graph, aggr)


def aggregate(x: Tensor, graph: GraphLike, aggr: Aggregation) -> Tensor:
    """Aggregate ``[num_sources, F] -> [num_targets, F]``: every model's sums are formed here."""
    if not isinstance(graph, Scaled):
        return ops.aggregate(x, graph, aggr)
    if aggr == "max":
        raise UsageError("graph: a Scaled graph cannot take the place of the aggregation 'max'.")
    return scaled_sum(x, *graph)


def scaled_sum(x: Tensor, graph: Graph, scale: Tensor) -> Tensor:
    """Return ``scale_i * sum_j m_ij x_j``."""
    check_graph(x, graph)
    if graph.weight is not None:
        raise UsageError("graph: a Scaled graph takes no edge weights. Pass an edge_index.")
    if scale.shape != (graph.num_targets,):
        raise UsageError(
            f"scale: expected shape [{graph.num_targets}], one for each target of the graph, "
            f"got {list(scale.shape)}."
        )
    check_device("scale", scale, graph.device)
    factor = scale.to(accumulator(x.dtype)).unsqueeze(1)
    return weighted_sum(x, graph, counted(None, graph, x), factor)
