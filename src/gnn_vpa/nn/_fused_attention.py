"""One layer's attention as one differentiable operation on CUDA."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..ops import Graph
from ..ops.internal import CSR
from . import _attention_kernels


class FusedAttention(torch.autograd.Function):
    """``_attention_kernels.attend`` with its derivative."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        sent: Tensor,
        received: Tensor,
        graph: Graph,
        power: Tensor,
        slope: float,
    ) -> Tensor:
        x, sent, received = x.contiguous(), sent.contiguous(), received.contiguous()
        times, source = graph.multiplicity, graph.by_source
        out, *of_targets = _attention_kernels.attend(
            x, sent, received, graph.by_target, times, power, slope
        )
        edge = source.edge
        if edge is None:
            edge = torch.arange(len(source.col), dtype=source.col.dtype, device=x.device)
        ctx.save_for_backward(
            x, sent, received, *graph.by_target[:2], *source[:2], edge, times, *of_targets
        )
        ctx.slope = slope
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, sent, received, rowptr, col, back_ptr, back_col, edge, *edges = ctx.saved_tensors
        times, high, total, factor = edges
        gradients = _attention_kernels.gradients(
            grad.contiguous(), x, sent, received, CSR(rowptr, col, None, 0),
            CSR(back_ptr, back_col, edge, 0), times, high, total, factor, ctx.slope,
        )  # fmt: skip
        return *gradients, None, None, None
