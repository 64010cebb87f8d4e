"""The lemmas, node by node: the variance that a layer is expected to give every node of a graph."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..aggregations import aggregation
from ..ops import Graph, aggregate
from .correlation import message_correlation
from .maximum import second_moment_of_maximum

Variances = Tensor  # [nodes, 1], float64: E h^2 of a feature of each node, over random weights


class Mixed(NamedTuple):
    """What an aggregation is expected to do.

    Attributes:
        variances: The second moment of its result at every node, ``[targets, 1]``.
        rho: The correlation of messages that was reckoned with.
    """

    variances: Variances
    rho: float


# Of the variances, the features [nodes, F], and whether rho is to be measured rather than 0.
Mixing = Callable[[Variances, Tensor, bool], Mixed]


def unmixed(v: Variances, x: Tensor, correlated: bool) -> Mixed:
    """Expect a node's own features: what they are."""
    return Mixed(v, 0.0)


def weighted_sum(
    graph: Graph,
    scale: Tensor,
    weight: Tensor | None = None,
    *,
    edges: Tensor | None = None,
    own: bool = False,
) -> Mixing:
    r"""Expect ``y_i = s_i sum_j w_j u_ij x_j``, and with ``own`` the node itself added.

    ``Var(y_i) = sum_j c_ij^2 v_j + rho ((sum_j c_ij sqrt(v_j))^2 - sum_j c_ij^2 v_j)`` with the
    coefficients ``c_ij = s_i w_j u_ij`` and the variances ``v_j`` of the messages. Independent ones
    (``rho = 0``) add their variances: Lemmas 1 and 3.

    Args:
        graph: The edges.
        scale: ``s``, ``[targets, 1]``.
        weight: ``w``, ``[sources, 1]``; by default 1.
        edges: ``u``, ``[edges]``, not negative; by default 1.
        own: Whether ``x_i`` is added, with coefficient 1.
    """
    scale = scale.double()
    weight = torch.ones(1, 1).to(scale) if weight is None else weight.double()
    around = _with_itself(graph) if own else graph

    def mixing(v: Variances, x: Tensor, correlated: bool) -> Mixed:
        rho = message_correlation(x, around) if correlated else 0.0
        squared = None if edges is None else edges.square()
        squares = scale.square() * aggregate(weight.square() * v, graph, "sum", squared)
        total = scale * aggregate(weight * v.sqrt(), graph, "sum", edges)
        if own:
            squares, total = squares + v, total + v.sqrt()
        return Mixed(squares + rho * (total.square() - squares), rho)

    return mixing


def largest(graph: Graph, rectified: bool, own: bool = False) -> Mixing:
    """Expect the maximum of normal messages, or of rectified ones; with ``own`` ``x_i`` is added.

    Every target's messages count as equally large. The node itself is taken to be uncorrelated
    with the maximum.
    """
    count = graph.count.tolist()
    mean = graph.scale(1.0, torch.float64)

    def mixing(v: Variances, x: Tensor, correlated: bool) -> Mixed:
        rho = min(max(message_correlation(x, graph), 0.0), 1.0) if correlated else 0.0
        one = 2.0 if rectified else 1.0  # relu halves the second moment that z had
        moments = {
            n: one * second_moment_of_maximum(round(n), round(rho, 4), rectified) if n else 0.0
            for n in set(count)
        }
        gain = torch.tensor([[moments[n]] for n in count], dtype=v.dtype, device=v.device)
        result = gain * mean * aggregate(v, graph, "sum")
        return Mixed(result + v if own else result, rho)

    return mixing


def aggregated(graph: Graph, aggr: str, *, rectified: bool, own: bool = False) -> Mixing:
    """Expect an aggregation of features that come from a ReLU, or do not."""
    exponent = aggregation(aggr, among="operators").exponent
    if exponent is None:
        return largest(graph, rectified, own)
    return weighted_sum(graph, graph.scale(exponent, torch.float64), own=own)


def _with_itself(graph: Graph) -> Graph:
    """Return the graph with one more edge to every node, from itself."""
    numbers = torch.arange(graph.num_targets, device=graph.device)
    source = torch.cat([graph.by_target.col.long(), numbers])
    target = torch.cat([torch.repeat_interleave(numbers, graph.degree.long()), numbers])
    return Graph(torch.stack([source, target]), graph.num_targets)
