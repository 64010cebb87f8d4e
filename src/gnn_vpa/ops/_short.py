"""The short way of a sum with constant weights, where it is called plainly.

In an ordinary loop over small batches the way to the kernel takes longer than the kernel. Here all
that a graph and its constants say is put together once, and a layer makes one call with it; the
derivative is the same sum on the transposed graph.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from . import observe
from ._backend import backend, kernels
from ._cache import Mark
from ._cpu import whole_bags
from ._csr import CSR, is_plain
from ._differentiable import has_duals
from ._graph import Graph, trainable
from ._operators import spmm
from ._power import power_of_lengths

Floats = NDArray[Any]

_WIDE = {torch.float32: np.float32, torch.float64: np.float64}  # summed in their own type


def can_be_short(x: Tensor) -> bool:
    """Say whether the short ways serve: features ``[S, F]``, and nothing traces."""
    return x.dim() == 2 and is_untraced(x)


def is_untraced(x: Tensor) -> bool:
    """Say whether nothing traces ``x``, transforms it, or sends tangents along with it."""
    return is_plain(x) and not has_duals()


def short_sum(x: Tensor, graph: Graph, factor: Tensor | None) -> Tensor:
    """Return ``factor_i * sum_j x_j``; ``factor [num_targets, 1]`` is a constant."""
    return _along(_Kernel(factor, None, None), x, graph)


def power_sum(
    x: Tensor, graph: Graph, exponent: float, weight: Tensor | None = None, own: float = 0.0
) -> Tensor | None:
    """Return ``N_i^(-exponent) * sum_j weight_ij x_j``, or None where this way does not serve.

    It serves on the CPU, with weights ``[E]`` that are constants or with none, where nobody
    watches. To each target ``own`` times its own features is added, where it is a source too.
    """
    if observe.observer is not None:
        return None
    if not can_be_short(x) or x.dtype not in _WIDE or x.shape[1] == 0 or backend(x) != "cpu":
        return None
    if weight is not None and not _is_constant(weight, x):
        return None
    key = (exponent, x.dtype, weight is None)
    mark = None if weight is None else Mark(weight)
    way = graph.ways.get(key)
    if way is None or way.mark != mark:
        if not graph.is_whole:
            return None
        with trainable():
            way = _Bags(graph, exponent, _WIDE[x.dtype], weight, mark)
        graph.ways[key] = way
    return _along(way, x, graph, own)


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

    def __init__(self, factor: Tensor | None, weight: Tensor | None, mark: Mark | None) -> None:
        self.factor, self.weight, self.mark = factor, weight, mark

    def there(self, x: Tensor, graph: Graph) -> Tensor:
        return kernels(x).spmm_narrow(x, self.factor, None, graph.by_target)  # type: ignore[no-any-return]

    def back(self, g: Tensor, graph: Graph) -> Tensor:
        return kernels(g).spmm_narrow(g, None, self.factor, graph.by_source)  # type: ignore[no-any-return]

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        weight = None if self.weight is None else self.weight.unsqueeze(1)
        operands = (*graph.by_source, *graph.by_target)
        return spmm(g.unsqueeze(1), weight, None, self.factor, *operands).squeeze(1)


class _Bags(_Kernel):
    """The same on the CPU, with all constants put together as one weight for each edge."""

    def __init__(
        self, graph: Graph, exponent: float, dtype: Any, weight: Tensor | None, mark: Mark | None
    ) -> None:
        super().__init__(None, weight, mark)
        self.exponent = exponent
        rowptr, self.powers = graph.by_target.rowptr.numpy(), None
        spread = None
        if exponent != 0:
            self.powers = power_of_lengths(rowptr, exponent, dtype)
            spread = self.powers.repeat(rowptr[1:] - rowptr[:-1])
        self.to_targets = _product(weight, spread, graph.by_target)
        self.to_sources: Tensor | None = None
        self.is_turned = False

    def there(self, x: Tensor, graph: Graph) -> Tensor:
        return whole_bags(x, self.to_targets, graph.by_target)

    def back(self, g: Tensor, graph: Graph) -> Tensor:
        csr = graph.by_source
        if not self.is_turned:
            with trainable():
                powers = None if self.powers is None else self.powers.take(csr.col.numpy())
                self.to_sources = _product(self.weight, powers, csr)
            self.is_turned = True
        return whole_bags(g, self.to_sources, csr)

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        self.factor = None if self.exponent == 0 else graph.scale(self.exponent, g.dtype)
        return super().back_traced(g, graph)


def _product(weight: Tensor | None, powers: Floats | None, csr: CSR) -> Tensor | None:
    """Return the weight of each edge in the order of ``csr``, or None where all are 1."""
    if weight is not None and csr.edge is not None:
        weight = weight[csr.edge]
    if powers is None:
        return weight
    return torch.from_numpy(powers if weight is None else powers * weight.numpy())


def _along(way: _Kernel, x: Tensor, graph: Graph, own: float = 0.0) -> Tensor:
    if x.requires_grad and torch.is_grad_enabled():
        return _Sum.apply(x, way, graph, own)  # type: ignore[no-any-return, no-untyped-call]
    return _with_own(way.there(x, graph), x, own)


def _with_own(sums: Tensor, x: Tensor, own: float) -> Tensor:
    return sums.add_(x, alpha=own) if own else sums


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, way: _Kernel, graph: Graph, own: float) -> Tensor:
        # Constants of the library's own, which no hook on saved tensors needs to see.
        ctx.way, ctx.graph, ctx.own = way, graph, own
        return _with_own(way.there(x, graph), x, own)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        way, graph, own = ctx.way, ctx.graph, ctx.own
        if not torch.is_grad_enabled() and is_plain(g):
            return _with_own(way.back(g, graph), g, own), None, None, None
        # A derivative of higher order, or one that is traced.
        return way.back_traced(g, graph) + own * g, None, None, None
