"""The short way of a sum with constant weights, where it is called plainly.

In an ordinary loop over small batches the way to the kernel takes longer than the kernel. Here all
that a graph and its constants say is put together once, and a layer makes one call with it; the
derivative is the same sum on the transposed graph.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import observe
from ._backend import backend, kernels
from ._cache import Mark
from ._counting import transposed
from ._cpu import LONG, whole_bags
from ._csr import CSR, compressed, is_plain, longest_of
from ._differentiable import has_duals
from ._graph import Graph, trainable
from ._operators import spmm
from ._power import power_of_lengths

WIDE = {torch.float32: np.float32, torch.float64: np.float64}  # summed in their own type


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
    if not can_be_short(x) or x.dtype not in WIDE or x.shape[1] == 0 or backend(x) != "cpu":
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
            way = Bags(graph, exponent, WIDE[x.dtype], weight, mark)
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


class Bags(_Kernel):
    """The same on the CPU, with all constants put together as one weight for each edge."""

    def __init__(
        self, graph: Graph, exponent: float, dtype: Any, weight: Tensor | None, mark: Mark | None
    ) -> None:
        super().__init__(None, weight, mark)
        self.exponent = exponent
        rowptr, _, edge, longest = graph.by_target
        spread = None
        if exponent != 0:
            ends = rowptr.numpy()
            lengths = ends[1:] - ends[:-1]
            spread = power_of_lengths(lengths, longest, exponent, dtype).repeat(lengths)
        if weight is not None:
            weight = weight if edge is None else weight[edge]
            # A copy: a change of the weights before the backward pass is none of this sum.
            spread = weight.numpy().copy() if spread is None else spread * weight.numpy()
        self.spread = spread  # of each edge by target; None where all are 1
        self.to_targets = None if spread is None else torch.from_numpy(spread)
        self.turned: tuple[Tensor | None, CSR] | None = None

    def there(self, x: Tensor, graph: Graph) -> Tensor:
        return whole_bags(x, self.to_targets, graph.by_target)

    def back(self, g: Tensor, graph: Graph) -> Tensor:
        if self.turned is None:
            with trainable():
                self.turned = self.turn(graph)
        return whole_bags(g, *self.turned)

    def turn(self, graph: Graph) -> tuple[Tensor | None, CSR]:
        """Return the edges by source with their weights: in one go, as one of these moves both."""
        if self.spread is None:
            return None, graph.by_source
        rowptr, col = graph.by_target.rowptr.numpy(), graph.by_target.col.numpy()
        ends, row, spread = transposed(rowptr, col, self.spread, graph.num_sources)
        longest = len(row) if len(row) <= LONG else longest_of(ends)
        return torch.from_numpy(spread), compressed(ends, row, None, longest)

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        self.factor = None if self.exponent == 0 else graph.scale(self.exponent, g.dtype)
        return super().back_traced(g, graph)


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
