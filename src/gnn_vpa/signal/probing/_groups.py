"""Rows that belong together: nodes of a like degree, nodes of graphs of a like size."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Unit = Literal["node", "edge", "graph"]

#: Group ``k`` holds the numbers from ``2^(k-1)`` to ``2^k - 1``; group 0 holds the 0.
NUM_GROUPS = 33


class Groups(NamedTuple):
    """What the rows of a tensor stand for, and the groups of each.

    Attributes:
        unit: What a row is.
        labels: ``[rows]``, the group of the degree times ``NUM_GROUPS`` plus that of the size; 0 in
            the place of either that is not known.
        by_degree: Whether degrees are known.
        by_size: Whether sizes are.
    """

    unit: Unit
    labels: Tensor
    by_degree: bool
    by_size: bool

    @classmethod
    def of(cls, unit: Unit, degree: Tensor | None, size: Tensor | None) -> Groups:
        """Make groups of the degrees of rows, the sizes of their graphs, or both."""
        parts = [None if numbers is None else group_of(numbers) for numbers in (degree, size)]
        by_degree, by_size = parts[0], parts[1]
        if by_degree is None:
            assert by_size is not None
            return cls(unit, by_size, False, True)
        labels = by_degree * NUM_GROUPS
        labels = labels if by_size is None else labels + by_size
        return cls(unit, labels, True, by_size is not None)


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
