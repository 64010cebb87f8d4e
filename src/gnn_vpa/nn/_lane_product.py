"""A product for each lane, whose weights' gradient keeps a whole GPU busy."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

_MANY = 64  # lanes, or blocks, that keep a GPU busy by themselves


class LaneProduct(torch.autograd.Function):
    """``x W^T`` for rows ``[L, S, in]`` and weights ``[L, out, in]``.

    The gradient by ``W`` is a sum over all rows of a lane: a small matrix from a long sum, which
    few of a GPU's processors would share. So the rows are cut into parts, multiplied side by side.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.bmm(x, weight.mT)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        by_x = torch.bmm(grad, weight) if ctx.needs_input_grad[0] else None
        lanes, rows, _ = x.shape
        parts = _parts(rows) if lanes < _MANY else 1
        grads, values = (t.reshape(lanes * parts, rows // parts, -1) for t in (grad, x))
        products = torch.bmm(grads.mT, values)
        by_weight = products.view(lanes, parts, *weight.shape[1:]).sum(1)
        return by_x, by_weight


def _parts(rows: int) -> int:
    """Return into how many equal parts to cut so many rows.

    Example:
        >>> _parts(13312), _parts(1728), _parts(1707)
        (16, 27, 1)
    """
    if rows % 1024 == 0:
        return 16
    return rows // 64 if rows % 64 == 0 and rows <= 4096 else 1
