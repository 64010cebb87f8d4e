"""From sums to statistics: of a whole tensor, and of its rows group by group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ._groups import NUM_GROUPS, Groups, bounds
from ._rows import Rows

_ROUNDING = 1e-28  # what float64 makes of the variance of equal numbers, relative to their square


@dataclass(frozen=True)
class Statistics:
    """What the numbers of one tensor are like; those that are not finite are only counted.

    Attributes:
        count: How many numbers there are.
        mean: Their mean.
        variance: Their variance, ``E[x^2] - E[x]^2``.
        rms: The root of their mean square.
        largest: Their largest magnitude.
        zeros: The share that is exactly 0.
        nonfinite: How many are NaN or infinite.

    Example:
        >>> import gnn_vpa, torch
        >>> report = gnn_vpa.probe(torch.nn.Linear(2, 1, bias=False), torch.tensor([[3.0, 4.0]]))
        >>> report.steps[0].forward.mean, round(report.steps[0].forward.variance, 9)
        (3.5, 0.25)
    """

    count: int
    mean: float
    variance: float
    rms: float
    largest: float
    zeros: float
    nonfinite: int


@dataclass(frozen=True)
class Group:
    """The rows whose degree, or whose graph's size, lies between two numbers.

    Attributes:
        low: The smallest of them.
        high: The largest.
        rows: How many rows there are.
        mean: Mean of their numbers.
        variance: Variance of their numbers, around that mean.
        rms: Root of their mean square.
        share: Their share in the variance of the whole tensor, from 0 to 1.

    Example:
        >>> print(Group(low=4, high=7, rows=10, mean=0.0, variance=2.0, rms=1.4, share=0.5))
        4–7
    """

    low: int
    high: int
    rows: int
    mean: float
    variance: float
    rms: float
    share: float

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low}\N{EN DASH}{self.high}"


class Tally(NamedTuple):
    """The sums of a tensor as plain numbers.

    Attributes:
        whole: How many numbers there are and how many are finite, the sum of ``x - shift`` and that
            of its squares, and how many numbers are 0.
        largest: The largest magnitude.
        shift: As above.
        width: How many numbers a row has.
        degree: The same five sums for each group of degrees that has rows; None if unknown.
        size: The same for each group of sizes.
    """

    whole: tuple[float, ...]
    largest: float
    shift: float
    width: int
    degree: dict[int, tuple[float, ...]] | None
    size: dict[int, tuple[float, ...]] | None

    def statistics(self) -> Statistics:
        """Compute the statistics of the whole tensor."""
        numbers, finite, total, square, zeros = self.whole
        moments = _moments(finite, total, square, self.shift)
        largest = self.largest if finite else math.nan
        share = zeros / numbers if numbers else math.nan
        return Statistics(int(numbers), *moments, largest, share, int(numbers - finite))

    def groups(self, by: str) -> tuple[Group, ...]:
        """Compute the statistics of each group that has rows, ``by`` degree or size."""
        _, count, total, square, _ = self.whole
        middle = total / count if count else 0.0
        whole = square - middle * total
        found = []
        for group, sums in ((self.degree if by == "degree" else self.size) or {}).items():
            numbers, count, total, square, _ = sums
            spread = square - 2 * middle * total + count * middle**2
            share = spread / whole if whole > 0 else math.nan
            moments = _moments(count, total, square, self.shift)
            found.append(Group(*bounds(group), int(numbers / self.width), *moments, share))
        return tuple(found)


class Sums(NamedTuple):
    """A tally that may still be on its way from an accelerator: nothing waits for it."""

    whole: Tensor  # [5]
    largest: Tensor  # []
    shift: Tensor  # []
    width: int
    degree: Tensor | None  # [5, NUM_GROUPS]
    size: Tensor | None

    @classmethod
    def of(cls, rows: Rows, groups: Groups | None) -> Sums | Tally:
        """Add rows up, all together and group by group."""
        flat = rows.sums.squeeze(2) if rows.sums.shape[2] == 1 else rows.sums.sum(2)
        largest = rows.largest
        if largest.dim() > 0:
            largest = largest.max() if largest.numel() else largest.new_zeros(())
        degree = size = None
        if groups is not None:
            table = flat.new_zeros(5, NUM_GROUPS**2)
            table.scatter_add_(1, groups.labels.expand_as(flat), flat)
            table = table.view(5, NUM_GROUPS, NUM_GROUPS)
            degree = table.sum(2) if groups.by_degree else None
            size = table.sum(1) if groups.by_size else None
        sums = cls(flat.sum(1), largest, rows.shift, rows.width, degree, size)
        # Small tensors that outlive the large ones around them would tear holes into the heap.
        return sums.tally() if flat.is_cpu else sums

    def tally(self) -> Tally:
        """Wait for the numbers."""
        degree, size = (None if table is None else _by_group(table) for table in self[4:])
        whole = tuple(self.whole.tolist())
        return Tally(whole, self.largest.item(), self.shift.item(), self.width, degree, size)


def tally_of(sums: Sums | Tally) -> Tally:
    """Return the numbers, whether they are here or on their way."""
    return sums if isinstance(sums, Tally) else sums.tally()


def _by_group(table: Tensor) -> dict[int, tuple[float, ...]]:
    """Return the sums of each group that has rows."""
    present = table[0].nonzero().squeeze(1)
    return dict(zip(present.tolist(), map(tuple, table[:, present].T.tolist()), strict=True))


def _moments(count: float, total: float, square: float, shift: float) -> tuple[float, float, float]:
    """Return mean, variance and root mean square from sums around ``shift``."""
    if count == 0:
        return math.nan, math.nan, math.nan
    middle = total / count
    mean = middle + shift
    variance = square / count - middle**2
    if variance <= _ROUNDING * mean**2:
        variance = 0.0  # all numbers are the same
    return mean, variance, math.sqrt(variance + mean**2)
