"""The short way of a sum without edge weights, where it is called plainly.

In an ordinary loop over small batches the way to the kernel takes longer than the kernel. Here the
graph travels as one object, and the derivative is the same sum on the transposed graph.
"""

from typing import Any

import torch
from torch import Tensor

from ._backend import kernels
from ._csr import is_plain
from ._differentiable import has_duals
from ._graph import Graph
from ._operators import spmm


def can_be_short(x: Tensor, weight: Tensor | None) -> bool:
    """Say whether ``short_sum`` serves: features ``[S, F]``, no weights, and nothing traces."""
    return weight is None and x.dim() == 2 and is_plain(x) and not has_duals()


def short_sum(x: Tensor, graph: Graph, factor: Tensor | None) -> Tensor:
    """Return ``factor_i * sum_j x_j``; ``factor [num_targets, 1]`` is a constant."""
    if x.requires_grad and torch.is_grad_enabled():
        return _Sum.apply(x, graph, factor)  # type: ignore[no-any-return, no-untyped-call]
    return kernels(x).spmm_narrow(x, factor, None, graph.by_target)  # type: ignore[no-any-return]


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: Graph, factor: Tensor | None) -> Tensor:
        # Constants of the library's own, which no hook on saved tensors needs to see.
        ctx.graph, ctx.factor = graph, factor
        return kernels(x).spmm_narrow(x, factor, None, graph.by_target)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        graph, factor = ctx.graph, ctx.factor
        if not torch.is_grad_enabled() and is_plain(g):
            return kernels(g).spmm_narrow(g, None, factor, graph.by_source), None, None
        # A derivative of higher order, or one that is traced.
        back = spmm(g.unsqueeze(1), None, None, factor, *graph.by_source, *graph.by_target)
        return back.squeeze(1), None, None
