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
from ._counting import Ints, by_row, largest
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
    key = (exponent, x.dtype, weight is None, own)
    mark = None if weight is None else Mark(weight)
    way = graph.ways.get(key)
    if way is None or way.mark != mark:
        if not graph.is_whole:
            return None
        with trainable():
            way = Bags(graph, exponent, WIDE[x.dtype], weight, mark, own)
        graph.ways[key] = way
    return _along(way, x, graph)


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

    own: float = 0  # how often each target's own features are added

    def __init__(self, factor: Tensor | None, weight: Tensor | None, mark: Mark | None) -> None:
        self.factor, self.weight, self.mark = factor, weight, mark

    def there(self, x: Tensor, graph: Graph) -> Tensor:
        return kernels(x).spmm_narrow(x, self.factor, None, graph.by_target)  # type: ignore[no-any-return]

    def back(self, g: Tensor, graph: Graph) -> Tensor:
        return kernels(g).spmm_narrow(g, None, self.factor, graph.by_source)  # type: ignore[no-any-return]

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        weight = None if self.weight is None else self.weight.unsqueeze(1)
        operands = (*graph.by_source, *graph.by_target)
        out = spmm(g.unsqueeze(1), weight, None, self.factor, *operands).squeeze(1)
        return out + self.own * g if self.own else out


Rows = tuple[Tensor | None, CSR]  # edges in one order with their weights; None: all are 1


class Bags(_Kernel):
    """The same on the CPU, with all constants put together as one weight for each edge.

    A node's own features come along an edge to itself: to add them afterwards would be to go
    through all features once more.
    """

    def __init__(
        self,
        graph: Graph,
        exponent: float,
        dtype: Any,
        weight: Tensor | None,
        mark: Mark | None,
        own: float = 0,
    ) -> None:
        super().__init__(None, weight, mark)
        self.exponent, self.own = exponent, own
        source, target = graph.ends
        if own:
            nodes = np.arange(graph.num_targets, dtype=target.dtype)
            source, target = np.concatenate([source, nodes]), np.concatenate([target, nodes])
        self.ends = source, target
        self.value: NDArray[Any] | None = None  # of each edge as given; None: all are 1
        self.to_sources: Rows | None = None
        if exponent == 0 and weight is None and not own:
            self.to_targets: Rows = (None, graph.by_target)
            return
        counts = np.bincount(graph.ends[1], minlength=graph.num_targets)
        longest = largest(counts)
        self.value = power_of_lengths(counts, longest, exponent, dtype).take(target)
        if weight is not None:  # a change of it before the backward pass is none of this sum
            self.value[: graph.num_edges] *= weight.numpy()
        if own:
            self.value[graph.num_edges :] = own
        self.to_targets = self._by_row(target, source, graph.num_targets, longest + 1)

    def there(self, x: Tensor, graph: Graph) -> Tensor:
        return whole_bags(x, *self.to_targets)

    def back(self, g: Tensor, graph: Graph) -> Tensor:
        if self.to_sources is None:
            with trainable():
                self.to_sources = self._turned(graph)
        return whole_bags(g, *self.to_sources)

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        self.factor = None if self.exponent == 0 else graph.scale(self.exponent, g.dtype)
        return super().back_traced(g, graph)

    def _turned(self, graph: Graph) -> Rows:
        if self.value is None:
            return None, graph.by_source
        if graph.is_readout:  # each node is the source of one edge
            return torch.from_numpy(self.value), graph.by_source
        source, target = self.ends
        return self._by_row(source, target, graph.num_sources)

    def _by_row(self, row: Ints, col: Ints, num_rows: int, longest: int | None = None) -> Rows:
        """Group edges with their weights."""
        ends, other, value = by_row(row, col, num_rows, self.value)
        if longest is None:
            longest = len(other) if len(other) <= LONG else longest_of(ends)
        return torch.from_numpy(value), compressed(ends, other, None, longest)


def _along(way: _Kernel, x: Tensor, graph: Graph) -> Tensor:
    if x.requires_grad and torch.is_grad_enabled():
        return _differentiable(x, way, graph)  # type: ignore[no-any-return]
    return way.there(x, graph)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, way: _Kernel, graph: Graph) -> Tensor:
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


# What ``_Sum.apply`` calls after it has looked for transforms, of which there are none here.
_differentiable = super(torch.autograd.Function, _Sum).apply
