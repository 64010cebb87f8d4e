"""A layer's norms and products as one differentiable operation for lanes on the CPU.

Beside the products, what a step takes is passes over rows and the calls that start them. As one
operation a layer keeps three tensors of rows for the backward pass instead of four, adds the
gradients of its rows up in the product that has one of them, and all else takes the same places.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._normalise import affine, derivative, moments

_masked = torch.ops.aten.threshold_backward  # the derivative of a ReLU


class LaneMLP(torch.autograd.Function):
    """``h = relu(norm_2(relu(norm_1(x)) W^T))``, ``y = h V^T``, and the moments of both norms.

    Mean and variance ``[L, 1, F]`` of ``x`` and of the product are to be used as constants. Without
    ``V`` there is no ``y``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,  # [L, S, F]
        share: Tensor,  # [L, S, 1], of each row in its lane's nodes
        scale: Tensor,  # [L, 1, F], as the three others
        shift: Tensor,
        weight: Tensor,  # [L, F, F]
        outer_scale: Tensor,
        outer_shift: Tensor,
        following: Tensor | None,  # [L, out, F]
        eps: tuple[float, float],
    ) -> tuple[Tensor | None, ...]:
        room = torch.empty_like(x)
        inner = (*moments(x, share, room), scale, shift, eps[0])
        z = torch.bmm(affine(x, *inner, room).relu_(), weight.mT)
        outer = (*moments(z, share, room), outer_scale, outer_shift, eps[1])
        out = affine(z, *outer, room).relu_()
        ahead = None if following is None else torch.bmm(out, following.mT)
        ctx.save_for_backward(x, share, weight, z, out, following, *inner[:4], *outer[:3])
        ctx.mark_non_differentiable(*inner[:2], *outer[:2])
        ctx.set_materialize_grads(False)
        ctx.eps = eps
        return out, ahead, *inner[:2], *outer[:2]

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad: Tensor | None, grad_ahead: Tensor | None, *_: None
    ) -> tuple[Tensor | None, ...]:
        x, share, weight, z, out, following, *norms = ctx.saved_tensors
        (mean, var, scale, shift), (outer_mean, outer_var, outer_scale) = norms[:4], norms[4:]
        by_following = None
        if grad_ahead is not None:
            by_following = torch.bmm(grad_ahead.mT, out)
            if grad is None:
                grad = torch.bmm(grad_ahead, following)
            else:
                grad = torch.baddbmm(grad, grad_ahead, following)
            _masked.grad_input(grad, out, 0, grad_input=grad)
        elif grad is not None:
            grad = _masked(grad, out, 0)
        else:
            return (None,) * 9
        room = torch.empty_like(z)
        grad_z, *by_outer = derivative(
            grad, z, share, outer_scale, outer_mean, outer_var, ctx.eps[1], room
        )
        first = affine(x, mean, var, scale, shift, ctx.eps[0], grad).relu_()  # as it was
        by_weight = torch.bmm(grad_z.mT, first)
        grad = torch.bmm(grad_z, weight)
        _masked.grad_input(grad, first, 0, grad_input=grad)
        by_x, *by_inner = derivative(grad, x, share, scale, mean, var, ctx.eps[0], room)
        return by_x, None, *by_inner, by_weight, *by_outer, by_following, None
