"""Norms with products between them for CUDA, in Triton: the products in the norms' passes.

``z = relu(norm_1(x)) W^T``, ``h = relu(norm_2(z))`` and, where the next layer begins with a
product, ``y = h V^T``. What stands between ``x`` and ``z`` is never written: the pass that
normalises a part's rows multiplies them as well and sums up the moments of the product. The pass
back through a product goes on to the sums that the norm before it needs, and gives the gradient by
its weights.
"""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.jit import JITFunction

from ..ops.launch import on_device_of
from ._norm_kernels import (
    TYPES,
    Parts,
    combined,
    counted,
    gradient,
    keep_moments,
    keep_statistics,
    moments,
    normalise,
    part_sums,
    place_of,
    pull,
    totals,
)

WIDTHS = (16, 32, 64, 128)
"""Widths of rows that a program can hold whole, as a product needs them."""

# Rows that a program holds at a time, and tiles that are on their way to it. Seen on an H200.
_FORWARD = {"TILE": 32, "STAGES": 3, "num_warps": 2}
_BACKWARD = {"TILE": 32, "STAGES": 3, "num_warps": 4}
_BACKWARD_BY_NORM = {"TILE": 16, "STAGES": 4, "num_warps": 2}


@triton.jit
def _through_kernel(
    x, nodes, weight, kept, out, weights, means, squares, mean_out, var_out, total_out,
    scale, shift, offset, running_mean, running_var, tracked,
    out_weights, out_means, out_squares, lane_of, ptr, part_size,
    eps: tl.constexpr, momentum: tl.constexpr, ACC: tl.constexpr, DOT: tl.constexpr,
    TILE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, PARTS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Normalise one part of a lane's rows and multiply them.

    The normalised rows are ``kept``, if they are asked for, and so are the product's moments.
    """
    part = tl.program_id(0)
    lane, begin, end, first_part, parts = place_of(lane_of, ptr, 0, part_size, 0)
    k = tl.arange(0, IN)
    n = tl.arange(0, OUT)
    every = k < IN
    own = lane * IN + k
    added = tl.zeros([IN], scale.dtype.element_ty)
    if offset is not None:
        added = tl.load(offset + own)
    total, mean, var = combined(weights, means, squares, first_part, parts, k, every, IN, PARTS)
    if part == first_part:
        keep_statistics(
            total, mean, var, added, mean_out, var_out, total_out,
            running_mean, running_var, tracked, momentum, lane, own, every,
        )  # fmt: skip
    slope = tl.load(scale + own) / tl.sqrt(var + eps)
    level = tl.load(shift + own)
    transposed = tl.load(weight + part.to(tl.int64) * OUT * IN + k[:, None] + n[None, :] * IN)
    transposed = transposed.to(DOT)
    count_of = tl.zeros([TILE], ACC)
    mean_of = tl.zeros([TILE, OUT], ACC)
    square_of = tl.zeros([TILE, OUT], ACC)
    for first in tl.range(begin, end, TILE, num_stages=STAGES):
        row = first + tl.arange(0, TILE)
        place = row[:, None] * IN + k[None, :]
        value = tl.load(x + place).to(ACC)
        value = (value - mean[None, :]) * slope[None, :] + level[None, :]
        value = tl.maximum(value, 0.0, propagate_nan=tl.PropagateNan.ALL)
        value = value.to(x.dtype.element_ty)
        if kept is not None:
            tl.store(kept + place, value)
        product = tl.dot(value.to(DOT), transposed, out_dtype=ACC, input_precision="ieee")
        product = product.to(out.dtype.element_ty)
        tl.store(out + row[:, None] * OUT + n[None, :], product)
        if out_means is not None:
            count = tl.load(nodes + row).to(ACC)
            count_of, mean_of, square_of = counted(
                product.to(ACC), count, count_of, mean_of, square_of
            )
    if out_means is not None:
        keep_moments(
            out_weights, out_means, out_squares, part, count_of, mean_of, square_of, n, n < OUT, OUT
        )


@triton.jit
def _back_kernel(
    grad, z, more, x, nodes, weight, total, mean, var, scale, shift, sums, along,
    grad_scale, grad_shift, mean_in, var_in, scale_in, shift_in,
    grad_x, grad_weight, sums_in, along_in, lane_of, ptr, part_size,
    eps: tl.constexpr, eps_in: tl.constexpr, RELU: tl.constexpr, ACC: tl.constexpr,
    DOT: tl.constexpr, TILE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr,
    PARTS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Gradient by one part of ``norm(x)``'s rows, its sums, and by the weights of the product.

    The product is of ``relu(norm(x))``, whose gradient may have ``more`` from elsewhere. ``grad``
    is by the product; or with ``z``, the product, by what a second norm has made of it, whose
    weights' gradients the lane's first program keeps.
    """
    part = tl.program_id(0)
    lane, begin, end, first_part, parts = place_of(lane_of, ptr, 0, part_size, 0)
    k = tl.arange(0, IN)
    n = tl.arange(0, OUT)
    if z is not None:
        behind = lane * OUT + n
        all_sums, all_along = totals(sums, along, first_part, parts, n, n < OUT, OUT, PARTS)
        if part == first_part:
            tl.store(grad_shift + behind, all_sums)
            tl.store(grad_scale + behind, all_along)
        center = tl.load(mean + behind)
        inverse = 1.0 / tl.sqrt(tl.load(var + behind) + eps)
        slope = tl.load(scale + behind) * inverse
        level = tl.load(shift + behind)
        nodes_of_lane = tl.load(total + lane)
        safe = tl.where(nodes_of_lane > 0, nodes_of_lane, 1.0)
    own = lane * IN + k
    center_in = tl.load(mean_in + own)
    inverse_in = 1.0 / tl.sqrt(tl.load(var_in + own) + eps_in)
    slope_in = tl.load(scale_in + own) * inverse_in
    level_in = tl.load(shift_in + own)
    matrix = part.to(tl.int64) * OUT * IN + n[:, None] * IN + k[None, :]
    w = tl.load(weight + matrix).to(DOT)
    by_weight = tl.zeros([OUT, IN], ACC)
    total_in = tl.zeros([TILE, IN], ACC)
    product_in = tl.zeros([TILE, IN], ACC)
    for first in tl.range(begin, end, TILE, num_stages=STAGES):
        row = first + tl.arange(0, TILE)
        place = row[:, None] * OUT + n[None, :]
        if z is not None:
            mask = (row < end)[:, None] & (n < OUT)[None, :]
            g, normal = gradient(grad, z, place, mask, center, inverse, slope, level, RELU)
            share = tl.load(nodes + row).to(ACC) / safe
            g -= share[:, None] * (all_sums[None, :] + normal * all_along[None, :])
            pulled = (slope[None, :] * g).to(z.dtype.element_ty).to(DOT)
        else:
            pulled = tl.load(grad + place).to(DOT)
        place = row[:, None] * IN + k[None, :]
        centred = tl.load(x + place).to(ACC) - center_in[None, :]
        before = centred * slope_in[None, :] + level_in[None, :]
        value = tl.maximum(before, 0.0).to(x.dtype.element_ty).to(DOT)
        by_weight = tl.dot(
            tl.trans(pulled), value, by_weight, out_dtype=ACC, input_precision="ieee"
        )
        back = tl.dot(pulled, w, out_dtype=ACC, input_precision="ieee")
        if more is not None:
            back += tl.load(more + place).to(ACC)
        rounded = tl.where(before > 0, back, 0.0).to(grad_x.dtype.element_ty)
        tl.store(grad_x + place, rounded)
        back = rounded.to(ACC)
        total_in += back
        product_in += back * (centred * inverse_in[None, :])
    tl.store(grad_weight + matrix, by_weight)
    tl.store(sums_in + part * IN + k, tl.sum(total_in, 0))
    tl.store(along_in + part * IN + k, tl.sum(product_in, 0))


class Norm(NamedTuple):
    """A norm's weights and how it follows batches."""

    scale: Tensor  # [L, F]
    shift: Tensor  # [L, F]
    offset: Tensor | None  # [L, F]
    running: tuple[Tensor, Tensor, Tensor]  # mean and variance [L, F], and the batches so far [L]
    eps: float
    momentum: float


class Statistics(NamedTuple):
    """What a norm has seen in a batch."""

    mean: Tensor  # [L, F]
    var: Tensor  # [L, F]
    total: Tensor  # [L]


def train(
    x: Tensor, nodes: Tensor, inner: Norm, weight: Tensor, outer: Norm, following: Tensor | None,
    parts: Parts,
) -> tuple[Tensor, Tensor | None, Tensor, Statistics, Statistics]:  # fmt: skip
    """Return ``h = relu(norm_2(z))`` and ``y = h V^T``, with ``z = relu(norm_1(x)) W^T``.

    They are followed by ``z`` and what both norms have seen.

    Args:
        x: Rows ``[R, in]``.
        nodes: How often each row occurs, ``[R]``.
        inner: ``norm_1``.
        weight: ``W`` of each part, ``[parts, mid, in]``.
        outer: ``norm_2``.
        following: ``V`` of each part, ``[parts, out, mid]``; None: there is no ``y``.
        parts: Blocks of rows, each of one lane.
    """
    width = weight.shape[1]
    seen, behind = (_statistics(norm.scale, parts.lanes) for norm in (inner, outer))
    of_x = moments(x, nodes, inner.scale, parts)
    of_z = tuple(inner.scale.new_empty(parts.count, *size) for size in ((), (width,), (width,)))
    z = _through(x, nodes, inner, weight, None, of_x, seen, of_z, parts)
    if following is None:
        settings = (outer.offset, outer.running, outer.eps, outer.momentum, True, parts)
        out = normalise(z, of_z, behind, outer.scale, outer.shift, *settings)
        return out, None, z, seen, behind
    out = torch.empty_like(z)
    ahead = _through(z, nodes, outer, following, out, of_z, behind, (None, None, None), parts)
    return out, ahead, z, seen, behind


def _through(
    x: Tensor, nodes: Tensor, norm: Norm, weight: Tensor, kept: Tensor | None,
    of_x: Sequence[Tensor], seen: Statistics, of_out: Sequence[Tensor | None], parts: Parts,
) -> Tensor:  # fmt: skip
    """Return ``relu(norm(x)) W^T``."""
    out = x.new_empty(len(x), weight.shape[1])
    with on_device_of(x):
        _through_kernel[(parts.count,)](
            x, nodes, weight, kept, out, *of_x, *seen, norm.scale, norm.shift, norm.offset,
            *norm.running, *of_out, parts.lane, parts.ptr, parts.size, norm.eps, norm.momentum,
            **_shape(x, weight, parts, _FORWARD),
        )  # fmt: skip
    return out


class Gradients(NamedTuple):
    """Gradients by what `train` was given."""

    x: Tensor
    scale: Tensor
    shift: Tensor
    weight: Tensor
    outer_scale: Tensor
    outer_shift: Tensor
    following: Tensor | None


def gradients(
    grad: Tensor | None, grad_ahead: Tensor | None, x: Tensor, nodes: Tensor, inner: Norm,
    weight: Tensor, outer: Norm, following: Tensor | None, z: Tensor,
    seen: Statistics, behind: Statistics, parts: Parts,
) -> Gradients:  # fmt: skip
    """Return the gradients, from those by ``h`` and ``y`` and what `train` returned beside them."""
    if following is None:
        by_following = None
        sums = part_sums(grad, z, *behind[:2], outer.scale, outer.shift, outer.eps, True, parts)
    else:
        rows = _Rows(z, nodes, outer, behind, parts)
        grad, by_following, sums = _back(grad_ahead, following, rows, more=grad)
    by_scale, by_shift = (torch.empty_like(behind.mean) for _ in range(2))
    second = _Second(z, outer, behind, *sums, by_scale, by_shift, relu=following is None)
    grad, by_weight, sums = _back(grad, weight, _Rows(x, nodes, inner, seen, parts), second)
    by_x, *by_inner = pull(
        grad, x, nodes, inner.scale, inner.shift, *seen, *sums, inner.eps, False, parts
    )
    return Gradients(by_x, *by_inner, by_weight, by_scale, by_shift, by_following)


class _Rows(NamedTuple):
    """Rows before a norm."""

    x: Tensor  # [R, in]
    nodes: Tensor  # [R]
    norm: Norm
    seen: Statistics
    parts: Parts


class _Second(NamedTuple):
    """A norm behind a product ``z``."""

    z: Tensor  # [R, out]
    norm: Norm
    seen: Statistics
    sums: Tensor  # [parts, out], of the gradient …
    along: Tensor  # … and of gradient times normalised rows
    by_scale: Tensor  # [L, out], to be filled, as the next one
    by_shift: Tensor
    relu: bool  # whether the gradient is that behind the norm's ReLU


def _back(
    grad: Tensor, weight: Tensor, rows: _Rows, second: _Second | None = None,
    more: Tensor | None = None,
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:  # fmt: skip
    """Return gradients by ``norm(x)`` before its ReLU and by ``W``, and sums of the former.

    Args:
        grad: By the product, or with a ``second`` norm by what is behind that.
        weight: ``W`` of each part, ``[parts, out, in]``.
        rows: The rows before the norm before the product.
        second: A norm behind the product.
        more: Another gradient by ``relu(norm(x))``, which is added.
    """
    x, nodes, norm, seen, parts = rows
    by_rows, by_weight = torch.empty_like(x), torch.empty_like(weight)
    sums, along = norm.scale.new_empty(2, parts.count, weight.shape[2]).unbind(0)
    z, told, eps, relu, tiles = None, (None,) * 9, 0.0, False, _BACKWARD
    if second is not None:
        tiles = _BACKWARD_BY_NORM
        z, own, behind, *others, relu = second
        told = (behind.total, *behind[:2], own.scale, own.shift, *others)
        eps = own.eps
    with on_device_of(x):
        _back_kernel[(parts.count,)](
            grad, z, more, x, nodes, weight, *told, *seen[:2], norm.scale, norm.shift,
            by_rows, by_weight, sums, along, parts.lane, parts.ptr, parts.size,
            eps, norm.eps, RELU=relu, **_shape(x, weight, parts, tiles),
        )  # fmt: skip
    return by_rows, by_weight, (sums, along)


def _statistics(scale: Tensor, lanes: int) -> Statistics:
    mean, var = scale.new_empty(2, *scale.shape).unbind(0)
    return Statistics(mean, var, scale.new_empty(lanes))


def _shape(x: Tensor, weight: Tensor, parts: Parts, tiles: dict[str, int]) -> dict[str, Any]:
    """Return the types and sizes that a kernel is compiled for."""
    _, out_width, width = weight.shape
    # Triton's interpreter, which serves the tests, multiplies bits where it is given bfloat16.
    half = tl.bfloat16 if isinstance(_back_kernel, JITFunction) else tl.float32
    return tiles | {
        "ACC": TYPES[x.dtype],
        "DOT": half if x.dtype == torch.bfloat16 else TYPES[x.dtype],
        "TILE": min(tiles["TILE"], parts.size),
        "IN": width,
        "OUT": out_width,
        "PARTS": parts.room,
    }
