"""A layer's norms and products as one differentiable operation."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..ops import backend
from ._batch_norm import BatchNorm
from ._lane_mlp import LaneMLP
from ._lane_rows import LaneRows
from ._lanes import by_lane
from ._linear import Linear
from ._traced import is_traced


def is_fusible(rows: object, weight: Tensor, following: Tensor | None) -> bool:
    """Say whether a layer of lanes can be one operation.

    On the CPU every lane has equally many rows. On CUDA rows are in bfloat16, in blocks of lanes,
    and of widths that a program holds; products of float32 stay with cuBLAS, which rounds to TF32
    in its own way.

    Args:
        rows: How many nodes each row stands for, and whose it is.
        weight: What rows are multiplied by, of the rows' type.
        following: What the next layer begins with, if that is a product.
    """
    weights = [weight] if following is None else [weight, following]
    if any(w.dim() != 3 for w in weights) or not isinstance(rows, LaneRows) or is_traced():
        return False
    if rows.lane is None:
        return weight.is_cpu and rows.share is not None and weight.shape[1] == weight.shape[2]
    if any(w.dtype != torch.bfloat16 for w in weights):
        return False
    if backend(rows.multiplicity) != "triton":
        return False
    from ._mlp_kernels import WIDTHS

    size = len(rows.multiplicity) // len(rows.lane)
    widths = {width for w in weights for width in w.shape[1:]}
    return widths <= set(WIDTHS) and size >= 16 and size & (size - 1) == 0


class MLP(NamedTuple):
    """``h = relu(norm_2(relu(norm_1(x + offset)) W^T + b))``, and ``y = h V^T``.

    Attributes:
        offset: ``[L, in]``, which the first norm takes out again.
        inner: ``norm_1``.
        last: ``W [blocks, mid, in]`` and ``b [L, mid]``, which the second norm takes out again. On
            the CPU a block is a lane.
        outer: ``norm_2``.
        following: ``V [blocks, out, mid]``; None: there is no ``y``.
    """

    offset: Tensor
    inner: BatchNorm
    last: Linear
    outer: BatchNorm
    following: Tensor | None = None

    def __call__(self, x: Tensor, rows: LaneRows) -> tuple[Tensor, Tensor | None]:
        """Return ``h`` and ``y`` for rows ``x [R, in]``; both norms follow the batch."""
        if rows.lane is None:
            return self._by_lane(x, rows)
        from ._norm_kernels import parts_of

        parts = parts_of(len(x), len(self.inner.weight), rows)
        settings = []
        for norm, added in ((self.inner, self.offset), (self.outer, self.last.bias)):
            running = (norm.running_mean, norm.running_var, norm.num_batches_tracked)
            settings.append((added.detach().contiguous(), running, norm.eps, norm.momentum))
        out: tuple[Tensor, Tensor | None] = _FusedMLP.apply(  # type: ignore[no-untyped-call]
            x, rows.multiplicity, self.inner.weight, self.inner.bias, self.last.weight,
            self.outer.weight, self.outer.bias, self.following, (*settings, parts),
        )  # fmt: skip
        return out

    def _by_lane(self, x: Tensor, rows: LaneRows) -> tuple[Tensor, Tensor | None]:
        """Return both for lanes of equally many rows on the CPU."""
        norms = (self.inner, self.outer)
        affine = [[w.unsqueeze(1) for w in (norm.weight, norm.bias)] for norm in norms]
        out, ahead, mean, var, outer_mean, outer_var = LaneMLP.apply(  # type: ignore[no-untyped-call]
            by_lane(x, len(self.offset)), rows.share, *affine[0], self.last.weight, *affine[1],
            self.following, (self.inner.eps, self.outer.eps),
        )  # fmt: skip
        self.inner.follow(mean, var, rows, self.offset)
        self.outer.follow(outer_mean, outer_var, rows, self.last.bias)
        return out.flatten(0, 1), None if ahead is None else ahead.flatten(0, 1)


class _FusedMLP(torch.autograd.Function):
    """``_mlp_kernels.train`` with its derivative, for which ``x`` and the product are kept."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,  # [R, in]
        nodes: Tensor,  # [R]
        scale: Tensor,  # [L, in]
        shift: Tensor,  # [L, in]
        weight: Tensor,  # [blocks, mid, in]
        outer_scale: Tensor,  # [L, mid]
        outer_shift: Tensor,  # [L, mid]
        following: Tensor | None,  # [blocks, out, mid]
        settings: tuple[Any, Any, Any],  # of both norms, and the parts
    ) -> tuple[Tensor, Tensor | None]:
        from ._mlp_kernels import Norm, train

        first, second, parts = settings
        x, nodes, weight = (t.contiguous() for t in (x, nodes, weight))
        following = None if following is None else following.contiguous()
        inner, outer = Norm(scale, shift, *first), Norm(outer_scale, outer_shift, *second)
        out, ahead, z, seen, behind = train(x, nodes, inner, weight, outer, following, parts)
        norms = (scale, shift, outer_scale, outer_shift)
        ctx.save_for_backward(x, nodes, weight, following, *norms, z, *seen, *behind)
        ctx.settings = settings
        ctx.set_materialize_grads(False)
        return out, ahead

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad: Tensor | None, grad_ahead: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        from ._mlp_kernels import Norm, Statistics, gradients

        first, second, parts = ctx.settings
        x, nodes, weight, following, *norms = ctx.saved_tensors
        inner, outer = Norm(*norms[:2], *first), Norm(*norms[2:4], *second)
        known = (norms[4], Statistics(*norms[5:8]), Statistics(*norms[8:]))
        assert (grad if following is None else grad_ahead) is not None
        grad, grad_ahead = (None if g is None else g.contiguous() for g in (grad, grad_ahead))
        by = gradients(grad, grad_ahead, x, nodes, inner, weight, outer, following, *known, parts)
        by_outer = (by.outer_scale, by.outer_shift)
        return by.x, None, by.scale, by.shift, by.weight, *by_outer, by.following, None
