"""Statistics against those by hand in float64."""

import math

import pytest
import torch
from torch import Tensor

from gnn_vpa.signal.probing._groups import Groups, bounds, group_of
from gnn_vpa.signal.probing._rows import largest_by_row, rows_of
from gnn_vpa.signal.probing._statistics import Statistics, Sums, tally_of

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def statistics(x: Tensor, axis: int = 0) -> Statistics:
    return tally_of(Sums.of(rows_of(x, axis), None)).statistics()


def by_hand(x: Tensor) -> Statistics:
    wide = x.double().flatten()
    finite = wide[wide.isfinite()]
    return Statistics(
        count=wide.numel(),
        mean=finite.mean().item(),
        variance=finite.var(correction=0).item(),
        rms=finite.square().mean().sqrt().item(),
        largest=finite.abs().max().item(),
        zeros=(wide == 0).double().mean().item(),
        nonfinite=wide.numel() - finite.numel(),
    )


def assert_same(found: Statistics, expected: Statistics) -> None:
    for name, value in vars(expected).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-6, abs=1e-300), name


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "shape", [(5,), (1, 1), (1000, 3), (40, 2, 7), (3, 300_000), (300_000, 3)], ids=str
)
def test_they_equal_those_by_hand(
    shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator
) -> None:
    x = torch.randn(shape, generator=generator).relu().sub(0.3).clamp(min=0).to(dtype)
    assert_same(statistics(x), by_hand(x))


@pytest.mark.parametrize("mean", [1e3, -1e6, 1e7])
def test_a_large_mean_does_not_drown_a_small_variance(
    mean: float, generator: torch.Generator
) -> None:
    x = mean + torch.randn(500, 600, dtype=torch.float64, generator=generator)
    assert_same(statistics(x), by_hand(x))
    single = x.float()
    assert_same(statistics(single), by_hand(single))


def test_a_beginning_that_is_unlike_the_rest_does_no_harm(generator: torch.Generator) -> None:
    x = torch.randn(50_000, 20, dtype=torch.float64, generator=generator)
    x[:800] += 1e6
    assert_same(statistics(x), by_hand(x))


@pytest.mark.parametrize("place", [0, 29_999], ids=["first block", "last block"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_counted_and_left_out(
    bad: float, place: int, generator: torch.Generator
) -> None:
    x = 5 + torch.randn(30_000, 16, generator=generator)
    x[place, 3:7] = bad
    x[5, 5] = 0
    assert_same(statistics(x), by_hand(x))
    assert statistics(x).nonfinite == 4


def test_nothing_but_nan_has_no_mean() -> None:
    found = statistics(torch.full((3, 2), math.nan))
    assert math.isnan(found.mean)
    assert math.isnan(found.largest)
    assert found.nonfinite == 6


def test_equal_numbers_have_no_variance() -> None:
    assert statistics(torch.full((1000, 7), 0.1)).variance == 0


def test_an_empty_tensor_has_no_numbers() -> None:
    assert statistics(torch.empty(0, 4)).count == 0
    assert statistics(torch.empty(4, 0)).count == 0


def test_a_single_number_and_a_transposed_tensor_are_read(generator: torch.Generator) -> None:
    assert statistics(torch.tensor(3.0)).mean == 3
    x = torch.randn(30, 40, generator=generator).T
    assert_same(statistics(x), by_hand(x))
    assert_same(statistics(x, axis=1), by_hand(x))


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_messages_that_are_never_formed_have_the_statistics_of_those_that_are(
    heads: int, weighted: bool, generator: torch.Generator
) -> None:
    x = 2 + torch.randn(20, heads, 5, generator=generator)
    x[3] = 0
    index = torch.randint(20, (100,), generator=generator)
    weight = torch.randn(100, heads, generator=generator) if weighted else None
    if weight is not None:
        weight[7] = 0
    messages = x[index] if weight is None else x[index].double() * weight.double().unsqueeze(2)
    rows = rows_of(x, heads=heads)._replace(largest=largest_by_row(x, heads)).taken(index)
    rows = rows if weight is None else rows.weighted(weight)
    assert_same(tally_of(Sums.of(rows, None)).statistics(), by_hand(messages))


def test_rows_may_stand_for_many(generator: torch.Generator) -> None:
    x = 3 + torch.randn(20, 5, generator=generator)
    times = torch.randint(4, (20,), generator=generator)
    x[times == 0] = 100
    groups = Groups.of("node", torch.zeros(20, dtype=torch.int64), None)
    rows = rows_of(x)._replace(largest=largest_by_row(x))
    sums = tally_of(Sums.of(rows.repeated(times), groups))
    assert_same(sums.statistics(), by_hand(x.repeat_interleave(times, dim=0)))
    assert sums.groups("degree")[0].rows == int(times.sum())


def test_groups_are_powers_of_two() -> None:
    numbers = torch.arange(300)
    for number, group in zip(numbers.tolist(), group_of(numbers).tolist(), strict=True):
        low, high = bounds(group)
        assert low <= number <= high
        assert low == 0 or high == 2 * low - 1


@pytest.mark.parametrize("both", [True, False])
def test_groups_equal_those_by_hand_and_share_the_whole(
    both: bool, generator: torch.Generator
) -> None:
    x = torch.randn(200, 6, generator=generator) * torch.arange(200).unsqueeze(1)
    degree = torch.randint(40, (200,), generator=generator)
    size = torch.randint(1, 9, (200,), generator=generator)
    groups = Groups.of("node", degree, size if both else None)
    sums = tally_of(Sums.of(rows_of(x), groups))
    wide, whole = x.double(), x.double().var(correction=0).item()
    for by, numbers in (("degree", degree), ("size", size)):
        found = sums.groups(by)
        assert (len(found) > 0) == (both or by == "degree")
        for group in found:
            mine = wide[(group.low <= numbers) & (numbers <= group.high)]
            assert group.rows == len(mine)
            assert group.mean == pytest.approx(mine.mean().item(), rel=1e-6)
            assert group.variance == pytest.approx(mine.var(correction=0).item(), rel=1e-6)
            share = (mine - wide.mean()).square().sum().item() / wide.numel() / whole
            assert group.share == pytest.approx(share, rel=1e-6)
        if found:
            assert sum(group.share for group in found) == pytest.approx(1)
