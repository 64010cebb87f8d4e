"""Weighted normalisation in few passes over the rows, forward and backward."""

from typing import Any

import torch
from torch import Tensor


def normalise(
    rows: Tensor, share: Tensor, scale: Tensor, shift: Tensor, eps: float, relu: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return ``y = scale * (x - mean) / sqrt(var + eps) + shift``, the mean and the variance.

    ``mean = sum_i p_i x_i`` and ``var = sum_i p_i (x_i - mean)^2`` in each lane.

    Args:
        rows: ``x``, ``[L, S, F]``.
        share: ``p``, ``[L, S, 1]``, constants that add up to 1 in each lane (or are all 0).
        scale: ``[L, 1, F]``.
        shift: ``[L, 1, F]``.
        eps: A small number that keeps the root from 0.
        relu: Whether to return ``max(0, y)``.

    Returns:
        ``[L, S, F]``, and mean and variance ``[L, 1, F]``, to be used as constants.

    Example:
        >>> x = torch.tensor([[[1.0], [4.0]]])
        >>> share, one = torch.tensor([[[2 / 3], [1 / 3]]]), torch.ones(1, 1, 1)
        >>> _, mean, var = normalise(x, share, one, one, 1e-5)
        >>> mean.item(), var.item()
        (2.0, 2.0)
    """
    if torch.compiler.is_compiling():
        # A compiler fuses what autograd derives. The derivative of var by mean is 0: without it
        # one reduction less depends on another.
        mean = (share * rows).sum(1, keepdim=True)
        var = (share * (rows - mean.detach()).square()).sum(1, keepdim=True)
        out = torch.addcmul(shift, rows - mean, scale * (var + eps).rsqrt())
        return out.relu() if relu else out, mean, var
    if torch._C._are_functorch_transforms_active():
        out, mean, var = _Transformed.apply(rows, share, scale, shift, eps)  # type: ignore[no-untyped-call]
        return out.relu() if relu else out, mean, var
    return _Normalise.apply(rows, share, scale, shift, eps, relu)  # type: ignore[no-any-return, no-untyped-call]


class _Normalise(torch.autograd.Function):
    """``normalise`` as it is called plainly, with a ReLU in the same passes."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        share: Tensor,
        scale: Tensor,
        shift: Tensor,
        eps: float,
        relu: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        mean = _average(rows, share)
        room = rows - mean
        var = _average(room.pow_(2), share)
        slope = scale * (var + eps).rsqrt()
        # In the same memory again, which is in the cache.
        out = torch.addcmul(shift - mean * slope, rows, slope, out=room)
        ctx.save_for_backward(rows, share, scale, mean, var, out.relu_() if relu else None)
        ctx.mark_non_differentiable(mean, var)
        ctx.set_materialize_grads(False)
        ctx.eps = eps
        return out, mean, var

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        if grad is None:
            return (None,) * 6
        rows, share, scale, mean, var, out = ctx.saved_tensors
        if out is not None:
            grad = torch.ops.aten.threshold_backward(grad, out, 0)
        return *_derivative(grad, rows, share, scale, mean, var, ctx.eps), None


class _Transformed(torch.autograd.Function):
    r"""``normalise`` with its derivative, where ``xhat = (x - mean) / sqrt(var + eps)``.

    ``dx_i = scale / sqrt(var + eps) * (dy_i - p_i (sum_k dy_k + xhat_i sum_k dy_k xhat_k))``
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        rows: Tensor, share: Tensor, scale: Tensor, shift: Tensor, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        mean, var = _moments(rows, share)
        slope = scale * (var + eps).rsqrt()
        return torch.addcmul(shift - mean * slope, rows, slope), mean, var

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        rows, share, scale, _, ctx.eps = inputs
        _, mean, var = output
        ctx.mark_non_differentiable(mean, var)
        ctx.save_for_backward(rows, share, scale, mean, var)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        rows, share, scale, mean, var = ctx.saved_tensors
        return _derivative(grad, rows, share, scale, mean, var, ctx.eps)


def _derivative(
    grad: Tensor, rows: Tensor, share: Tensor, scale: Tensor, mean: Tensor, var: Tensor, eps: float
) -> tuple[Tensor | None, ...]:
    if torch.is_grad_enabled():
        # The derivative is to be differentiated itself: that goes through mean and var too.
        mean, var = _moments(rows, share)
    inverse = (var + eps).rsqrt()
    slope = scale * inverse
    centred = rows - mean
    total = grad.sum(1, keepdim=True)
    along = (grad * centred).sum(1, keepdim=True) * inverse  # sum_k dy_k xhat_k
    # In the same memory again, which is in the cache, unless somebody keeps what is in it.
    room = None if _is_watched() else centred
    pull = torch.addcmul(-slope * total, centred, -slope * along * inverse, out=room).mul_(share)
    return torch.addcmul(pull, slope, grad, out=room), None, along, total, None


def _is_watched() -> bool:
    """Say whether derivatives are recorded, or transformed by ``torch.func``."""
    return torch.is_grad_enabled() or torch._C._are_functorch_transforms_active()


def _moments(rows: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    mean = _average(rows, share)
    return mean, _average((rows - mean).pow_(2), share)


def _average(values: Tensor, share: Tensor) -> Tensor:
    # A matrix product makes no temporary; a GPU might round it to TF32.
    if values.is_cpu:
        return torch.bmm(share.mT, values)
    return (share * values).sum(1, keepdim=True)
