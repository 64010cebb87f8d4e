"""Where the models aggregate: neighbours into nodes, and nodes into graphs."""

from functools import partial
from typing import NamedTuple

from torch import Tensor

from .. import ops
from ..errors import UsageError
from ..ops import Graph
from ..ops._aggregate import Aggregation
from ._linear import Mix


class Multiplicity(NamedTuple):
    """How often each node and each edge of a merged graph occurs in the whole one.

    Nodes that no message-passing network of this depth can tell apart may be merged: one of them
    stands for all, and counts as often in the readout and in BatchNorm. An edge counts as often
    as the target has neighbours that were merged into its source, so degrees are the true ones.
    A slot of multiplicity 0 holds no node at all.

    Attributes:
        nodes: ``[num_nodes]``.
        edges: ``[num_edges]``, in the order in which the edges were given; None: all 1.

    Example:
        A star of three leaves, merged: the hub 0, one leaf 1 for all three.

        >>> import torch
        >>> from gnn_vpa import build_model
        >>> star = torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]])
        >>> merged = torch.tensor([[1, 0], [0, 1]])
        >>> times = Multiplicity(nodes=torch.tensor([1, 3]), edges=torch.tensor([3, 1]))
        >>> model = build_model("gin", in_channels=1, num_classes=2).eval()
        >>> whole = model(torch.ones(4, 1), star, torch.zeros(4, dtype=torch.int64))
        >>> small = model(torch.ones(2, 1), merged, torch.zeros(2, dtype=torch.int64), times)
        >>> torch.allclose(whole, small, atol=1e-5)
        True
    """

    nodes: Tensor
    edges: Tensor | None = None


def check_multiplicity(multiplicity: Multiplicity | None, num_nodes: int) -> None:
    """Raise unless every node has a multiplicity, where they are given (edges: ``ops``)."""
    if multiplicity is None:
        return
    if not isinstance(multiplicity, Multiplicity):
        raise UsageError(
            f"multiplicity: expected a Multiplicity, got {type(multiplicity).__name__}. "
            "Pass Multiplicity(nodes, edges)."
        )
    if multiplicity.nodes.shape != (num_nodes,):
        raise UsageError(
            f"multiplicity.nodes: expected shape [{num_nodes}], one for each node, "
            f"got {list(multiplicity.nodes.shape)}."
        )


class Scaled(NamedTuple):
    """A graph with a scale for each target, in the place of the model's own aggregation.

    ``out_i = scale_i * sum_j x_j``. So the lanes of one step may differ in their aggregation:
    1 for sum, 1/N for mean, 1/sqrt(N) for vpa. Given for the graph, the readout or both.

    Attributes:
        graph: The edges.
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


GraphLike = Graph | Tensor | Scaled


def aggregate(
    x: Tensor, graph: GraphLike, aggr: Aggregation, multiplicity: Tensor | None = None
) -> Tensor:
    """Aggregate ``[num_sources, F] -> [num_targets, F]``: every model's sums are formed here."""
    if not isinstance(graph, Scaled):
        return ops.aggregate(x, graph, aggr, multiplicity=multiplicity)
    if aggr == "max":
        raise UsageError("graph: a Scaled graph cannot take the place of the aggregation 'max'.")
    total = ops.aggregate(x, graph.graph, "sum", multiplicity=multiplicity)
    return total * graph.scale.to(x.dtype).unsqueeze(1)


def neighbours(graph: GraphLike, aggr: Aggregation, multiplicity: Multiplicity | None) -> Mix:
    """Return the aggregation of neighbours into nodes."""
    edges = None if multiplicity is None else multiplicity.edges
    return partial(aggregate, graph=graph, aggr=aggr, multiplicity=edges)


def pooling(readout: GraphLike, aggr: Aggregation, multiplicity: Multiplicity | None) -> Mix:
    """Return the aggregation of nodes into graphs; ``readout`` may be PyG's batch vector."""
    if isinstance(readout, Tensor) and readout.dim() == 1:
        readout = Graph.readout(readout)
    nodes = None if multiplicity is None else multiplicity.nodes
    return partial(aggregate, graph=readout, aggr=aggr, multiplicity=nodes)
