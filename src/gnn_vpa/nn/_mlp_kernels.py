"""Two norms with a product between them for CUDA, in Triton: the product in the norms' passes.

``y = relu(norm_2(relu(norm_1(x)) W^T))``. What stands between ``x`` and the product ``z`` is never
written: the pass that normalises a part's rows multiplies them as well and sums up the moments of
``z``, and the pass back through the second norm goes on through the product to the sums that the
first one needs. The gradient by ``W`` comes from the same pass.
"""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

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

_TILE = 64  # rows that a program holds at a time
WIDTHS = (16, 32, 64, 128)
"""Widths of rows that a program can hold whole, as a product needs them."""


@triton.jit
def _through_kernel(
    x, nodes, weight, out, weights, means, squares, mean_out, var_out, total_out,
    scale, shift, offset, running_mean, running_var, tracked,
    out_weights, out_means, out_squares, lane_of, ptr, part_size,
    eps: tl.constexpr, momentum: tl.constexpr, ACC: tl.constexpr, DOT: tl.constexpr,
    TILE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Normalise one part of a lane's rows, multiply them, and take the product's moments."""
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
    transposed = tl.load(weight + part.to(tl.int64) * OUT * IN + k[:, None] + n[None, :] * IN).to(
        DOT
    )
    count_of = tl.zeros([TILE], ACC)
    mean_of = tl.zeros([TILE, OUT], ACC)
    square_of = tl.zeros([TILE, OUT], ACC)
    for first in range(begin, end, TILE):
        row = first + tl.arange(0, TILE)
        value = tl.load(x + row[:, None] * IN + k[None, :]).to(ACC)
        value = (value - mean[None, :]) * slope[None, :] + level[None, :]
        value = tl.maximum(value, 0.0, propagate_nan=tl.PropagateNan.ALL)
        product = tl.dot(
            value.to(x.dtype.element_ty).to(DOT), transposed, out_dtype=ACC, input_precision="ieee"
        )
        product = product.to(out.dtype.element_ty)
        tl.store(out + row[:, None] * OUT + n[None, :], product)
        count = tl.load(nodes + row).to(ACC)
        count_of, mean_of, square_of = counted(product.to(ACC), count, count_of, mean_of, square_of)
    keep_moments(
        out_weights, out_means, out_squares, part, count_of, mean_of, square_of, n, n < OUT, OUT
    )


@triton.jit
def _back_kernel(
    grad, z, x, nodes, weight, total, mean, var, scale, shift, sums, along, grad_scale, grad_shift,
    mean_in, var_in, scale_in, shift_in, grad_x, grad_weight, sums_in, along_in,
    lane_of, ptr, part_size, eps: tl.constexpr, eps_in: tl.constexpr, ACC: tl.constexpr,
    DOT: tl.constexpr, TILE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Gradient by one part of ``relu(norm_1(x))``'s rows before the ReLU, its sums, and by ``W``.

    The lane's first program keeps the gradients by the second norm's weights.
    """
    part = tl.program_id(0)
    lane, begin, end, first_part, parts = place_of(lane_of, ptr, 0, part_size, 0)
    k = tl.arange(0, IN)
    n = tl.arange(0, OUT)
    behind = lane * OUT + n
    all_sums, all_along = totals(sums, along, first_part, parts, n, n < OUT, OUT, PARTS)
    if part == first_part:
        tl.store(grad_shift + behind, all_sums)
        tl.store(grad_scale + behind, all_along)
    center = tl.load(mean + behind)
    inverse = 1.0 / tl.sqrt(tl.load(var + behind) + eps)
    slope = tl.load(scale + behind) * inverse
    level = tl.load(shift + behind)
    own = lane * IN + k
    center_in = tl.load(mean_in + own)
    inverse_in = 1.0 / tl.sqrt(tl.load(var_in + own) + eps_in)
    slope_in = tl.load(scale_in + own) * inverse_in
    level_in = tl.load(shift_in + own)
    nodes_of_lane = tl.load(total + lane)
    safe = tl.where(nodes_of_lane > 0, nodes_of_lane, 1.0)
    matrix = part.to(tl.int64) * OUT * IN + n[:, None] * IN + k[None, :]
    w = tl.load(weight + matrix).to(DOT)
    by_weight = tl.zeros([OUT, IN], ACC)
    total_in = tl.zeros([TILE, IN], ACC)
    product_in = tl.zeros([TILE, IN], ACC)
    for first in range(begin, end, TILE):
        row = first + tl.arange(0, TILE)
        place = row[:, None] * OUT + n[None, :]
        mask = (row < end)[:, None] & (n < OUT)[None, :]
        g, normal = gradient(grad, z, place, mask, center, inverse, slope, level, True)
        share = tl.load(nodes + row).to(ACC) / safe
        g -= share[:, None] * (all_sums[None, :] + normal * all_along[None, :])
        pulled = (slope[None, :] * g).to(z.dtype.element_ty).to(DOT)
        place = row[:, None] * IN + k[None, :]
        centred = tl.load(x + place).to(ACC) - center_in[None, :]
        before = centred * slope_in[None, :] + level_in[None, :]
        value = tl.maximum(before, 0.0).to(x.dtype.element_ty).to(DOT)
        by_weight = tl.dot(
            tl.trans(pulled), value, by_weight, out_dtype=ACC, input_precision="ieee"
        )
        back = tl.dot(pulled, w, out_dtype=ACC, input_precision="ieee")
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
    x: Tensor, nodes: Tensor, inner: Norm, weight: Tensor, outer: Norm, parts: Parts
) -> tuple[Tensor, Tensor, Statistics, Statistics]:
    """Return ``relu(norm_2(z))``, ``z = relu(norm_1(x)) W^T``, and the statistics of both norms.

    Args:
        x: Rows ``[R, in]``.
        nodes: How often each row occurs, ``[R]``.
        inner: ``norm_1``.
        weight: ``W`` of each part, ``[parts, out, in]``.
        outer: ``norm_2``.
        parts: Blocks of rows, each of one lane.
    """
    count, out_width, _ = weight.shape
    seen, behind = (_statistics(norm.scale, parts.lanes) for norm in (inner, outer))
    z = x.new_empty(len(x), out_width)
    of_x = moments(x, nodes, inner.scale, parts)
    of_z = [inner.scale.new_empty(count, *size) for size in ((), (out_width,), (out_width,))]
    with on_device_of(x):
        _through_kernel[(count,)](
            x, nodes, weight, z, *of_x, *seen, inner.scale, inner.shift, inner.offset,
            *inner.running, *of_z, parts.lane, parts.ptr, parts.size, inner.eps, inner.momentum,
            **_shape(x, weight, parts),
        )  # fmt: skip
    settings = (outer.offset, outer.running, outer.eps, outer.momentum, True, parts)
    out = normalise(z, of_z, behind, outer.scale, outer.shift, *settings)
    return out, z, seen, behind


