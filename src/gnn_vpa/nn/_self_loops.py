"""Self-loops: in GAT and SGC every node is a neighbour of itself, exactly once."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ..errors import UsageError
from ..ops import Graph
from ..ops._cache import as_graph
from ..ops._csr import rows


class Looped(NamedTuple):
    """A graph whose edges hold one self-loop for each node already.

    With ``power``, lanes of one step may differ in GAT's form: the exponent of each target,
    ``[num_targets]``, in the place of the model's own. Its ``s_i = (sum_j c_ij^2)^(-p_i)`` has 0
    for the default form and 1/2 for vpa.

    ``with_self_loops`` makes one. Make it by hand where the edges come prepared, and for a merged
    graph: add the loops to the whole graph and merge then, because among merged nodes an edge to
    oneself may stand for neighbours of the same kind.

    Example:
        Two joined nodes with their self-loops, merged into one with two neighbours of its kind.

        >>> loop = torch.tensor([[0], [0]])
        >>> merged = Looped(Graph(loop, num_nodes=1, multiplicity=torch.tensor([2])))
        >>> merged.graph.count
        tensor([2.])
    """

    graph: Graph
    power: Tensor | None = None


_known: WeakKeyDictionary[Graph, Looped] = WeakKeyDictionary()


def with_self_loops(graph: Graph | Tensor | Looped, num_nodes: int | None = None) -> Looped:
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
    if isinstance(graph, Looped):
        return graph
    graph = as_graph(graph, num_nodes)
    if graph not in _known:
        _known[graph] = _looped(graph)
    return _known[graph]


def _looped(graph: Graph) -> Looped:
    if graph.weight is not None:
        raise UsageError("graph: GAT and SGC take no edge weights. Pass an edge_index.")
    if graph.multiplicity is not None:
        raise UsageError(
            "graph: edges with multiplicities must hold the self-loops already. Add them with "
            "with_self_loops before merging, and pass Looped(graph)."
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
    return Looped(Graph(torch.stack(ends), graph.num_targets))
