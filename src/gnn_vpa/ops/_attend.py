"""Softmax attention over in-neighbours, plain and variance-preserving."""

from typing import Literal

import torch
from torch import Tensor

from ..errors import UsageError
from ._aggregate import aggregate, counted, weighted_sum
from ._cache import as_graph
from ._check import check_features, check_graph, check_weight, summable
from ._dtypes import accumulable
from ._edges import from_targets, incidence, sum_over_edges
from ._graph import Graph
from ._norm import normed
from ._operators import segmax
from ._shapes import flat


def attend(
    x: Tensor,
    graph: Graph | Tensor,
    logits: Tensor,
    aggr: Literal["sum", "vpa"] = "vpa",
    multiplicity: Tensor | None = None,
    *,
    normalizer_grad: bool = False,
) -> Tensor:
    r"""Aggregate in-neighbours by attention.

    With ``c_ij = softmax_j(logits_ij)`` over the in-neighbours of ``i``, ``"sum"`` is
    ``sum_j c_ij x_j``, and ``"vpa"`` divides it by ``sqrt(sum_j c_ij^2)``, which keeps the variance
    of independent neighbours whatever the weights. A target without neighbours gets 0.

    Args:
        x: Features of the sources, ``[num_sources, ...]``; ``[num_sources, heads, ...]`` for
            logits with heads.
        graph: A ``Graph``, or anything that one is made from.
        logits: ``[num_edges]`` or ``[num_edges, heads]``.
        aggr: ``"vpa"`` (variance-preserving) or ``"sum"`` (plain).
        multiplicity: ``[num_edges]``: an edge of multiplicity 3 stands for three. By default the
            graph's.
        normalizer_grad: Whether gradients flow through the normaliser; not in the paper.

    Returns:
        ``[num_targets, ...]``.

    Example:
        >>> edge_index = torch.tensor([[0, 1, 2], [0, 0, 0]])
        >>> attend(torch.ones(3, 1), edge_index, torch.zeros(3), "sum")[0]
        tensor([1.])
        >>> attend(torch.ones(3, 1), edge_index, torch.zeros(3), "vpa")[0]
        tensor([1.7321])
    """
    if aggr not in ("sum", "vpa"):
        raise UsageError(f"aggr: {aggr!r} is unknown for attention, expected 'sum' or 'vpa'.")
    check_features(x)
    graph = as_graph(graph, x.shape[0])
    check_graph(x, graph)
    weight = softmax(logits, graph, multiplicity, x)
    return aggregate(x, graph, aggr, weight, multiplicity, normalizer_grad=normalizer_grad)


def attend_by_power(x: Tensor, graph: Graph, logits: Tensor, power: Tensor) -> Tensor:
    """Attend with ``(sum_j c_ij^2)^(-p_i)`` as the constant scale of each target.

    ``power [num_targets]`` is 0 where plain attention is meant and 1/2 where vpa is.
    """
    weight = softmax(logits, graph, None, x)
    multiplicity = counted(None, graph, x)
    total = weight if multiplicity is None else weight * multiplicity
    inverse = normed(weight.detach(), graph, multiplicity).inverse_norm
    some = torch.where(inverse > 0, inverse, 1)
    return weighted_sum(x, graph, total, some.pow(2 * power.to(some).unsqueeze(1)))


def softmax(logits: Tensor, graph: Graph, multiplicity: Tensor | None, x: Tensor) -> Tensor:
    """Return the share of each edge in the attention of its target, shaped as ``logits``."""
    check_weight(logits, graph, x, "logits")
    logits = summable(logits, x)
    scores = flat(accumulable(logits), 1)
    multiplicity = counted(multiplicity, graph, x)
    top = segmax(scores.detach(), multiplicity, *incidence(graph))
    below = scores - from_targets(top, graph)
    if multiplicity is None:
        mass = torch.exp(below)
        total = sum_over_edges(mass, graph)
    else:
        # An edge that does not count may be far above the top: its exponential, and the gradient
        # of that, would overflow.
        times = multiplicity.unsqueeze(1)
        mass = torch.exp(below.masked_fill(times <= 0, -torch.inf))
        total = sum_over_edges(mass * times, graph)
    return (mass / from_targets(total, graph).clamp(min=1e-30)).view_as(logits).to(logits.dtype)
