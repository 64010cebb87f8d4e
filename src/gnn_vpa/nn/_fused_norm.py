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
        x: Tensor,  # [R, F]
        nodes: Tensor,  # [R]
        scale: Tensor,  # [L, F]
        shift: Tensor,  # [L, F]
        settings: tuple[Any, ...],  # offset, running statistics, eps, momentum, relu, parts
    ) -> Tensor:
        *_, eps, _, relu, parts = settings
        x, nodes = x.contiguous(), nodes.contiguous()
        out, mean, var, total = _norm_kernels.train(x, nodes, scale, shift, *settings)
        ctx.save_for_backward(x, nodes, scale, shift, mean, var, total)
        ctx.settings = (eps, relu, parts)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gradients = _norm_kernels.gradients(grad.contiguous(), *ctx.saved_tensors, *ctx.settings)
        by_x, by_scale, by_shift = gradients
        return by_x, None, by_scale, by_shift, None
