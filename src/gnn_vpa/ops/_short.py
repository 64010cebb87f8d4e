"""The short way of a sum with constant weights, where it is called plainly.

In an ordinary loop over small batches the way to the kernel takes longer than the kernel. Here all
that a graph and its constants say is put together once, and a layer makes one call with it; the
derivative is the same sum on the transposed graph.
"""

from typing import Any

import torch
from torch import Tensor

from . import observe
from ._backend import backend, kernels
from ._bags import WIDE, Bags, normalised, powers, turned_sum
from ._cache import Mark
from ._cpu import whole_bags
from ._csr import CSR, is_plain
from ._differentiable import has_duals
from ._graph import Graph, trainable


def can_be_short(x: Tensor) -> bool:
    """Say whether the short ways serve: features ``[S, F]``, and nothing traces."""
    return x.dim() == 2 and is_untraced(x)


def is_untraced(x: Tensor) -> bool:
    """Say whether nothing traces ``x``, transforms it, or sends tangents along with it."""
    return is_plain(x) and not has_duals()


def short_sum(x: Tensor, graph: Graph, factor: Tensor | None) -> Tensor:
    """Return ``factor_i * sum_j x_j``; ``factor [num_targets, 1]`` is a constant."""
    return _along(_Kernel(factor), x, graph)


def power_sum(
    x: Tensor, graph: Graph, exponent: float, weight: Tensor | None = None, own: float = 0.0
) -> Tensor | None:
    """Return ``N_i^(-exponent) * sum_j weight_ij x_j``, or None where this way does not serve.

    It serves on the CPU, with weights ``[E]`` that are constants or with none, where nobody
    watches. To each target ``own`` times its own features is added, where it is a source too.
    """
    if not _serves(x) or not (weight is None or _is_constant(weight, x)):
        return None
    key = (exponent, x.dtype, weight is None, own)
    mark = None if weight is None else Mark(weight)
    way: Bags | None = graph.ways.get(key)
    if way is None or way.is_spent or way.mark != mark:
        if not graph.is_whole:
            return None
        with trainable():
            way = powers(graph, exponent, x.dtype, weight, mark, own, is_kept=way is not None)
        graph.ways[key] = way
    return _along(way, x, graph)


def normalised_sum(x: Tensor, graph: Graph, fill: int | None) -> Tensor | None:
    """Return the sum of a degree normalisation, or None where this way does not serve.

    Edges weigh 1, and every node has one self-loop, of weight ``fill`` where there is none among
    the edges; where ``fill`` is None the edges are taken as they are. With ``q_i`` the sum of
    squared weights, weight ``w`` counts ``w / (q_i q_j)^(1/4)``.
    It serves where ``power_sum`` does, and the nodes are sources and targets.
    """
    if not _serves(x):
        return None
    key = ("normalised", x.dtype, fill)
    way: Bags | None = graph.ways.get(key)
    if way is None or way.is_spent:
        if not graph.is_whole or graph.num_sources != graph.num_targets:
            return None
        with trainable():
            way = normalised(graph, fill, x.dtype, is_kept=way is not None)
        graph.ways[key] = way
    return _along(way, x, graph)


def constant_sum(x: Tensor, graph: Graph, weight: Tensor) -> Tensor | None:
    """Return ``sum_j weight_ij x_j``, or None where this way does not serve.

    It serves on the CPU, with weights ``[E]`` that are constants and that nobody changes before
    the backward pass, which raises then. Nothing is remembered: the graph may be used but once.
    """
    if not (_is_one_call(x) and _is_constant(weight, x) and graph.is_whole):
        return None
    if x.requires_grad and torch.is_grad_enabled():
        return _weighted(x, weight, graph)  # type: ignore[no-any-return, no-untyped-call]
    return _bags_of(x, weight, graph.by_target)


def _serves(x: Tensor) -> bool:
    """Say whether features can be summed on the CPU by one call, and nobody watches."""
    return observe.observer() is None and _is_one_call(x)


def _is_one_call(x: Tensor) -> bool:
    """Say whether features can be summed on the CPU by one call."""
    return can_be_short(x) and x.dtype in WIDE and x.shape[1] > 0 and backend(x) == "cpu"


def _is_constant(weight: Tensor, x: Tensor) -> bool:
    return (
        weight.dim() == 1
        and weight.dtype == x.dtype
        and not weight.requires_grad
        and not weight.is_inference()  # a change of it could not be seen
        and is_plain(weight)
    )


class _Kernel:
    """A sum and its transpose, by the kernels of the device."""

    def __init__(self, factor: Tensor | None) -> None:
        self.factor = factor

    def there(self, x: Tensor, graph: Graph) -> Tensor:
        return kernels(x).spmm_narrow(x, self.factor, None, graph.by_target)  # type: ignore[no-any-return]

    def back(self, g: Tensor, graph: Graph) -> Tensor:
        return kernels(g).spmm_narrow(g, None, self.factor, graph.by_source)  # type: ignore[no-any-return]

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        return turned_sum(g, graph, None, self.factor)


Way = _Kernel | Bags


def _along(way: Way, x: Tensor, graph: Graph) -> Tensor:
    if x.requires_grad and torch.is_grad_enabled():
        return _differentiable(x, way, graph)  # type: ignore[no-any-return, no-untyped-call]
    return way.there(x, graph)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, way: Way, graph: Graph) -> Tensor:
        # Constants of the library's own, which no hook on saved tensors needs to see.
        ctx.way, ctx.graph = way, graph
        return way.there(x, graph)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        way, graph = ctx.way, ctx.graph
        if not torch.is_grad_enabled() and is_plain(g):
            return way.back(g, graph), None, None
        # A derivative of higher order, or one that is traced.
        return way.back_traced(g, graph), None, None


class _WeightedSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, graph: Graph) -> Tensor:
        ctx.graph = graph
        ctx.save_for_backward(weight)
        return _bags_of(x, weight, graph.by_target)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        (weight,), graph = ctx.saved_tensors, ctx.graph
        if not torch.is_grad_enabled() and is_plain(g):
            return _bags_of(g, weight, graph.by_source), None, None
        return turned_sum(g, graph, weight, None), None, None


def _bags_of(x: Tensor, weight: Tensor, csr: CSR) -> Tensor:
    """Sum along a row's edges, whose weights are in the order in which edges were given."""
    return whole_bags(x, weight if csr.edge is None else weight.index_select(0, csr.edge), csr)


# What ``apply`` calls after it has looked for transforms, of which there are none here.
_differentiable = super(torch.autograd.Function, _Sum).apply
_weighted = super(torch.autograd.Function, _WeightedSum).apply
