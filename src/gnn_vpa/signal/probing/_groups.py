"""Rows that belong together: nodes of a like degree, nodes of graphs of a like size."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Unit = Literal["node", "edge", "graph"]

#: Group ``k`` holds the numbers from ``2^(k-1)`` to ``2^k - 1``; group 0 holds the 0.
NUM_GROUPS = 33


class Groups(NamedTuple):
    """What the rows of a tensor stand for, and the group of each, ``[rows]``."""

    unit: Unit
    degree: Tensor | None = None
    size: Tensor | None = None

    def taken(self, index: Tensor, unit: Unit) -> Groups:
        """Return the groups of rows that are each made from one of these."""
        parts = (None if part is None else part[index] for part in (self.degree, self.size))
        return Groups(unit, *parts)


def group_of(numbers: Tensor) -> Tensor:
    """Return the group of each of some numbers, which are not negative.

    Example:
        >>> group_of(torch.tensor([0, 1, 2, 3, 4, 63, 64]))
        tensor([0, 1, 2, 2, 3, 6, 7])
    """
    powers = 2 ** torch.arange(NUM_GROUPS - 1, device=numbers.device)
    return torch.bucketize(numbers, powers.to(numbers.dtype), right=True)


def bounds(group: int) -> tuple[int, int]:
    """Return the smallest and the largest number of a group.

    Example:
        >>> [bounds(group) for group in range(4)]
        [(0, 0), (1, 1), (2, 3), (4, 7)]
    """
    return (2 ** (group - 1), 2**group - 1) if group > 0 else (0, 0)
