"""The one formula: ``out_i = s_i * sum_j w_ij * x_j`` (and the maximum)."""

import torch
from torch import Tensor

from ..aggregations import Aggregation, aggregation
from . import observe
from ._cache import as_graph
from ._check import check_features, check_graph, check_weight, summable
from ._dtypes import accumulable, accumulator
from ._edges import from_sources, incidence, sum_over_edges
from ._formats import checked_multiplicity
from ._graph import Graph
from ._norm import normed
from ._operators import segmax, spmm
from ._power import power
from ._shapes import flat, lined_up
from ._short import can_be_short, constant_sum, power_sum, short_sum


def aggregate(
    x: Tensor,
    graph: Graph | Tensor,
    aggr: str = "vpa",
    weight: Tensor | None = None,
    multiplicity: Tensor | None = None,
    *,
    normalizer_grad: bool = True,
) -> Tensor:
    r"""Aggregate the features of each target's in-neighbours.

    With weights ``w`` (1 by default) and multiplicities ``m`` (1 by default; an edge of
    multiplicity 3 counts as three neighbours, one of 0 as none), ``N_i = sum_j m_ij``:

    ============  ==========================================================
    ``sum``       ``sum_j m_ij w_ij x_j``
    ``mean``      ``sum_j m_ij w_ij x_j / N_i``
    ``vpa``       ``sum_j m_ij w_ij x_j / sqrt(sum_j m_ij w_ij^2)``
    ``max``       ``max_j w_ij x_j`` over the edges with ``m_ij > 0``
    ``power(p)``  ``N_i^(-p) sum_j m_ij w_ij x_j``
    ============  ==========================================================

    Without weights vpa divides by ``sqrt(N_i)``: independent neighbours of variance 1 give a
    result of variance 1. A target without neighbours gets 0; so does vpa where all weights are 0,
    and there is no gradient to them. The weights of a target may be of any size, as vpa depends on
    their ratios alone. The linear aggregations never make an edges x features tensor; half types
    are summed in float32.

    Args:
        x: Features of the sources, ``[num_sources, ...]``, of a floating-point type.
        graph: A ``Graph``, or anything that one is made from; a tensor's ``Graph`` is remembered
            until the tensor changes (``forget_graphs`` says which changes are seen).
        aggr: ``"sum"``, ``"mean"``, ``"max"``, ``"vpa"``, or a power such as ``"power(0.3)"``.
        weight: ``[num_edges]``, or ``[num_edges, heads]`` for ``x`` of shape
            ``[num_sources, heads, ...]``, in the order in which the edges were given. By default
            the values of a sparse ``graph``, else 1.
        multiplicity: ``[num_edges]``, not negative; it takes no gradient. By default the graph's.
        normalizer_grad: Whether the gradient to ``weight`` flows through vpa's square root too.

    Returns:
        ``[num_targets, ...]``.

    Example:
        >>> edge_index = torch.tensor([[1, 2, 3, 0], [0, 0, 0, 1]])
        >>> aggregate(torch.tensor([[1.0], [2.0], [3.0], [7.0]]), edge_index, "mean").squeeze(1)
        tensor([4., 1., 0., 0.])
        >>> aggregate(torch.ones(4, 1), edge_index, "vpa").squeeze(1)
        tensor([1.7321, 1.0000, 0.0000, 0.0000])
    """
    entry = aggregation(aggr, among="operators")
    check_features(x)
    graph = as_graph(graph, x.shape[0])
    check_graph(x, graph)
    weight = graph.weight if weight is None else weight
    if weight is not None:
        check_weight(weight, graph, x)
    own = multiplicity is None  # then the graph remembers its scales
    if own and graph.multiplicity is None and _is_power(entry, weight):
        assert entry.exponent is not None
        out = power_sum(x, graph, entry.exponent, weight)
        if out is not None:
            return out
    multiplicity = counted(multiplicity, graph, x)
    if entry.squares_weights and weight is not None:
        return _divided_by_norm(x, graph, weight, multiplicity, normalizer_grad)
    weight = None if weight is None else summable(weight, x)
    if entry.kind == "maximum":
        return _maximum(x, graph, weight, multiplicity)
    factor = _factor(x, graph, entry, multiplicity, own)
    return weighted_sum(x, graph, _product(weight, multiplicity), factor)


def _is_power(entry: Aggregation, weight: Tensor | None) -> bool:
    """Say whether the scale is a power of N."""
    return entry.kind == "linear" and not (entry.squares_weights and weight is not None)


