"""Sums over each row of a tensor: all that the statistics are made of, in one pass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

_BLOCK = 1 << 19  # numbers at a time: 6 MiB of copies, and few calls
_DEVICE_BLOCK = 1 << 23  # on an accelerator: 64 MiB, few launches
_SAMPLE = 1 << 14  # numbers whose mean is near enough to that of all


class Rows(NamedTuple):
    """Sums over the numbers of each row, in float64.

    They are formed around ``shift``, a number in the midst of the values: around 0 a large mean
    would drown a small variance. Numbers that are not finite are only counted.

    Attributes:
        sums: ``[5, rows, heads]``: how many numbers there are, how many of them are finite, the sum
            of ``x - shift``, that of its squares, and how many numbers are 0.
        largest: The largest ``|x|``, ``[]``, or of each row, ``[rows, heads]``.
        shift: ``[]``.
        width: How many numbers a row has, all heads together.
    """

    sums: Tensor
    largest: Tensor
    shift: Tensor
    width: int

    def taken(self, index: Tensor) -> Rows:
        """Return the rows of ``x[index]``, without making that tensor."""
        return self._replace(sums=self.sums[:, index], largest=self.largest[index])

    def weighted(self, weight: Tensor) -> Rows:
        """Return the rows of ``weight * x``, with a weight ``[rows, heads or 1]`` for each."""
        weight = weight.detach().double()
        numbers, finite, total, square, zeros = self.sums
        square = square + self.shift * (2 * total + finite * self.shift)
        total = total + finite * self.shift
        zeros = torch.where(weight == 0, finite, zeros)
        sums = torch.stack([numbers, finite, weight * total, weight**2 * square, zeros])
        return Rows(sums, weight.abs() * self.largest, torch.zeros_like(self.shift), self.width)

    def repeated(self, times: Tensor) -> Rows:
        """Return the rows, each as often as ``times [rows]`` says."""
        often = times.unsqueeze(1)
        return self._replace(sums=self.sums * often, largest=self.largest.where(often > 0, 0))


class Room:
    """Memory for a block of rows, used again: fresh memory would cost as much as the sums do."""

    def __init__(self) -> None:
        self._kept: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def of(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return an uninitialised tensor, which lasts until the next one is asked for."""
        size = math.prod(shape)
        kept = self._kept.get((dtype, device))
        if kept is None or kept.numel() < size:
            kept = self._kept[dtype, device] = torch.empty(size, dtype=dtype, device=device)
        return kept[:size].view(shape)


def rows_of(x: Tensor, axis: int = 0, heads: int = 1, room: Room | None = None) -> Rows:
    """Sum up a tensor of real numbers by the rows along ``axis``.

    Args:
        x: Any shape; a single number is one row.
        axis: The axis of the rows.
        heads: Into how many parts to divide each row, as the axis after the rows does.
        room: Where to work; by default in memory of its own.
    """
    x = x.detach()
    x = x.unsqueeze(0) if x.dim() == 0 else x.movedim(axis, 0)
    width = x[:1].numel()
    shift = x[: max(1, _SAMPLE // max(1, width))].mean(dtype=torch.float64)
    shift = shift.nan_to_num(0.0, 0.0, 0.0)
    sums = x.new_zeros(5, len(x), heads, dtype=torch.float64)
    sums[:2] = width // heads
    if x.numel() == 0:
        return Rows(sums, torch.zeros_like(shift), shift, width)
    largest = _largest(x)
    # To ask an accelerator whether all is finite would be to wait for it.
    if not x.is_cpu or not math.isfinite(largest.item()):
        largest = _sum_up(x, shift, sums, room or Room(), all_finite=False)
    else:
        _sum_up(x, shift, sums, room or Room())
    return Rows(sums, largest, shift, width)


def largest_by_row(x: Tensor, heads: int = 1) -> Tensor:
    """Return the largest magnitude in each row, ``[rows, heads]``, of what is finite."""
    if x.numel() == 0:
        return x.new_zeros(len(x), heads, dtype=torch.float64)
    x = x.detach().reshape(len(x), heads, -1)
    largest = torch.maximum(-x.amin(-1), x.amax(-1))
    if not x.is_cpu or not bool(largest.isfinite().all()):
        largest = x.where(x.isfinite(), 0).abs().amax(-1)
    return largest.double()


def _largest(x: Tensor) -> Tensor:
    low, high = torch.aminmax(x)
    return torch.maximum(-low, high).double()


def _sum_up(
    x: Tensor, shift: Tensor, sums: Tensor, room: Room, *, all_finite: bool = True
) -> Tensor:
    """Write the sums, block by block; unless all is finite, return the largest of what is."""
    largest = torch.zeros_like(shift)
    for block, (_, finite, total, square, zeros) in _blocks(x, sums):
        wide = room.of(block.shape, torch.float64, x.device).copy_(block)
        flags = room.of(block.shape, torch.float32, x.device)
        zeros.copy_(torch.eq(block, 0, out=flags).sum(-1))
        if not all_finite:
            wide.nan_to_num_(0.0, 0.0, 0.0)
            largest = torch.maximum(largest, _largest(wide))
            broken = torch.eq(wide, 0, out=flags).sum(-1) - zeros
            finite -= broken
        torch.sum(wide.sub_(shift), -1, out=total)
        torch.linalg.vector_norm(wide, dim=-1, out=square)
        square.square_()
        if not all_finite:  # zeros stand in the place of what was left out
            total += broken * shift
            square -= broken * shift.square()
    return largest


def _blocks(x: Tensor, sums: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield blocks of rows ``[rows, heads, width]``, and the place of their sums."""
    rows, heads = sums.shape[1:]
    width = x.numel() // (rows * heads)
    step = min(rows, max(1, (_BLOCK if x.is_cpu else _DEVICE_BLOCK) // (heads * width)))
    for start in range(0, rows, step):
        block = x[start : start + step].reshape(-1, heads, width)
        yield block, sums[:, start : start + step]
