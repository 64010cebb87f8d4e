"""The procedure behind the answer, tried on draws whose truth is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gnn_vpa.analysis.answer._contest import Folds, contest, difference, helps, leading

Draws = NDArray[np.float64]
SHARE = 1 / 8  # test graphs for each training graph in ten folds
DRAWS = 600
# A true miss of 5 % exceeds this in one of a thousand times; without the correction for shared
# graphs misses are half of the draws, without that for several rivals about 70.
MOST_MISSES = 47


def draws(means: list[float], n: int, seed: int, correlation: float = 0.6) -> Draws:
    """Scores [draws, n, K] of folds that vary together as Nadeau and Bengio model it.

    Differences of two folds have the correlation test / (test + train), whatever their repeat; the
    candidates of a fold are correlated as well.
    """
    rng = np.random.default_rng(seed)
    shared = SHARE / (1 + SHARE)
    k = len(means)
    root = np.linalg.cholesky(np.full((k, k), correlation) + (1 - correlation) * np.eye(k))
    common = rng.standard_normal((DRAWS, 1, k)) @ root.T
    own = rng.standard_normal((DRAWS, n, k)) @ root.T
    return np.asarray(means) + np.sqrt(shared) * common + np.sqrt(1 - shared) * own


def unbeaten(scores: Draws, repeats: int) -> NDArray[np.bool_]:
    """Which candidates may be the best, in each draw."""
    return np.array(
        [[not s.beaten for s in contest([Folds(one, repeats, SHARE)])] for one in scores]
    )


def oracle(scores: Draws, correlation: float = 0.6) -> NDArray[np.bool_]:
    """What one would say who knows all variances: the smallest set that covers the best."""
    n, k = scores.shape[1:]
    shared = SHARE / (1 + SHARE)
    error = np.sqrt(2 * (1 - correlation) * (shared + (1 - shared) / n))
    rng = np.random.default_rng(9)
    rivals = rng.standard_normal((20_000, k - 1)) - rng.standard_normal((20_000, 1))
    limit = np.quantile(rivals.max(axis=1) / np.sqrt(2), 0.95)
    means = scores.mean(axis=1)
    return np.asarray(means.max(axis=1, keepdims=True) - means <= limit * error)


@pytest.mark.parametrize("repeats", [1, 10])
@pytest.mark.parametrize(
    "means",
    [[0.0] * 4, [0.0] * 8, [0.0, -0.1, -0.2, -0.3], [0.0, -3.0, 0.0]],
    ids=["four equal", "eight equal", "close", "two of three equal"],
)
def test_the_true_best_is_among_those_that_may_be_in_95_of_100_draws(
    means: list[float], repeats: int
) -> None:
    found = unbeaten(draws(means, 10 * repeats, seed=1), repeats)
    assert (~found[:, 0]).sum() <= MOST_MISSES


def test_it_covers_the_best_with_folds_of_real_graphs_that_were_shuffled_ten_times() -> None:
    """Nothing is assumed of the folds: graphs that one candidate or the other gets right."""
    rng = np.random.default_rng(2)
    graphs, k, repeats = 200, 4, 10
    missed = 0
    for _ in range(200):
        hard = rng.random((graphs, 1))  # what is hard for one is hard for the others
        right = 0.7 * rng.random((graphs, k)) + 0.3 * hard < 0.5
        scores = [
            right[part].mean(axis=0) + rng.normal(0, 0.02, k)  # and training has luck
            for _ in range(repeats)
            for part in np.array_split(rng.permutation(graphs), 10)
        ]
        missed += contest([Folds(np.array(scores), repeats, SHARE)])[0].beaten
    assert missed <= 20  # of 200; a true miss of 5 % exceeds it in one of two hundred times


@pytest.mark.parametrize(("repeats", "more"), [(1, 0.35), (10, 0.12)])
@pytest.mark.parametrize("means", [[0.0, -1.0, -2.0, -3.0], [0.0, -1.5, -1.5, -1.5]])
def test_the_set_is_not_larger_than_it_must_be(
    means: list[float], repeats: int, more: float
) -> None:
    """Beside one who knows the variances; ten folds must estimate them, a hundred know them."""
    scores = draws(means, 10 * repeats, seed=3)
    size, least = (
        found.sum(axis=1).mean() for found in (unbeaten(scores, repeats), oracle(scores))
    )
    assert size <= least + more


def test_over_data_sets_the_best_average_is_covered() -> None:
    one, other = (draws([0.0] * 4, 10, seed) for seed in (4, 5))
    other = 3 * other  # a noisy data set beside a quiet one
    missed = sum(
        contest([Folds(a, 1, SHARE), Folds(b, 1, SHARE)])[0].beaten
        for a, b in zip(one, other, strict=True)
    )
    assert missed <= MOST_MISSES


def test_a_cost_is_at_least_what_is_said_and_at_most() -> None:
    means = [0.0, -2.5, -4.0]
    low = high = 0
    for one in draws(means, 10, seed=6):
        found = contest([Folds(one, 1, SHARE)])
        low += any(s.low > -m for s, m in zip(found, means, strict=True))
        high += any(s.high < -m for s, m in zip(found, means, strict=True))
    assert low <= MOST_MISSES
    assert high <= MOST_MISSES


SCORES = st.integers(2, 12).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 20), min_size=3, max_size=3), min_size=n, max_size=n)
)


@settings(deadline=None)
@given(SCORES)
def test_the_leader_is_never_beaten_and_no_number_is_missing(rows: list[list[int]]) -> None:
    scores = np.array(rows) / 20
    found = contest([Folds(scores, 1, SHARE)])
    leader = int(scores.mean(axis=0).argmax())
    assert not found[leader].beaten
    assert found[leader].cost == 0
    for standing in found:
        assert standing.beaten == (standing.low > 0)
        assert standing.cost >= standing.low
        assert not np.isnan(standing.high)
    assert leading([Folds(scores, 1, SHARE)]).sum() == pytest.approx(1)


@settings(deadline=None)
@given(SCORES, st.permutations([0, 1, 2]), st.floats(-5, 5))
def test_neither_order_nor_a_constant_matters(
    rows: list[list[int]], order: list[int], constant: float
) -> None:
    scores = np.array(rows) / 20
    beaten = [s.beaten for s in contest([Folds(scores, 1, SHARE)])]
    moved = contest([Folds(scores[::-1][:, order] + constant, 1, SHARE)])
    assert [s.beaten for s in moved] == [beaten[i] for i in order]


def test_the_same_difference_on_every_fold_needs_enough_folds() -> None:
    """Without any spread only the signs tell: four of a kind come by chance, ten do not."""
    equal = np.array([[0.5, 0.6]])
    assert not contest([Folds(np.repeat(equal, 4, axis=0), 1, SHARE)])[0].beaten
    assert contest([Folds(np.repeat(equal, 10, axis=0), 1, SHARE)])[0].beaten


def test_signs_are_counted_where_there_are_differences() -> None:
    """Ten folds of a data set on which both are the same say nothing of three of another."""
    same, apart = np.full((10, 2), 0.5), np.repeat([[0.6, 0.5]], 3, axis=0)
    assert not contest([Folds(same, 1, SHARE), Folds(apart, 1, SHARE)])[1].beaten
    enough = np.repeat([[0.6, 0.5]], 5, axis=0)
    assert contest([Folds(same, 1, SHARE), Folds(enough, 1, SHARE)])[1].beaten


def test_repeats_of_equal_differences_help_by_their_signs() -> None:
    """Two signs are not enough, nor four (1/16); six are."""
    scores = np.repeat([[0.75, 0.5]], 2, axis=0)
    assert not contest([Folds(scores, 1, SHARE)])[1].beaten
    assert helps([Folds(scores, 1, SHARE)], 0, 1).repeats == 3
    assert not contest([Folds(np.tile(scores, (2, 1)), 2, SHARE)])[1].beaten
    assert contest([Folds(np.tile(scores, (3, 1)), 3, SHARE)])[1].beaten


def test_equal_means_have_the_first_for_their_leader_whatever_their_last_bits() -> None:
    scores = np.array([[0.1, 0.3], [0.2, 0.2], [0.3, 0.1]])
    scores[:, 1] += [0, 1e-16, 0]
    first, second = contest([Folds(scores, 1, SHARE)])
    assert (first.cost, second.cost) == (0.0, 0.0)


def test_one_fold_tells_nothing() -> None:
    found = contest([Folds(np.array([[0.5, 0.9]]), 1, SHARE)])
    assert not any(standing.beaten for standing in found)
    assert np.isnan(found[0].half)
    assert np.isnan(leading([Folds(np.array([[0.5, 0.9]]), 1, SHARE)])).all()


def test_so_many_repeats_as_are_said_are_enough_and_one_fewer_is_not() -> None:
    scores = np.random.default_rng(7).normal(0, 1, (10, 2))
    # Between the margins of one repeat, 1.83 sqrt(1/10 + 1/8), and of any number, 1.65 sqrt(1/8).
    lead = 0.65 * (scores[:, 0] - scores[:, 1]).std(ddof=1)
    scores += [0.0, -lead] - scores.mean(axis=0)
    repeats = helps([Folds(scores, 1, SHARE)], 0, 1).repeats
    assert repeats is not None
    assert repeats > 1

    def beaten(times: int) -> bool:
        more = np.tile(scores, (times, 1))
        spread = scores[:, 0] - scores[:, 1]
        stretch = np.sqrt(spread.var(ddof=1) / np.tile(spread, times).var(ddof=1))
        more = more.mean(axis=0) + stretch * (more - more.mean(axis=0))
        return contest([Folds(more, times, SHARE)])[1].beaten

    assert beaten(repeats)
    assert not beaten(repeats - 1)


def test_a_small_difference_needs_more_data_and_not_repeats() -> None:
    scores = np.random.default_rng(8).normal(0, 1, (10, 2))
    scores += [0.0, -0.3] - scores.mean(axis=0)
    data = [Folds(scores, 1, SHARE)]
    found = helps(data, 0, 1)
    assert found.repeats is None
    # So many times as many graphs divide the variance: then the lead is as large as its margin.
    variance = difference(data, 0, 1).variance / found.data
    assert 1.833 * np.sqrt(variance) == pytest.approx(0.3, rel=1e-3)


def test_a_data_set_of_fewer_repeats_may_have_more_of_them() -> None:
    """One has a hundred, and no noise to speak of: half of the other's noise is the average's."""
    noise = np.random.default_rng(7).normal(0, 1, 1000)

    def lead(n: int, spread: float) -> Draws:
        own = (noise[:n] - noise[:n].mean()) / noise[:n].std(ddof=1)
        return np.stack([0.25 + spread * own, np.zeros(n)], axis=1)

    # 0.36 is between the margins of one repeat and of any number: 0.25 / 0.87 and 0.25 / 0.58.
    many, few = Folds(lead(1000, 1e-6), 100, SHARE), Folds(lead(10, 0.72), 1, SHARE)
    found, alone = helps([many, few], 0, 1), helps([Folds(lead(10, 0.36), 1, SHARE)], 0, 1)
    assert found.repeats == alone.repeats is not None
    assert found.data == pytest.approx(alone.data, rel=1e-6)


def test_what_is_told_already_needs_no_more() -> None:
    scores = np.random.default_rng(8).normal([1.0, 0.0], 0.1, (1000, 2))
    assert helps([Folds(scores, 100, SHARE)], 0, 1).repeats is None


def test_too_few_folds_that_agree_have_a_margin_without_end_and_one_fold_has_none() -> None:
    noisy = np.random.default_rng(9).normal([1.0, 0.0], 0.1, (10, 2))
    agree, one = np.tile([[3.0, 1.0]], (2, 1)), np.array([[3.0, 1.0]])
    for few, half in ((agree, np.inf), (one, np.nan)):
        first, second = contest([Folds(noisy, 1, SHARE), Folds(few, 1, SHARE)])
        np.testing.assert_equal([first.half, second.half, second.high], [half] * 3)
        assert not second.beaten
    # Of six folds, three repeats, all signs agree.
    assert helps([Folds(noisy, 1, SHARE), Folds(agree, 1, SHARE)], 0, 1).repeats == 3


def test_no_number_of_graphs_is_named_where_folds_are_too_few_to_tell() -> None:
    noise = np.random.default_rng(9).normal(0, 9, 10)
    noisy = np.stack([noise - noise.mean(), np.zeros(10)], axis=1)
    found = helps([Folds(noisy, 1, SHARE), Folds(np.tile([[1.0, 0.0]], (2, 1)), 1, SHARE)], 0, 1)
    assert found.repeats is None
    assert np.isnan(found.data)
