"""Norm, ReLU, product, norm and ReLU as one differentiable operation on CUDA."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..ops import backend
from ._batch_norm import BatchNorm
from ._lane_rows import LaneRows
from ._linear import Linear
from ._traced import is_traced


def is_fusible(x: Tensor, last: Linear, rows: object) -> bool:
    """Say whether rows are in bfloat16, in blocks of lanes, and of a width that a program holds.

    Products of float32 stay with cuBLAS, which rounds to TF32 in its own way.
    """
    if x.dtype != torch.bfloat16 or last.weight.dim() != 3 or is_traced():
        return False
    if not isinstance(rows, LaneRows) or rows.lane is None or backend(x) != "triton":
        return False
    from ._mlp_kernels import WIDTHS

    size = len(x) // len(rows.lane)
    return set(last.weight.shape[1:]) <= set(WIDTHS) and size >= 16 and size & (size - 1) == 0


def norm_product_norm(
    x: Tensor, rows: LaneRows, offset: Tensor, inner: BatchNorm, last: Linear, outer: BatchNorm
) -> Tensor:
    """Return ``relu(norm_2(relu(norm_1(x + offset)) W^T + b))``, and let both norms follow.

    Args:
        x: Rows ``[R, in]`` of blocks.
        rows: How often each occurs, and whose it is.
        offset: ``[L, in]``, which the first norm takes out again.
        inner: ``norm_1``.
        last: ``W [blocks, out, in]`` and ``b [L, out]``, which the second norm takes out again.
        outer: ``norm_2``.
    """
    from ._norm_kernels import parts_of

    parts = parts_of(len(x), len(inner.weight), rows)
    settings = []
    for norm, added in ((inner, offset), (outer, last.bias)):
        running = (norm.running_mean, norm.running_var, norm.num_batches_tracked)
        settings.append((added.detach().contiguous(), running, norm.eps, norm.momentum))
    return FusedMLP.apply(  # type: ignore[no-any-return, no-untyped-call]
        x, rows.multiplicity, inner.weight, inner.bias, last.weight, outer.weight, outer.bias,
        (*settings, parts),
    )  # fmt: skip


class FusedMLP(torch.autograd.Function):
    """``_mlp_kernels.train`` with its derivative, for which ``x`` and the product are kept."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,  # [R, in]
        nodes: Tensor,  # [R]
        scale: Tensor,  # [L, in]
        shift: Tensor,  # [L, in]
        weight: Tensor,  # [blocks, out, in]
        scale_behind: Tensor,  # [L, out]
        shift_behind: Tensor,  # [L, out]
        settings: tuple[Any, Any, Any],  # of both norms, and the parts
    ) -> Tensor:
        from . import _mlp_kernels
        from ._mlp_kernels import Norm

        first, second, parts = settings
        x, nodes, weight = (t.contiguous() for t in (x, nodes, weight))
        inner, outer = Norm(scale, shift, *first), Norm(scale_behind, shift_behind, *second)
        out, z, seen, behind = _mlp_kernels.train(x, nodes, inner, weight, outer, parts)
        norms = (scale, shift, scale_behind, shift_behind)
        ctx.save_for_backward(z, x, nodes, weight, *norms, *seen, *behind)
        ctx.settings = settings
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from . import _mlp_kernels
        from ._mlp_kernels import Norm, Statistics

        first, second, parts = ctx.settings
        z, x, nodes, weight, *norms = ctx.saved_tensors
        inner, outer = Norm(*norms[:2], *first), Norm(*norms[2:4], *second)
        seen, behind = Statistics(*norms[4:7]), Statistics(*norms[7:])
        rows = (grad.contiguous(), z, x, nodes)
        found = _mlp_kernels.gradients(*rows, inner, weight, outer, seen, behind, parts)
        by_x, by_scale, by_shift, by_weight, by_scale_behind, by_shift_behind = found
        return by_x, None, by_scale, by_shift, by_weight, by_scale_behind, by_shift_behind, None
