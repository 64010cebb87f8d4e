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
        room = torch.empty_like(rows)
        mean, var = moments(rows, share, room)
        # In the same memory again, which is in the cache.
        out = affine(rows, mean, var, scale, shift, eps, room)
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
        given = (grad, rows, share, scale, mean, var, ctx.eps)
        if torch.is_grad_enabled():
            return *_differentiable(*given), None
        by_rows, by_scale, by_shift = derivative(*given, torch.empty_like(rows))
        return by_rows, None, by_scale, by_shift, None, None


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
        return affine(rows, mean, var, scale, shift, eps), mean, var

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        rows, share, scale, _, ctx.eps = inputs
        _, mean, var = output
        ctx.mark_non_differentiable(mean, var)
        ctx.save_for_backward(rows, share, scale, mean, var)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        rows, share, scale, mean, var = ctx.saved_tensors
        return _differentiable(grad, rows, share, scale, mean, var, ctx.eps)


def affine(
    rows: Tensor,
    mean: Tensor,
    var: Tensor,
    scale: Tensor,
    shift: Tensor,
    eps: float,
    room: Tensor | None = None,
) -> Tensor:
    """Return ``y`` of rows whose moments are known: a factor and a summand for each column."""
    slope = scale * (var + eps).rsqrt()
    return torch.addcmul(shift - mean * slope, rows, slope, out=room)


def derivative(
    grad: Tensor,
    rows: Tensor,
    share: Tensor,
    scale: Tensor,
    mean: Tensor,
    var: Tensor,
    eps: float,
    room: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the derivatives by rows (which takes ``room``), ``scale`` and ``shift``.

    With ``g = dy``, each column of ``dx_i`` is ``slope * g_i + p_i (base - bend * x_i)``: rows
    are not centred for it, which would be one more pass.
    """
    inverse = (var + eps).rsqrt()
    slope = scale * inverse
    total = grad.sum(1, keepdim=True)
    along = torch.mul(grad, rows, out=room).sum(1, keepdim=True)
    along = torch.addcmul(along, mean, total, value=-1).mul_(inverse)  # sum_k dy_k xhat_k
    bend = slope * along * inverse
    base = torch.addcmul(mean * bend, slope, total, value=-1)
    pull = torch.addcmul(base, rows, bend, value=-1, out=room).mul_(share)
    return torch.addcmul(pull, slope, grad, out=room), along, total


def _differentiable(
    grad: Tensor, rows: Tensor, share: Tensor, scale: Tensor, mean: Tensor, var: Tensor, eps: float
) -> tuple[Tensor | None, ...]:
    """Return the derivatives, to be recorded or transformed by ``torch.func``."""
    if torch.is_grad_enabled():
        # The derivative is to be differentiated itself: that goes through mean and var too.
        mean, var = _moments(rows, share)
    inverse = (var + eps).rsqrt()
    slope = scale * inverse
    centred = rows - mean
    total = grad.sum(1, keepdim=True)
    along = (grad * centred).sum(1, keepdim=True) * inverse  # sum_k dy_k xhat_k
    pull = torch.addcmul(-slope * total, centred, -slope * along * inverse).mul(share)
    return torch.addcmul(pull, slope, grad), None, along, total, None


def moments(rows: Tensor, share: Tensor, room: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of rows; ``room`` is for what is between."""
    mean = _average(rows, share)
    return mean, _average(torch.sub(rows, mean, out=room).pow_(2), share)


def _moments(rows: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    mean = _average(rows, share)
    return mean, _average((rows - mean).pow(2), share)


def _average(values: Tensor, share: Tensor) -> Tensor:
    # A matrix product makes no temporary; a GPU might round it to TF32.
    if values.is_cpu:
        return torch.bmm(share.mT, values)
    return (share * values).sum(1, keepdim=True)
