"""Sums over each row of a tensor: all that the statistics are made of, in one pass."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_BLOCK = 1 << 18  # numbers at a time, so that their copies stay in a core's cache
_SAMPLE = 1 << 14  # numbers whose mean is near enough to that of all
_DEVICE_BLOCK = 1 << 23  # on an accelerator: 64 MiB, few launches


class Rows(NamedTuple):
    """Sums over the ``width`` numbers of each row, ``[rows, heads]`` each, in float64.

    Sums of squares are formed around ``shift``, a number in the midst of the values: around 0 a
    large mean would drown a small variance. Numbers that are not finite are left out of all sums.

    Attributes:
        finite: How many numbers of the row are finite.
        total: Sum of ``x - shift``.
        square: Sum of ``(x - shift)^2``.
        largest: Largest ``|x|``.
        zeros: How many numbers are 0.
        shift: A number, ``[]``.
        width: Numbers in a row, finite or not.
        times: How many rows each stands for, ``[rows]``, counted in all sums; None: one.
    """

    finite: Tensor
    total: Tensor
    square: Tensor
    largest: Tensor
    zeros: Tensor
    shift: Tensor
    width: int
    times: Tensor | None = None

    def taken(self, index: Tensor) -> Rows:
        """Return the rows of ``x[index]``, without making that tensor."""
        finite, total, square, largest, zeros = (part[index] for part in self[:5])
        return Rows(finite, total, square, largest, zeros, self.shift, self.width)

    def weighted(self, weight: Tensor) -> Rows:
        """Return the rows of ``weight * x``, with a weight ``[rows, heads or 1]`` for each."""
        weight = weight.detach().double()
        finite, total, square, largest, zeros = self[:5]
        square = square + self.shift * (2 * total + finite * self.shift)
        total = total + finite * self.shift
        return Rows(
            finite.expand_as(weight * finite),
            weight * total,
            weight**2 * square,
            weight.abs() * largest,
            torch.where(weight == 0, finite, zeros),
            torch.zeros_like(self.shift),
            self.width,
        )

    def repeated(self, times: Tensor) -> Rows:
        """Return the rows, each as often as ``times [rows]`` says."""
        factor = times.unsqueeze(1)
        finite, total, square, zeros = (factor * part for part in (*self[:3], self.zeros))
        largest = torch.where(factor > 0, self.largest, 0)
        return Rows(finite, total, square, largest, zeros, self.shift, self.width, times)


def rows_of(x: Tensor, axis: int = 0, heads: int = 1) -> Rows:
    """Sum up a tensor of real numbers by the rows along ``axis``.

    Args:
        x: Any shape; a single number is one row.
        axis: The axis of the rows.
        heads: Into how many parts to divide each row, as the axis after the rows does.
    """
    x = x.detach()
    x = x.unsqueeze(0) if x.dim() == 0 else x.movedim(axis, 0)
    width = x[:1].numel() // (heads if len(x) else 1)
    summing = _Summing(x, heads, width)
    if width > 0:
        # To ask an accelerator whether all is finite would be to wait for it.
        if x.is_cpu:
            summing.run(x)
        if not x.is_cpu or not bool(summing.narrow[0].isfinite().all()):
            summing.run(x, all_finite=False)
    (finite, total, length), (largest, zeros) = summing.wide, summing.narrow.double()
    return Rows(finite, total, length.square_(), largest, zeros, summing.shift, width)


class _Summing:
    """The sums of a tensor's rows, and room for a block of rows that is used again for each.

    Fresh memory for each block would cost more than the sums do.
    """

    def __init__(self, x: Tensor, heads: int, width: int) -> None:
        numbers = max(1, width * heads)
        self._step = max(1, (_BLOCK if x.is_cpu else _DEVICE_BLOCK) // numbers)
        some = x[: max(1, _SAMPLE // numbers)]
        self.shift = some.mean(dtype=torch.float64).nan_to_num(0.0, 0.0, 0.0)
        dtype = torch.promote_types(x.dtype, torch.float32)
        self.wide = x.new_zeros(3, len(x), heads, dtype=torch.float64)  # finite, total, length
        self.narrow = x.new_zeros(2, len(x), heads, dtype=dtype)  # largest, zeros
        shape = (min(self._step, len(x)), heads, width)
        self._wide_room = x.new_empty(shape, dtype=torch.float64)
        self._narrow_room = x.new_empty(shape, dtype=dtype)

    def run(self, x: Tensor, *, all_finite: bool = True) -> None:
        """Sum up, block by block; numbers that are not finite are left out if there may be any."""
        for start in range(0, len(x), self._step):
            rows = slice(start, start + self._step)
            block = x[rows].reshape(-1, *self._wide_room.shape[1:])
            self._sum_up(block, None if all_finite else ~block.isfinite(), rows)

    def _sum_up(self, x: Tensor, broken: Tensor | None, rows: slice) -> None:
        (finite, total, length), (largest, zeros) = self.wide[:, rows], self.narrow[:, rows]
        finite.fill_(x.shape[-1])
        wide = self._wide_room[: len(x)].copy_(x).sub_(self.shift)
        narrow = self._narrow_room[: len(x)].copy_(x).abs_()
        if broken is not None:
            finite -= broken.sum(-1)
            wide.masked_fill_(broken, 0)
            narrow.masked_fill_(broken, 0)
        torch.sum(wide, -1, out=total)
        torch.linalg.vector_norm(wide, dim=-1, out=length)
        torch.amax(narrow, -1, out=largest)
        torch.sum(narrow.eq_(0), -1, out=zeros)
        if broken is not None:
            zeros -= broken.sum(-1)
