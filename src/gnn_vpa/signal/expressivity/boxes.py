"""Count overlapping boxes: pairs of outputs that are equal as far as rounding lets one see."""

from collections.abc import Iterator

import torch
from torch import Tensor

from .quotient import pairs_among

_AT_ONCE = 1 << 21  # pairs looked at together: 16 MiB for each list of them


def overlapping_pairs(low: Tensor, high: Tensor, times: Tensor) -> int:
    """Count the pairs of boxes ``[low, high]`` that overlap in all coordinates.

    Args:
        low: Lower corners, ``[C, W]``.
        high: Upper corners, ``[C, W]``, none below its ``low``.
        times: How many boxes each one stands for, ``[C]``; these are not counted as pairs.

    Example:
        >>> low = torch.tensor([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]])
        >>> overlapping_pairs(low, low + 2, torch.tensor([1, 1, 10]))
        1
    """
    if len(low) < 2:
        return 0
    followers, columns = _columns(low, high)
    order = low[:, columns[0]].argsort()
    low, high, times = low[order][:, columns], high[order][:, columns], times[order]
    island, together = _islands(low, high)
    total = sum(pairs_among(times[island == number]) for number in together.tolist())
    followers = followers.masked_fill(torch.isin(island, together), 0)
    for left, right in _candidates(followers):
        total += _overlapping_among(low, high, times, left, right)
    return total


def _columns(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Order the coordinates, those first in which fewest intervals overlap.

    Returns:
        For the first of them, with boxes in the order of their lower ends: how many boxes that
        come after each one overlap with it, ``[C]``; and the order, ``[W]``.
    """
    begin, order = low.T.contiguous().sort(dim=1)
    end = high.T.gather(1, order).contiguous()
    after = torch.searchsorted(begin, end, right=True) - torch.arange(1, len(low) + 1)
    columns = after.sum(1).argsort()
    return after[columns[0]], columns


def _islands(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Part boxes, in the order of their lower ends, where the first coordinate has a gap.

    Returns:
        The island of each box, ``[C]``, and those islands whose boxes all share a point, which is
        so if and only if every two of them overlap (Helly's theorem for boxes).
    """
    reach = high[:, 0].cummax(0).values
    fresh = torch.ones(len(low), dtype=torch.int64)
    fresh[1:] = low[1:, 0] > reach[:-1]
    island = fresh.cumsum(0) - 1
    index, shape = island.unsqueeze(1).expand_as(low), (int(island[-1]) + 1, low.shape[1])
    top = low.new_full(shape, -torch.inf).scatter_reduce_(0, index, low, "amax")
    bottom = low.new_full(shape, torch.inf).scatter_reduce_(0, index, high, "amin")
    return island, (top <= bottom).all(1).nonzero().flatten()


def _candidates(followers: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield pairs (i, j): each i with as many boxes right after it, not too many at once."""
    end = followers.cumsum(0)
    first, total = 0, int(end[-1])
    while first < len(followers) and total > 0:
        begin = int(end[first] - followers[first])
        last = int(torch.searchsorted(end, begin + _AT_ONCE, right=True))
        last = max(last, first + 1)
        left = torch.repeat_interleave(torch.arange(first, last), followers[first:last])
        place = torch.arange(begin, begin + len(left)) - (end - followers)[left]
        yield left, left + 1 + place
        first = last


def _overlapping_among(
    low: Tensor, high: Tensor, times: Tensor, left: Tensor, right: Tensor
) -> int:
    for column in range(1, low.shape[1]):
        begin, end = low[:, column], high[:, column]
        kept = (begin[left] <= end[right]) & (begin[right] <= end[left])
        left, right = left[kept], right[kept]
    return int((times[left] * times[right]).sum())