def gradients(
    grad: Tensor, z: Tensor, x: Tensor, nodes: Tensor, inner: Norm, weight: Tensor, outer: Norm,
    seen: Statistics, behind: Statistics, parts: Parts,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return the gradients by ``x``, the first norm's scale and shift, ``W``, and the second's."""
    count, _, width = weight.shape
    sums, along = part_sums(grad, z, *behind[:2], outer.scale, outer.shift, outer.eps, True, parts)
    by_scale, by_shift = (torch.empty_like(behind.mean) for _ in range(2))
    by_rows, by_weight = torch.empty_like(x), torch.empty_like(weight)
    sums_in, along_in = outer.scale.new_empty(2, count, width).unbind(0)
    with on_device_of(x):
        _back_kernel[(count,)](
            grad, z, x, nodes, weight, behind.total, *behind[:2], outer.scale, outer.shift,
            sums, along, by_scale, by_shift, *seen[:2], inner.scale, inner.shift,
            by_rows, by_weight, sums_in, along_in, parts.lane, parts.ptr, parts.size,
            outer.eps, inner.eps, **_shape(x, weight, parts),
        )  # fmt: skip
    by_x, by_inner_scale, by_inner_shift = pull(
        by_rows, x, nodes, inner.scale, inner.shift, *seen, sums_in, along_in,
        inner.eps, False, parts,
    )  # fmt: skip
    return by_x, by_inner_scale, by_inner_shift, by_weight, by_scale, by_shift


def _statistics(scale: Tensor, lanes: int) -> Statistics:
    mean, var = scale.new_empty(2, *scale.shape).unbind(0)
    return Statistics(mean, var, scale.new_empty(lanes))


def _shape(x: Tensor, weight: Tensor, parts: Parts) -> dict[str, Any]:
    """Return the types and sizes that both kernels are compiled for."""
    _, out_width, width = weight.shape
    # Triton's interpreter, which serves the tests, multiplies bits where it is given bfloat16.
    half = tl.bfloat16 if isinstance(_back_kernel, JITFunction) else tl.float32
    return {
        "ACC": TYPES[x.dtype],
        "DOT": half if x.dtype == torch.bfloat16 else TYPES[x.dtype],
        "TILE": min(_TILE, parts.size),
        "IN": width,
        "OUT": out_width,
        "PARTS": parts.room,
        "num_warps": 4,
    }
