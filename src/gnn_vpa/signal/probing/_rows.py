"""Sums over each row of a tensor: all that the statistics are made of, in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

_BLOCK = 1 << 18  # numbers at a time: their copies in float64 stay in a core's cache
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
    """

    finite: Tensor
    total: Tensor
    square: Tensor
    largest: Tensor
    zeros: Tensor
    shift: Tensor
    width: int

    def taken(self, index: Tensor, weight: Tensor | None) -> Rows:
        """Return the rows of ``weight_e * x[index_e]``, without making that tensor.

        Args:
            index: ``[E]``, which row each new one is made from.
            weight: ``[E, heads or 1]``; None: 1.
        """
        count, total, square, largest, zeros = (part[index] for part in self[:5])
        if weight is None:
            return Rows(count, total, square, largest, zeros, self.shift, self.width)
        weight = weight.detach().double()
        square = square + self.shift * (2 * total + count * self.shift)
        total = total + count * self.shift
        return Rows(
            count.expand_as(weight * count),
            weight * total,
            weight**2 * square,
            weight.abs() * largest,
            torch.where(weight == 0, count, zeros),
            torch.zeros_like(self.shift),
            self.width,
        )


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
        summing.run(x)
        # To ask an accelerator would be to wait for it.
        if not x.is_cpu or not bool(summing.largest.isfinite().all()):
            summing.run_again(x)
    (finite, total, square), (largest, zeros) = summing.wide, summing.narrow.double()
    return Rows(finite, total, square, largest, zeros, summing.shift, width)


class _Summing:
    """The sums, and room for a block of rows that is used again for each.

    Fresh memory for each block would cost more than the sums do.
    """

    def __init__(self, x: Tensor, heads: int, width: int) -> None:
        numbers = max(1, width * heads)
        self._step = max(1, (_BLOCK if x.is_cpu else _DEVICE_BLOCK) // numbers)
        some = x[: max(1, _SAMPLE // numbers)]
        self.shift = some.mean(dtype=torch.float64).nan_to_num(0.0, 0.0, 0.0)
        self.wide = x.new_zeros(3, len(x), heads, dtype=torch.float64)
        narrow = torch.float64 if x.dtype == torch.float64 else torch.float32
        self.narrow = x.new_zeros(2, len(x), heads, dtype=narrow)
        shape = (min(self._step, len(x)), heads, width)
        self._wide_room = x.new_empty(shape, dtype=torch.float64)
        self._narrow_room = x.new_empty(shape, dtype=narrow)

    @property
    def largest(self) -> Tensor:
        return self.narrow[0]

    def run(self, x: Tensor) -> None:
        """Sum up numbers that are all finite."""
        for rows in self._blocks(x):
            self._sum_up(x[rows], rows)

    def run_again(self, x: Tensor) -> None:
        """Sum up without the numbers that are not finite."""
        (count, total, square), (_, zeros) = self.wide, self.narrow
        for rows in self._blocks(x):
            finite = x[rows].isfinite()
            self._sum_up(x[rows].where(finite, 0), rows)
            left_out = (~finite).reshape(len(finite), *self._wide_room.shape[1:]).sum(-1)
            count[rows] -= left_out
            total[rows] += left_out * self.shift
            square[rows] -= left_out * self.shift.square()
            zeros[rows] -= left_out

    def _blocks(self, x: Tensor) -> Iterator[slice]:
        return (slice(start, start + self._step) for start in range(0, len(x), self._step))

    def _sum_up(self, x: Tensor, rows: slice) -> None:
        wide, narrow = self._wide_room[: len(x)], self._narrow_room[: len(x)]
        x = x.reshape(wide.shape)
        (count, total, square), (largest, zeros) = self.wide[:, rows], self.narrow[:, rows]
        count.fill_(wide.shape[-1])
        wide.copy_(x).sub_(self.shift)
        torch.sum(wide, -1, out=total)
        torch.linalg.vector_norm(wide, dim=-1, out=square)
        square.square_()
        narrow.copy_(x).abs_()
        torch.amax(narrow, -1, out=largest)
        torch.sum(narrow.eq_(0), -1, out=zeros)
