"""Batch normalisation and ReLU for CUDA, in Triton: two passes over the rows in each direction.

A lane's rows are cut into ``P`` parts, one program each. The first kernel sums up each part, the
second combines the sums of a lane's parts and goes over its own part with the result. The order
of every sum is fixed, so every run gives the same bits.
"""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops._triton import _device, _power_of_2

_TILE = 64  # rows that a program holds at a time
_PARTS = 64  # parts of a lane, at most: a program combines their sums in one go
_TYPES = {torch.float32: tl.float32, torch.float64: tl.float64}


@triton.jit
def _moments_kernel(
    x, nodes, weights, means, squares, S, F, part_size,
    ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Total weight, mean and sum of squared deviations of one part of a lane's rows."""
    part, lane = tl.program_id(0), tl.program_id(1)
    f = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = f < F
    begin = part * part_size
    end = tl.minimum(begin + part_size, S)
    weight = tl.sum(tl.zeros([TILE], ACC), 0)
    mean = tl.zeros([BLOCK], ACC)
    square = tl.zeros([BLOCK], ACC)
    for first in range(begin, end, TILE):
        row = first + tl.arange(0, TILE)
        live = row < end
        place = (lane.to(tl.int64) * S + row)[:, None] * F + f[None, :]
        value = tl.load(x + place, mask=live[:, None] & inside[None, :], other=0)
        count = tl.load(nodes + lane * S + row, mask=live, other=0).to(ACC)
        own = tl.sum(count, 0)
        own_mean = tl.sum(value * count[:, None], 0) / tl.where(own > 0, own, 1.0)
        offset = value - own_mean[None, :]
        own_square = tl.sum(offset * offset * count[:, None], 0)
        # Two parts' moments make those of both (Chan et al.).
        total = weight + own
        share = own / tl.where(total > 0, total, 1.0)
        step = own_mean - mean
        mean += step * share
        square += own_square + step * step * weight * share
        weight = total
    number = lane * tl.num_programs(0) + part
    tl.store(weights + number, weight)
    tl.store(means + number * F + f, mean, mask=inside)
    tl.store(squares + number * F + f, square, mask=inside)


@triton.jit
def _combined(weights, means, squares, lane, parts, f, inside, F, PARTS: tl.constexpr):
    """Total weight, mean and variance of a lane from those of its parts."""
    p = tl.arange(0, PARTS)
    there = p < parts
    weight = tl.load(weights + lane * parts + p, mask=there, other=0)
    place = (lane * parts + p)[:, None] * F + f[None, :]
    mask = there[:, None] & inside[None, :]
    part_mean = tl.load(means + place, mask=mask, other=0)
    total = tl.sum(weight, 0)
    safe = tl.where(total > 0, total, 1.0)
    mean = tl.sum(part_mean * weight[:, None], 0) / safe
    offset = tl.where(mask, part_mean - mean[None, :], 0.0)
    square = tl.load(squares + place, mask=mask, other=0) + offset * offset * weight[:, None]
    return total, mean, tl.sum(square, 0) / safe


@triton.jit
def _apply_kernel(
    x, out, weights, means, squares, mean_out, var_out, total_out, scale, shift, offset,
    running_mean, running_var, tracked, S, F, part_size, parts,
    eps: tl.constexpr, momentum: tl.constexpr, TRAIN: tl.constexpr, RELU: tl.constexpr,
    TILE: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Normalise one part of a lane's rows; the lane's first program keeps the statistics."""
    part, lane = tl.program_id(0), tl.program_id(1)
    f = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = f < F
    own = lane * F + f
    added = tl.zeros([BLOCK], x.dtype.element_ty)
    if offset is not None:
        added = tl.load(offset + own, mask=inside, other=0)
    if TRAIN:
        total, mean, var = _combined(weights, means, squares, lane, parts, f, inside, F, PARTS)
        if part == 0:
            tl.store(mean_out + own, mean, mask=inside)
            tl.store(var_out + own, var, mask=inside)
            if tl.program_id(2) == 0:
                tl.store(total_out + lane, total)
                tl.store(tracked + lane, tl.load(tracked + lane) + tl.where(total > 0, 1, 0))
            rate = (total > 0).to(total.dtype) * momentum
            old = tl.load(running_mean + own, mask=inside, other=0)
            tl.store(running_mean + own, old + rate * (mean + added - old), mask=inside)
            old = tl.load(running_var + own, mask=inside, other=0)
            unbiased = var * (total / tl.maximum(total - 1, 1.0))
            tl.store(running_var + own, old + rate * (unbiased - old), mask=inside)
    else:
        mean = tl.load(running_mean + own, mask=inside, other=0) - added
        var = tl.load(running_var + own, mask=inside, other=0)
    slope = tl.load(scale + own, mask=inside, other=0) / tl.sqrt(var + eps)
    level = tl.load(shift + own, mask=inside, other=0)
    begin = part * part_size
    end = tl.minimum(begin + part_size, S)
    for first in range(begin, end, TILE):
        row = first + tl.arange(0, TILE)
        place = (lane.to(tl.int64) * S + row)[:, None] * F + f[None, :]
        mask = (row < end)[:, None] & inside[None, :]
        value = tl.load(x + place, mask=mask, other=0)
        value = (value - mean[None, :]) * slope[None, :] + level[None, :]
        if RELU:
            value = tl.maximum(value, 0.0, propagate_nan=tl.PropagateNan.ALL)
        tl.store(out + place, value, mask=mask)


@triton.jit
def _gradient(
    grad, x, place, mask, mean, inverse, slope, level, RELU: tl.constexpr
):  # fmt: skip
    """Gradient before the ReLU, and normalised rows."""
    g = tl.load(grad + place, mask=mask, other=0)
    centred = tl.load(x + place, mask=mask, other=0) - mean[None, :]
    if RELU:
        g = tl.where(centred * slope[None, :] + level[None, :] > 0, g, 0.0)
    return g, tl.where(mask, centred * inverse[None, :], 0.0)


@triton.jit
def _sums_kernel(
    grad, x, mean, var, scale, shift, sums, along, S, F, part_size, eps: tl.constexpr,
    ACC: tl.constexpr, RELU: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum of the gradient, and of gradient times normalised rows, over one part."""
    part, lane = tl.program_id(0), tl.program_id(1)
    f = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = f < F
    own = lane * F + f
    center = tl.load(mean + own, mask=inside, other=0)
    inverse = 1.0 / tl.sqrt(tl.load(var + own, mask=inside, other=0) + eps)
    slope = tl.load(scale + own, mask=inside, other=0) * inverse
    level = tl.load(shift + own, mask=inside, other=0)
    total = tl.zeros([TILE, BLOCK], ACC)
    product = tl.zeros([TILE, BLOCK], ACC)
    begin = part * part_size
    end = tl.minimum(begin + part_size, S)
    for first in range(begin, end, TILE):
        row = first + tl.arange(0, TILE)
        place = (lane.to(tl.int64) * S + row)[:, None] * F + f[None, :]
        mask = (row < end)[:, None] & inside[None, :]
        g, normal = _gradient(grad, x, place, mask, center, inverse, slope, level, RELU)
        total += g
        product += g * normal
    number = (lane * tl.num_programs(0) + part) * F + f
    tl.store(sums + number, tl.sum(total, 0), mask=inside)
    tl.store(along + number, tl.sum(product, 0), mask=inside)


@triton.jit
def _pull_kernel(
    grad, x, nodes, total, mean, var, scale, shift, sums, along, grad_x, grad_scale, grad_shift,
    S, F, part_size, parts, eps: tl.constexpr,
    RELU: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Gradient by one part of the rows; the lane's first program keeps those by the weights."""
    part, lane = tl.program_id(0), tl.program_id(1)
    f = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = f < F
    own = lane * F + f
    p = tl.arange(0, PARTS)
    there = (p < parts)[:, None] & inside[None, :]
    number = (lane * parts + p)[:, None] * F + f[None, :]
    all_sums = tl.sum(tl.load(sums + number, mask=there, other=0), 0)
    all_along = tl.sum(tl.load(along + number, mask=there, other=0), 0)
    if part == 0:
        tl.store(grad_shift + own, all_sums, mask=inside)
        tl.store(grad_scale + own, all_along, mask=inside)
    center = tl.load(mean + own, mask=inside, other=0)
    inverse = 1.0 / tl.sqrt(tl.load(var + own, mask=inside, other=0) + eps)
    slope = tl.load(scale + own, mask=inside, other=0) * inverse
    level = tl.load(shift + own, mask=inside, other=0)
    weight = tl.load(total + lane)
    safe = tl.where(weight > 0, weight, 1.0)
    begin = part * part_size
    end = tl.minimum(begin + part_size, S)
    for first in range(begin, end, TILE):
        row = first + tl.arange(0, TILE)
        live = row < end
        place = (lane.to(tl.int64) * S + row)[:, None] * F + f[None, :]
        mask = live[:, None] & inside[None, :]
        g, normal = _gradient(grad, x, place, mask, center, inverse, slope, level, RELU)
        share = tl.load(nodes + lane * S + row, mask=live, other=0).to(slope.dtype) / safe
        pull = share[:, None] * (all_sums[None, :] + normal * all_along[None, :])
        tl.store(grad_x + place, slope[None, :] * (g - pull), mask=mask)


def train(
    x: Tensor, nodes: Tensor, scale: Tensor, shift: Tensor, offset: Tensor | None,
    running: tuple[Tensor, Tensor, Tensor], eps: float, momentum: float, relu: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Normalise rows ``[L, S, F]`` by their own statistics, which the running ones follow.

    Returns:
        The rows, then mean ``[L, F]``, variance ``[L, F]`` and total weight ``[L]``.
    """
    lanes, _, width = x.shape
    grid, sizes, shape, parts = _layout(x)
    mean, var = x.new_empty(2, lanes, width).unbind(0)
    total = x.new_empty(lanes)
    weights = x.new_empty(lanes, parts)
    means, squares = x.new_empty(2, lanes, parts, width).unbind(0)
    out = torch.empty_like(x)
    with _device(x):
        _moments_kernel[grid](
            x, nodes, weights, means, squares, *sizes, ACC=_TYPES[x.dtype], **shape
        )
        _apply_kernel[grid](
            x, out, weights, means, squares, mean, var, total, scale, shift, offset, *running,
            *sizes, parts, eps, momentum, TRAIN=True, RELU=relu, PARTS=_power_of_2(parts), **shape,
        )  # fmt: skip
    return out, mean, var, total


def judge(
    x: Tensor, scale: Tensor, shift: Tensor, offset: Tensor | None,
    running_mean: Tensor, running_var: Tensor, eps: float, relu: bool,
) -> Tensor:  # fmt: skip
    """Normalise rows ``[L, S, F]`` by the running statistics."""
    grid, sizes, shape, parts = _layout(x)
    out = torch.empty_like(x)
    with _device(x):
        _apply_kernel[grid](
            x, out, None, None, None, None, None, None, scale, shift, offset,
            running_mean, running_var, None, *sizes, parts, eps, 0.0,
            TRAIN=False, RELU=relu, PARTS=1, **shape,
        )  # fmt: skip
    return out


def gradients(
    grad: Tensor, x: Tensor, nodes: Tensor, scale: Tensor, shift: Tensor,
    mean: Tensor, var: Tensor, total: Tensor, eps: float, relu: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients by rows ``[L, S, F]``, scale and shift ``[L, F]``."""
    lanes, _, width = x.shape
    grid, sizes, shape, parts = _layout(x)
    sums, along = x.new_empty(2, lanes, parts, width).unbind(0)
    grad_x, grad_scale, grad_shift = (torch.empty_like(t) for t in (x, mean, mean))
    with _device(x):
        _sums_kernel[grid](
            grad, x, mean, var, scale, shift, sums, along, *sizes, eps,
            ACC=_TYPES[x.dtype], RELU=relu, **shape,
        )  # fmt: skip
        _pull_kernel[grid](
            grad, x, nodes, total, mean, var, scale, shift, sums, along,
            grad_x, grad_scale, grad_shift, *sizes, parts, eps,
            RELU=relu, PARTS=_power_of_2(parts), **shape,
        )  # fmt: skip
    return grad_x, grad_scale, grad_shift


def _layout(x: Tensor) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any], int]:
    """Return the grid, the sizes S, F and rows of a part, the shape of a tile, and the parts."""
    lanes, rows, width = x.shape
    tiles = -(-rows // _TILE)
    part_size = -(-tiles // _PARTS) * _TILE
    parts = -(-rows // part_size)
    block = min(64, _power_of_2(width))
    grid = (parts, lanes, -(-width // block))
    return grid, (rows, width, part_size), {"TILE": _TILE, "BLOCK": block, "num_warps": 4}, parts
