"""Batch normalisation and ReLU as one differentiable operation on CUDA."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import _norm_kernels


class FusedNorm(torch.autograd.Function):
    """``_norm_kernels.train`` with its derivative, for which the input alone is kept."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,  # [L, S, F]
        nodes: Tensor,  # L * S of them
        scale: Tensor,  # [L, F]
        shift: Tensor,  # [L, F]
        settings: tuple[Tensor | None, tuple[Tensor, Tensor, Tensor], float, float, bool],
    ) -> Tensor:
        offset, running, eps, momentum, relu = settings
        rows, nodes = rows.contiguous(), nodes.contiguous()
        out, mean, var, total = _norm_kernels.train(
            rows, nodes, scale, shift, offset, running, eps, momentum, relu
        )
        ctx.save_for_backward(rows, nodes, scale, shift, mean, var, total)
        ctx.settings = (eps, relu)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gradients = _norm_kernels.gradients(grad.contiguous(), *ctx.saved_tensors, *ctx.settings)
        by_rows, by_scale, by_shift = gradients
        return by_rows, None, by_scale, by_shift, None
