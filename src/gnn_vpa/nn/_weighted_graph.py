"""Where the models aggregate: neighbours into nodes, and nodes into graphs."""

from typing import NamedTuple

from torch import Tensor

from .. import ops
from ..errors import UsageError
from ..ops import Graph
from ..ops._aggregate import counted, weighted_sum
from ..ops._check import check_graph
from ..ops._dtypes import accumulator
from ..ops._formats import check_device


class WeightedGraph(NamedTuple):
    """A graph with the constants of its sums, in the place of the model's own aggregation.

    With ``weight``, ``out_i = sum_j w_ij x_j``. With ``scale``, ``out_i = s_i sum_j m_ij x_j``,
    where ``m`` are the graph's multiplicities. So lanes of one step may differ in their
    aggregation: a scale of 1 is sum, 1/N mean, 1/sqrt(N) vpa. With ``power``, attention of each
    target is scaled by ``(sum_j c_ij^2)^(-p_i)``.

    ``loops`` says that one edge of every node to itself is among the edges. For GIN such an edge
    has the weight 1: the node's own share. GAT and SGC add self-loops where there are none
    (``with_self_loops``). Add them to the whole graph before nodes are merged: among merged nodes
    an edge to oneself may stand for neighbours of the same kind.

    Attributes:
        graph: The edges.
        weight: ``[num_edges]``, constants.
        scale: ``[num_targets]``, constants.
        power: ``[num_targets]``, constants.
        loops: Whether every node's edge to itself is among the edges.

    Example:
        >>> import torch
        >>> edges = Graph(torch.tensor([[0, 1], [0, 0]]), 2)
        >>> halved = WeightedGraph(edges, scale=torch.tensor([0.5, 1.0]))
        >>> aggregate(torch.tensor([[2.0], [4.0]]), halved, "sum")
        tensor([[3.],
                [0.]])

        Two joined nodes with their self-loops, merged into one with two neighbours of its kind.

        >>> loop = Graph(torch.tensor([[0], [0]]), num_nodes=1, multiplicity=torch.tensor([2]))
        >>> WeightedGraph(loop, loops=True).graph.count
        tensor([2.])
    """

    graph: Graph
    weight: Tensor | None = None
    scale: Tensor | None = None
    power: Tensor | None = None
    loops: bool = False


GraphLike = Graph | Tensor | WeightedGraph


def aggregate(x: Tensor, graph: GraphLike, aggr: str) -> Tensor:
    """Aggregate ``[num_sources, F] -> [num_targets, F]``: every model's sums are formed here."""
    if not isinstance(graph, WeightedGraph):
        return ops.aggregate(x, graph, aggr)
    if graph.weight is not None:
        return weighted_sum(x, graph.graph, graph.weight)
    if graph.scale is None:
        return ops.aggregate(x, graph.graph, aggr)
    return _scaled_sum(x, graph.graph, graph.scale)


def _scaled_sum(x: Tensor, graph: Graph, scale: Tensor) -> Tensor:
    """Return ``scale_i * sum_j m_ij x_j``."""
    check_graph(x, graph)
    if graph.weight is not None:
        raise UsageError("graph: scaled sums take no edge weights. Pass an edge_index.")
    if scale.shape != (graph.num_targets,):
        raise UsageError(
            f"scale: expected shape [{graph.num_targets}], one for each target of the graph, "
            f"got {list(scale.shape)}."
        )
    check_device("scale", scale, graph.device)
    factor = scale.to(accumulator(x.dtype)).unsqueeze(1)
    return weighted_sum(x, graph, counted(None, graph, x), factor)
