"""Counting overlapping boxes, against looking at every pair."""

from itertools import combinations

import pytest
import torch
from torch import Tensor

from gnn_vpa.signal.expressivity import boxes
from gnn_vpa.signal.expressivity.boxes import overlapping_pairs


def _by_pairs(low: Tensor, high: Tensor, times: Tensor) -> int:
    return sum(
        int(times[i] * times[j])
        for i, j in combinations(range(len(low)), 2)
        if bool(((low[i] <= high[j]) & (low[j] <= high[i])).all())
    )


@pytest.mark.parametrize("side", [0.0, 0.02, 0.3, 2.0])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_random_boxes(side: float, width: int, generator: torch.Generator) -> None:
    low = torch.rand(60, width, generator=generator).round(decimals=2)
    high = low + side * torch.rand(60, width, generator=generator)
    times = torch.randint(1, 5, (60,), generator=generator)
    assert overlapping_pairs(low, high, times) == _by_pairs(low, high, times)


def test_clusters_of_which_some_share_a_point(generator: torch.Generator) -> None:
    place = torch.arange(6.0).repeat_interleave(10).unsqueeze(1).expand(-1, 3)
    loose = (torch.arange(6) % 2 * 0.2).repeat_interleave(10).unsqueeze(1)
    low = place + loose * torch.rand(60, 3, generator=generator)
    shuffled = torch.randperm(60, generator=generator)
    low, times = low[shuffled], torch.arange(60)
    assert overlapping_pairs(low, low + 0.05, times) == _by_pairs(low, low + 0.05, times)


def test_few_pairs_at_a_time_are_as_good_as_many(
    monkeypatch: pytest.MonkeyPatch, generator: torch.Generator
) -> None:
    low, times = torch.rand(50, 3, generator=generator), torch.ones(50, dtype=torch.int64)
    expected = overlapping_pairs(low, low + 0.3, times)
    monkeypatch.setattr(boxes, "_AT_ONCE", 7)
    assert overlapping_pairs(low, low + 0.3, times) == expected > 0


def test_a_box_without_bounds_overlaps_with_all() -> None:
    low, high = torch.arange(4.0).unsqueeze(1), torch.arange(4.0).unsqueeze(1)
    low[2], high[2] = -torch.inf, torch.inf
    assert overlapping_pairs(low, high, torch.tensor([1, 2, 10, 3])) == 10 * (1 + 2 + 3)


@pytest.mark.parametrize("count", [0, 1])
def test_there_is_no_pair_of_fewer_than_two(count: int) -> None:
    corner = torch.zeros(count, 3)
    assert overlapping_pairs(corner, corner, torch.full((count,), 5)) == 0
