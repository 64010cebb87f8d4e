"""Batch normalisation and ReLU for CUDA, in Triton: two passes over the rows in each direction.

A lane's rows are cut into parts, one program each. The first kernel sums up each part, the second
combines the sums of a lane's parts and goes over its own part with the result. The order of every
sum is fixed, so every run gives the same bits. Lanes have as many rows each, or blocks
(`LaneRows`), which are their parts then.
"""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops.launch import ceil_div, on_device_of, power_of_2
from ._lane_rows import LaneRows

_TILE = 64  # rows that a program holds at a time …
_TRAINED = 128  # … and in the forward pass of training, which keeps fewer numbers of each
_PARTS = 64  # parts of a lane, at most: a program combines their sums in one go
TYPES = {torch.bfloat16: tl.float32, torch.float32: tl.float32, torch.float64: tl.float64}


@triton.jit
def place_of(lane_of, ptr, S, part_size, parts):
    """Return this program's lane and rows, and the lane's first part and number of parts."""
    part = tl.program_id(0)
    if lane_of is None:
        lane = part // parts
        begin = lane.to(tl.int64) * S + (part % parts) * part_size
        end = tl.minimum(begin + part_size, (lane.to(tl.int64) + 1) * S)
        first = lane * parts
    else:
        lane = tl.load(lane_of + part)
        begin = part.to(tl.int64) * part_size
        end = begin + part_size
        first = tl.load(ptr + lane)
        parts = tl.load(ptr + lane + 1) - first
    return lane, begin, end, first, parts


@triton.jit
def counted(value, count, weight, mean, square):
    """Let the moments of every place of a tile follow one more row, ``count`` times (Welford)."""
    weight += count
    step = value - mean
    mean += step * (count / tl.where(weight > 0, weight, 1.0))[:, None]
    square += count[:, None] * step * (value - mean)
    return weight, mean, square


@triton.jit
def keep_moments(weights, means, squares, part, weight, mean, square, f, inside, F):
    """Store total weight, mean and sum of squared deviations of all places of a part."""
    total = tl.sum(weight, 0)
    centre = tl.sum(mean * weight[:, None], 0) / tl.where(total > 0, total, 1.0)
    offset = mean - centre[None, :]
    square += offset * offset * weight[:, None]
    tl.store(weights + part, total)
    tl.store(means + part * F + f, centre, mask=inside)
    tl.store(squares + part * F + f, tl.sum(square, 0), mask=inside)


