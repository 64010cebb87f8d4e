"""From sums to statistics: of a whole tensor, and of its rows group by group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
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
        >>> import gnn_vpa
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


class Sums(NamedTuple):
    """The sums of a tensor, on its device until somebody asks: nothing waits for them."""

    whole: Tensor  # [6]: numbers, finite ones, their sum, square, largest, zeros
    shift: Tensor  # []
    degree: Tensor | None  # [4, NUM_GROUPS]: rows, finite numbers, their sum, square
    size: Tensor | None

    @classmethod
    def of(cls, rows: Rows, groups: Groups | None) -> Sums:
        """Add rows up, all together and group by group."""
        count, total, square, largest, zeros = rows[:5]
        parts = torch.stack([count.sum(), total.sum(), square.sum(), zeros.sum()])
        copies = count.new_ones(len(count)) if rows.times is None else rows.times.to(count)
        numbers = (copies.sum() * (count.shape[1] * rows.width)).view(1)
        top = largest.max() if largest.numel() else parts.new_zeros(())
        whole = torch.cat([numbers, parts[:3], top.view(1), parts[3:]])
        if groups is None:
            return cls(whole, rows.shift, None, None)
        columns = [part.sum(1) for part in (count, total, square)]
        table = torch.stack([copies, *columns])
        return cls(whole, rows.shift, *_by(groups, table))

    def statistics(self) -> Statistics:
        """Compute the statistics of the whole tensor."""
        numbers, count, total, square, largest, zeros = self.whole.tolist()
        mean, variance, rms = _moments(count, total, square, self.shift.item())
        largest = largest if count else math.nan
        share = zeros / numbers if numbers else math.nan
        return Statistics(int(numbers), mean, variance, rms, largest, share, int(numbers - count))

    def groups(self, by: str) -> tuple[Group, ...]:
        """Compute the statistics of each group that has rows, ``by`` degree or size."""
        table = self.degree if by == "degree" else self.size
        if table is None:
            return ()
        shift = self.shift.item()
        _, count, total, square, *_ = self.whole.tolist()
        middle = total / count if count else 0.0
        whole = square - middle * total
        found = []
        for group, (rows, count, total, square) in enumerate(table.T.tolist()):
            if rows > 0:
                spread = square - 2 * middle * total + count * middle**2
                share = spread / whole if whole > 0 else math.nan
                moments = _moments(count, total, square, shift)
                found.append(Group(*bounds(group), int(rows), *moments, share))
        return tuple(found)


def _by(groups: Groups, table: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Add the columns of ``table [4, rows]`` up by degree, and by size: ``[4, NUM_GROUPS]``."""
    if groups.degree is None or groups.size is None:
        parts = (None if g is None else _added(g, table, NUM_GROUPS) for g in groups[1:])
        return next(parts), next(parts)
    both = _added(groups.degree * NUM_GROUPS + groups.size, table, NUM_GROUPS**2)
    both = both.view(-1, NUM_GROUPS, NUM_GROUPS)
    return both.sum(2), both.sum(1)


def _added(group: Tensor, table: Tensor, count: int) -> Tensor:
    return table.new_zeros(len(table), count).scatter_add_(1, group.expand_as(table), table)


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
