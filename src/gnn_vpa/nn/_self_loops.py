"""Self-loops: in GAT and SGC every node is a neighbour of itself, exactly once."""

from weakref import WeakKeyDictionary

import torch

from ..errors import UsageError
from ..ops import Graph
from ..ops.internal import as_graph, rows
from ._weighted_graph import GraphLike, WeightedGraph

_known: WeakKeyDictionary[Graph, WeightedGraph] = WeakKeyDictionary()


def with_self_loops(graph: GraphLike, num_nodes: int | None = None) -> WeightedGraph:
    """Return the graph with exactly one self-loop for each node, as PyG's layers add them.

    Self-loops that are there are taken out first; those added come last. The result is remembered,
    so that layers share it. Under ``torch.compile`` call it outside: it looks at the edges.

    Args:
        graph: A ``Graph``, or anything that one is made from.
        num_nodes: Number of nodes, where ``graph`` does not tell.

    Example:
        >>> with_self_loops(torch.tensor([[0, 0], [1, 0]]), num_nodes=3).graph
        Graph(num_sources=3, num_targets=3, num_edges=4)
    """
    if isinstance(graph, WeightedGraph):
        if not graph.loops:
            raise UsageError(
                "graph: a WeightedGraph must hold the self-loops already: add them with "
                "with_self_loops, and pass loops=True."
            )
        return graph
    graph = as_graph(graph, num_nodes)
    if graph not in _known:
        _known[graph] = _looped(graph)
    return _known[graph]


def _looped(graph: Graph) -> WeightedGraph:
    if graph.weight is not None:
        raise UsageError("graph: GAT and SGC take no edge weights. Pass an edge_index.")
    if graph.multiplicity is not None:
        raise UsageError(
            "graph: edges with multiplicities must hold the self-loops already. Add them with "
            "with_self_loops before merging, and pass WeightedGraph(graph, loops=True)."
        )
    if graph.num_sources != graph.num_targets:
        raise UsageError(
            f"graph: self-loops need as many sources as targets, got {graph.num_sources} and "
            f"{graph.num_targets}."
        )
    source, target = graph.by_target.col, rows(graph.by_target.rowptr, graph.num_edges)
    kept = source != target
    loops = torch.arange(graph.num_targets, dtype=source.dtype, device=graph.device)
    ends = [torch.cat([end[kept], loops]) for end in (source, target)]
    return WeightedGraph(Graph(torch.stack(ends), graph.num_targets), loops=True)