@triton.jit
def _moments_kernel(
    x, nodes, weights, means, squares, lane_of, ptr, S, F, part_size, parts,
    ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Total weight, mean and sum of squared deviations of one part of a lane's rows."""
    part = tl.program_id(0)
    _, begin, end, _, _ = place_of(lane_of, ptr, S, part_size, parts)
    f = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = f < F
    # Every place of a tile has moments of its own: threads meet once, at the end.
    weight = tl.zeros([TILE], ACC)
    mean = tl.zeros([TILE, BLOCK], ACC)
    square = tl.zeros([TILE, BLOCK], ACC)
    for first in tl.range(begin, end, TILE, num_stages=STAGES):
        row = first + tl.arange(0, TILE)
        live = row < end
        place = row[:, None] * F + f[None, :]
        value = tl.load(x + place, mask=live[:, None] & inside[None, :], other=0).to(ACC)
        count = tl.load(nodes + row, mask=live, other=0).to(ACC)
        weight, mean, square = counted(value, count, weight, mean, square)
    keep_moments(weights, means, squares, part, weight, mean, square, f, inside, F)


@triton.jit
def combined(weights, means, squares, first, parts, f, inside, F, PARTS: tl.constexpr):
    """Total weight, mean and variance of a lane from those of its parts."""
    p = tl.arange(0, PARTS)
    there = p < parts
    weight = tl.load(weights + first + p, mask=there, other=0)
    place = (first + p)[:, None] * F + f[None, :]
    mask = there[:, None] & inside[None, :]
    part_mean = tl.load(means + place, mask=mask, other=0)
    total = tl.sum(weight, 0)
    safe = tl.where(total > 0, total, 1.0)
    mean = tl.sum(part_mean * weight[:, None], 0) / safe
    offset = tl.where(mask, part_mean - mean[None, :], 0.0)
    square = tl.load(squares + place, mask=mask, other=0) + offset * offset * weight[:, None]
    return total, mean, tl.sum(square, 0) / safe


@triton.jit
def keep_statistics(
    total, mean, var, added, mean_out, var_out, total_out,
    running_mean, running_var, tracked, momentum: tl.constexpr, lane, own, inside,
):  # fmt: skip
    """Store a lane's statistics, and let the running ones follow them."""
    tl.store(mean_out + own, mean, mask=inside)
    tl.store(var_out + own, var, mask=inside)
    if tl.program_id(1) == 0:
        tl.store(total_out + lane, total)
        tl.store(tracked + lane, tl.load(tracked + lane) + tl.where(total > 0, 1, 0))
    rate = (total > 0).to(total.dtype) * momentum
    old = tl.load(running_mean + own, mask=inside, other=0)
    tl.store(running_mean + own, old + rate * (mean + added - old), mask=inside)
    old = tl.load(running_var + own, mask=inside, other=0)
    unbiased = var * (total / tl.maximum(total - 1, 1.0))
    tl.store(running_var + own, old + rate * (unbiased - old), mask=inside)


@triton.jit
def _apply_kernel(
    x, out, weights, means, squares, mean_out, var_out, total_out, scale, shift, offset,
    running_mean, running_var, tracked, lane_of, ptr, S, F, part_size, parts,
    eps: tl.constexpr, momentum: tl.constexpr, TRAIN: tl.constexpr, RELU: tl.constexpr,
    TILE: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Normalise one part of a lane's rows; the lane's first program keeps the statistics."""
    part = tl.program_id(0)
    lane, begin, end, first_part, parts = place_of(lane_of, ptr, S, part_size, parts)
    f = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = f < F
    own = lane * F + f
    added = tl.zeros([BLOCK], scale.dtype.element_ty)
    if offset is not None:
        added = tl.load(offset + own, mask=inside, other=0)
    if TRAIN:
        total, mean, var = combined(weights, means, squares, first_part, parts, f, inside, F, PARTS)
        if part == first_part:
            keep_statistics(
                total, mean, var, added, mean_out, var_out, total_out,
                running_mean, running_var, tracked, momentum, lane, own, inside,
            )  # fmt: skip
    else:
        mean = tl.load(running_mean + own, mask=inside, other=0) - added
        var = tl.load(running_var + own, mask=inside, other=0)
    slope = tl.load(scale + own, mask=inside, other=0) / tl.sqrt(var + eps)
    level = tl.load(shift + own, mask=inside, other=0)
    for first in tl.range(begin, end, TILE, num_stages=STAGES):
        row = first + tl.arange(0, TILE)
        place = row[:, None] * F + f[None, :]
        mask = (row < end)[:, None] & inside[None, :]
        value = tl.load(x + place, mask=mask, other=0).to(slope.dtype)
        value = (value - mean[None, :]) * slope[None, :] + level[None, :]
        if RELU:
            value = tl.maximum(value, 0.0, propagate_nan=tl.PropagateNan.ALL)
        tl.store(out + place, value, mask=mask)


@triton.jit
def gradient(
    grad, x, place, mask, mean, inverse, slope, level, RELU: tl.constexpr
):  # fmt: skip
    """Gradient before the ReLU, and normalised rows."""
    g = tl.load(grad + place, mask=mask, other=0).to(mean.dtype)
    centred = tl.load(x + place, mask=mask, other=0).to(mean.dtype) - mean[None, :]
    if RELU:
        g = tl.where(centred * slope[None, :] + level[None, :] > 0, g, 0.0)
    return g, tl.where(mask, centred * inverse[None, :], 0.0)


@triton.jit
def _sums_kernel(
    grad, x, mean, var, scale, shift, sums, along, lane_of, ptr, S, F, part_size, parts,
    eps: tl.constexpr,
    ACC: tl.constexpr, RELU: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Sum of the gradient, and of gradient times normalised rows, over one part."""
    part = tl.program_id(0)
    lane, begin, end, _, _ = place_of(lane_of, ptr, S, part_size, parts)
    f = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = f < F
    own = lane * F + f
    center = tl.load(mean + own, mask=inside, other=0)
    inverse = 1.0 / tl.sqrt(tl.load(var + own, mask=inside, other=0) + eps)
    slope = tl.load(scale + own, mask=inside, other=0) * inverse
    level = tl.load(shift + own, mask=inside, other=0)
    total = tl.zeros([TILE, BLOCK], ACC)
    product = tl.zeros([TILE, BLOCK], ACC)
    for first in tl.range(begin, end, TILE, num_stages=STAGES):
        row = first + tl.arange(0, TILE)
        place = row[:, None] * F + f[None, :]
        mask = (row < end)[:, None] & inside[None, :]
        g, normal = gradient(grad, x, place, mask, center, inverse, slope, level, RELU)
        total += g
        product += g * normal
    number = part * F + f
    tl.store(sums + number, tl.sum(total, 0), mask=inside)
    tl.store(along + number, tl.sum(product, 0), mask=inside)


@triton.jit
def totals(sums, along, first, parts, f, inside, F, PARTS: tl.constexpr):
    """Return the sums of a lane from those of its parts."""
    p = tl.arange(0, PARTS)
    there = (p < parts)[:, None] & inside[None, :]
    number = (first + p)[:, None] * F + f[None, :]
    total = tl.sum(tl.load(sums + number, mask=there, other=0), 0)
    return total, tl.sum(tl.load(along + number, mask=there, other=0), 0)


@triton.jit
def _pull_kernel(
    grad, x, nodes, total, mean, var, scale, shift, sums, along, grad_x, grad_scale, grad_shift,
    lane_of, ptr, S, F, part_size, parts, eps: tl.constexpr,
    RELU: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """Gradient by one part of the rows; the lane's first program keeps those by the weights."""
    part = tl.program_id(0)
    lane, begin, end, first_part, parts = place_of(lane_of, ptr, S, part_size, parts)
    f = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = f < F
    own = lane * F + f
    all_sums, all_along = totals(sums, along, first_part, parts, f, inside, F, PARTS)
    if part == first_part:
        tl.store(grad_shift + own, all_sums, mask=inside)
        tl.store(grad_scale + own, all_along, mask=inside)
    center = tl.load(mean + own, mask=inside, other=0)
    inverse = 1.0 / tl.sqrt(tl.load(var + own, mask=inside, other=0) + eps)
    slope = tl.load(scale + own, mask=inside, other=0) * inverse
    level = tl.load(shift + own, mask=inside, other=0)
    weight = tl.load(total + lane)
    safe = tl.where(weight > 0, weight, 1.0)
    for first in tl.range(begin, end, TILE, num_stages=STAGES):
        row = first + tl.arange(0, TILE)
        live = row < end
        place = row[:, None] * F + f[None, :]
        mask = live[:, None] & inside[None, :]
        g, normal = gradient(grad, x, place, mask, center, inverse, slope, level, RELU)
        share = tl.load(nodes + row, mask=live, other=0).to(slope.dtype) / safe
        pull = share[:, None] * (all_sums[None, :] + normal * all_along[None, :])
        tl.store(grad_x + place, slope[None, :] * (g - pull), mask=mask)


class Parts(NamedTuple):
    """How rows divide into parts: of lanes that have as many rows each, or blocks."""

    lane: Tensor | None  # of each part; None: as many parts for each lane
    ptr: Tensor | None  # [L + 1], the first part of each lane
    rows: int  # of a lane, where all have as many
    size: int  # rows of a part
    most: int  # parts of a lane
    count: int  # parts in all
    lanes: int

    @property
    def room(self) -> int:
        """For how many parts of a lane kernels are compiled: one of few numbers."""
        return max(32, power_of_2(self.most))

    def layout(
        self, x: Tensor, tile: int = _TILE
    ) -> tuple[tuple[int, int], tuple[Any, ...], dict[str, int]]:
        """Return the grid, what kernels are told of the parts, and the shape of a tile of rows."""
        width = x.shape[1]
        block = min(32, power_of_2(width))  # with half the columns a GPU has twice the programs
        shape = {"TILE": min(tile, self.size), "STAGES": 1, "num_warps": 4}
        if x.dtype.itemsize == 2:  # … but reads half types in whole rows, ahead of their turn
            block = min(64, power_of_2(width))
            shape = {"TILE": min(32, self.size), "STAGES": 4, "num_warps": 2}
        told = (self.lane, self.ptr, self.rows, width, self.size, self.most)
        return (self.count, ceil_div(width, block)), told, shape | {"BLOCK": block}


def parts_of(rows: int, lanes: int, blocks: LaneRows | None) -> Parts:
    """Divide ``rows`` of some lanes into parts."""
    if blocks is not None and blocks.lane is not None:
        size = rows // len(blocks.lane)
        return Parts(blocks.lane, blocks.ptr, 0, size, blocks.most, len(blocks.lane), lanes)
    own = rows // lanes
    size = max(1, ceil_div(ceil_div(own, _TILE), _PARTS)) * _TILE
    most = max(1, ceil_div(own, size))
    return Parts(None, None, own, size, most, most * lanes, lanes)


def train(
    x: Tensor, nodes: Tensor, scale: Tensor, shift: Tensor, offset: Tensor | None,
    running: tuple[Tensor, Tensor, Tensor], eps: float, momentum: float, relu: bool, parts: Parts,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Normalise rows ``[R, F]`` by their own statistics, which the running ones follow.

    Returns:
        The rows, then mean ``[L, F]``, variance ``[L, F]`` and total weight ``[L]``.
    """
    mean, var = torch.empty_like(scale), torch.empty_like(scale)
    seen = (mean, var, scale.new_empty(parts.lanes))
    of_parts = moments(x, nodes, scale, parts)
    settings = (offset, running, eps, momentum, relu, parts)
    return normalise(x, of_parts, seen, scale, shift, *settings), *seen


def moments(x: Tensor, nodes: Tensor, scale: Tensor, parts: Parts) -> tuple[Tensor, ...]:
    """Return total weight ``[P]``, mean and sum of squared deviations ``[P, F]`` of all parts."""
    grid, told, shape = parts.layout(x, _TRAINED)
    weights = scale.new_empty(parts.count)
    means, squares = scale.new_empty(2, parts.count, x.shape[1]).unbind(0)
    with on_device_of(x):
        _moments_kernel[grid](x, nodes, weights, means, squares, *told, ACC=TYPES[x.dtype], **shape)
    return weights, means, squares


def normalise(
    x: Tensor, of_parts: Sequence[Tensor], seen: Sequence[Tensor], scale: Tensor, shift: Tensor,
    offset: Tensor | None, running: tuple[Tensor, Tensor, Tensor],
    eps: float, momentum: float, relu: bool, parts: Parts,
) -> Tensor:  # fmt: skip
    """Normalise rows by the moments of their parts; mean, variance and total go into ``seen``."""
    grid, told, shape = parts.layout(x, _TRAINED)
    out = torch.empty_like(x)
    with on_device_of(x):
        _apply_kernel[grid](
            x, out, *of_parts, *seen, scale, shift, offset, *running,
            *told, eps, momentum, TRAIN=True, RELU=relu, PARTS=parts.room, **shape,
        )  # fmt: skip
    return out


def judge(
    x: Tensor, scale: Tensor, shift: Tensor, offset: Tensor | None,
    running_mean: Tensor, running_var: Tensor, eps: float, relu: bool, parts: Parts,
) -> Tensor:  # fmt: skip
    """Normalise rows ``[R, F]`` by the running statistics."""
    grid, told, shape = parts.layout(x)
    out = torch.empty_like(x)
    with on_device_of(x):
        _apply_kernel[grid](
            x, out, None, None, None, None, None, None, scale, shift, offset,
            running_mean, running_var, None, *told, eps, 0.0,
            TRAIN=False, RELU=relu, PARTS=1, **shape,
        )  # fmt: skip
    return out


def gradients(
    grad: Tensor, x: Tensor, nodes: Tensor, scale: Tensor, shift: Tensor,
    mean: Tensor, var: Tensor, total: Tensor, eps: float, relu: bool, parts: Parts,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients by rows ``[R, F]``, scale and shift ``[L, F]``."""
    sums = part_sums(grad, x, mean, var, scale, shift, eps, relu, parts)
    return pull(grad, x, nodes, scale, shift, mean, var, total, *sums, eps, relu, parts)


def part_sums(
    grad: Tensor, x: Tensor, mean: Tensor, var: Tensor, scale: Tensor, shift: Tensor,
    eps: float, relu: bool, parts: Parts,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return sums of the gradient, and of gradient times normalised rows, of all parts."""
    grid, told, shape = parts.layout(x)
    sums, along = scale.new_empty(2, parts.count, x.shape[1]).unbind(0)
    with on_device_of(x):
        _sums_kernel[grid](
            grad, x, mean, var, scale, shift, sums, along, *told, eps,
            ACC=TYPES[x.dtype], RELU=relu, **shape,
        )  # fmt: skip
    return sums, along


def pull(
    grad: Tensor, x: Tensor, nodes: Tensor, scale: Tensor, shift: Tensor,
    mean: Tensor, var: Tensor, total: Tensor, sums: Tensor, along: Tensor,
    eps: float, relu: bool, parts: Parts,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients by rows, scale and shift, from the sums of all parts."""
    grid, told, shape = parts.layout(x)
    grad_x, grad_scale, grad_shift = (torch.empty_like(t) for t in (x, mean, mean))
    with on_device_of(x):
        _pull_kernel[grid](
            grad, x, nodes, total, mean, var, scale, shift, sums, along,
            grad_x, grad_scale, grad_shift, *told, eps,
            RELU=relu, PARTS=parts.room, **shape,
        )  # fmt: skip
    return grad_x, grad_scale, grad_shift