def weighted_sum(
    x: Tensor, graph: Graph, weight: Tensor | None = None, factor: Tensor | None = None
) -> Tensor:
    """Return ``factor_i * sum_j weight_ij x_j``; ``factor [num_targets, H or 1]`` is a constant."""
    out = _sum(x, graph, weight, factor)
    if (observer := observe.observer()) is not None:
        observer(observe.Aggregated(x, graph, weight, factor, out))
    return out


def scaled_sum(x: Tensor, graph: Graph, weight: Tensor, factor: Tensor, through: bool) -> Tensor:
    """Return ``factor_i * sum_j weight_ij x_j``, with the gradient to ``factor`` if ``through``.

    The kernel scales (a half type could not hold the sum unscaled), so the gradient comes from a
    factor that is 1.
    """
    out = _sum(x, graph, weight, factor.detach())
    if not (through and torch.is_grad_enabled()):
        return out
    one = factor / torch.where(factor > 0, factor, 1).detach()
    one = one.squeeze(1) if weight.dim() == 1 else one
    return (out * lined_up(one, out)).to(out.dtype)


def _sum(x: Tensor, graph: Graph, weight: Tensor | None, factor: Tensor | None) -> Tensor:
    if weight is None and can_be_short(x):
        return short_sum(x, graph, factor)
    if weight is not None and factor is None:
        out = constant_sum(x, graph, weight)
        if out is not None:
            return out
    has_heads = weight is not None and weight.dim() == 2
    by_heads = flat(x, 2) if has_heads else flat(x, 1).unsqueeze(1)  # [S, H, F]
    weight = weight.unsqueeze(1) if weight is not None and not has_heads else weight
    both = torch.is_grad_enabled() and (x.requires_grad or _needs_grad(weight))
    out = spmm(by_heads, weight, factor, None, *graph.as_operands(both))
    return out.view(graph.num_targets, *x.shape[1:])


def _divided_by_norm(
    x: Tensor, graph: Graph, weight: Tensor, multiplicity: Tensor | None, through: bool
) -> Tensor:
    weight = weight if weight.is_floating_point() else summable(weight, x)
    norm = normed(weight, graph, multiplicity)
    unit = norm.unit.to(accumulator(x.dtype)).view_as(weight)
    inverse = norm.inverse.to(unit.dtype)
    total = _product(unit, multiplicity)
    assert total is not None
    out = scaled_sum(x, graph, total, inverse, through)
    if (observer := observe.observer()) is not None:
        seen = _product(accumulable(weight), multiplicity)
        observer(observe.Aggregated(x, graph, seen, norm.inverse_norm, out))
    return out


def counted(multiplicity: Tensor | None, graph: Graph, x: Tensor) -> Tensor | None:
    """Return the multiplicities that hold: those given, or else the graph's."""
    if multiplicity is None:
        multiplicity = graph.multiplicity
    else:
        multiplicity = checked_multiplicity(multiplicity, graph.num_edges, graph.device)
    wide = accumulator(x.dtype)
    return (
        multiplicity
        if multiplicity is None or multiplicity.dtype == wide
        else multiplicity.to(wide)
    )


def _factor(
    x: Tensor, graph: Graph, entry: Aggregation, multiplicity: Tensor | None, own: bool
) -> Tensor | None:
    """Return ``s_i`` of the formula, ``[num_targets, 1]``, or None where it is 1."""
    assert entry.exponent is not None
    if entry.exponent == 0:
        return None
    if own:
        return graph.scale(entry.exponent, accumulator(x.dtype))
    assert multiplicity is not None
    return power(sum_over_edges(multiplicity.unsqueeze(1), graph), entry.exponent)


def _maximum(x: Tensor, graph: Graph, weight: Tensor | None, multiplicity: Tensor | None) -> Tensor:
    if weight is None:
        both = torch.is_grad_enabled() and x.requires_grad
        out = segmax(flat(x, 1), multiplicity, *graph.as_operands(both))
    else:
        # Not linear: the weighted messages have to be made.
        messages = from_sources(flat(x, 1), graph).view(graph.num_edges, *x.shape[1:])
        messages = messages * lined_up(weight, messages)
        out = segmax(flat(messages.to(x.dtype), 1), multiplicity, *incidence(graph))
    out = out.view(graph.num_targets, *x.shape[1:])
    if (observer := observe.observer()) is not None:
        observer(observe.Aggregated(x, graph, weight, None, out, linear=False))
    return out


def _product(weight: Tensor | None, multiplicity: Tensor | None) -> Tensor | None:
    if weight is None or multiplicity is None:
        return multiplicity if weight is None else weight
    return weight * (multiplicity if weight.dim() == 1 else multiplicity.unsqueeze(1))


def _needs_grad(t: Tensor | None) -> bool:
    return t is not None and t.requires_grad
