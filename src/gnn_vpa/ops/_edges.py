"""Between edges and nodes: the operator ``spmm`` with edges in the place of nodes.

An edge belongs to one target, so the incidence matrix of targets and edges is a graph like any
other; sums over it and gathers from it are each other's derivative, and both are deterministic.
Edges are in the user's order throughout.
"""

from typing import Any

import torch
from torch import Tensor

from ._csr import rows
from ._graph import Graph
from ._operators import spmm


def sum_over_edges(values: Tensor, graph: Graph) -> Tensor:
    """Sum the edges of each target: ``[E, H] -> [num_targets, H]``."""
    return spmm(values.unsqueeze(1), None, None, None, *incidence(graph)).squeeze(1)


def from_targets(values: Tensor, graph: Graph) -> Tensor:
    """Give each edge the value of its target: ``[num_targets, H] -> [E, H]``."""
    operands = incidence(graph)
    by_target, by_edge = operands[:4], operands[4:]
    return spmm(values.unsqueeze(1), None, None, None, *by_edge, *by_target).squeeze(1)


def from_sources(values: Tensor, graph: Graph) -> Tensor:
    """Give each edge the value of its source: ``[num_sources, H] -> [E, H]``."""
    rowptr, _, edge, longest = graph.by_source
    numbers = _numbers(graph) if edge is None else edge
    ordered = rows(rowptr, graph.num_edges)
    source = ordered.scatter(0, numbers.long(), ordered)
    by_edge, by_source = (_numbers(graph, 1), source, None, 1), (rowptr, numbers, None, longest)
    return spmm(values.unsqueeze(1), None, None, None, *by_edge, *by_source).squeeze(1)


def incidence(graph: Graph) -> tuple[Any, ...]:
    """Return targets and their edges as the operators take a graph, by target and by edge."""
    rowptr, _, edge, longest = graph.by_target
    numbers = _numbers(graph) if edge is None else edge
    return rowptr, numbers, numbers, longest, _numbers(graph, 1), graph.edge_targets, None, 1


def _numbers(graph: Graph, more: int = 0) -> Tensor:
    dtype = graph.by_target.col.dtype
    return torch.arange(graph.num_edges + more, dtype=dtype, device=graph.device)
