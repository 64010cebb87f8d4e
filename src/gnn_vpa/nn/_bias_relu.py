"""A bias and a ReLU in one pass over the rows, and their derivative in another."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..ops import backend
from ._lanes import add_bias, by_lane
from ._traced import is_traced


def bias_relu(x: Tensor, bias: Tensor) -> Tensor:
    """Return ``max(0, x + bias)`` for rows ``[R, F]`` and a bias ``[F]``, or ``[L, F]`` of lanes.

    Example:
        >>> bias_relu(torch.tensor([[1.0], [-1.0]]), torch.tensor([0.5]))
        tensor([[1.5000],
                [0.0000]])
    """
    if bias.dim() == 1 or is_traced():
        return add_bias(x, bias).relu()
    out: Tensor = _BiasReLU.apply(by_lane(x, len(bias)), bias)  # type: ignore[no-untyped-call]
    return out.flatten(0, 1)


class _BiasReLU(torch.autograd.Function):
    """``max(0, x + b)`` for ``x [L, S, F]`` and ``b [L, F]``; the result alone is kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        if _is_fusible(x):
            from . import _bias_kernels

            out = _bias_kernels.forward(x.contiguous(), bias.contiguous())
        else:
            out = (x + bias.unsqueeze(1)).relu_().to(x.dtype)
        ctx.save_for_backward(out)
        ctx.dtype = bias.dtype
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        (out,) = ctx.saved_tensors
        if _is_fusible(out):
            from . import _bias_kernels

            return _bias_kernels.backward(grad.contiguous(), out, ctx.dtype)
        by_x = torch.ops.aten.threshold_backward(grad, out, 0)
        return by_x, by_x.sum(1, dtype=ctx.dtype)


def _is_fusible(x: Tensor) -> bool:
    return backend(x) == "triton" and x.dtype in (torch.bfloat16, torch.float32, torch.float64)
