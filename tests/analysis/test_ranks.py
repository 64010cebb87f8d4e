import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from gnn_vpa.analysis import RankTest, holm, paired_wilcoxon


@pytest.mark.parametrize("n", range(1, 11))
def test_all_positive_is_the_rarest_of_all_signs(n: int) -> None:
    result = paired_wilcoxon(np.arange(1, n + 1))
    assert result == RankTest(n, p=2.0**-n, rank_biserial=1.0)


def test_all_negative_is_certain() -> None:
    result = paired_wilcoxon([-1, -2, -3])
    assert (result.p, result.rank_biserial) == (1.0, -1.0)


def test_p_counts_the_signs_that_are_as_extreme() -> None:
    differences = [3.0, -1.0, 4.0, 2.0, -2.5, 6.0]
    ranks = [4, 1, 5, 2, 3, 6]
    observed = 4 + 5 + 2 + 6
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s)
        for signs in product((0, 1), repeat=6)
    ]
    result = paired_wilcoxon(differences)
    assert result.p == pytest.approx(sum(s >= observed for s in sums) / 64)
    assert result.rank_biserial == pytest.approx((observed - 4) / 21)


def test_large_samples_agree_with_scipy() -> None:
    differences = np.random.default_rng(0).normal(0.2, 1, 90)
    assert paired_wilcoxon(differences).p == wilcoxon(differences, alternative="greater").pvalue


_SMALL = st.lists(st.integers(-4, 4).filter(bool), min_size=1, max_size=8)


@given(_SMALL)
@settings(max_examples=40, deadline=None)
def test_small_samples_with_and_without_ties_are_scipys_to_the_last_bit(values: list[int]) -> None:
    assert paired_wilcoxon(values).p == wilcoxon(values, alternative="greater").pvalue


@pytest.mark.parametrize("pairs", [13, 14])
def test_so_are_those_at_which_scipy_stops_counting(pairs: int) -> None:
    values = np.random.default_rng(0).integers(1, 6, pairs) * [1, 1, -1, *[1] * (pairs - 3)]
    assert paired_wilcoxon(values).p == wilcoxon(values, alternative="greater").pvalue


def test_pairs_without_a_difference_are_counted_and_left_out() -> None:
    assert paired_wilcoxon([0, 1, 0, 2, 3]) == RankTest(5, p=1 / 8, rank_biserial=1.0)


def test_rounding_makes_neither_signs_nor_ranks() -> None:
    """0.3 - 0.1 and 0.2 differ in their last bits only."""
    assert paired_wilcoxon([0.3 - 0.1 - 0.2] * 5, size=0.3) == RankTest(5, 1.0, 0.0)
    tied = paired_wilcoxon([0.3 - 0.1, -0.2, 0.2])
    assert tied.p == paired_wilcoxon([1, -1, 1]).p


def test_all_equal_shows_nothing() -> None:
    assert paired_wilcoxon([0.0] * 10) == RankTest(10, 1.0, 0.0)


def test_diverged_folds_are_no_pairs() -> None:
    assert paired_wilcoxon([math.nan, 1, 2]) == paired_wilcoxon([1, 2])
    empty = paired_wilcoxon([math.nan])
    assert empty.pairs == 0
    assert math.isnan(empty.p)


def test_holm_by_hand() -> None:
    assert holm([0.04, 0.01, 0.03, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])


def test_holm_stops_at_one_and_passes_nan_by() -> None:
    corrected = holm([0.9, math.nan, 0.6])
    assert corrected[::2] == [1.0, 1.0]
    assert math.isnan(corrected[1])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_is_between_no_correction_and_bonferroni(p_values: list[float]) -> None:
    for p, corrected in zip(p_values, holm(p_values), strict=True):
        assert p <= corrected <= min(1, p * len(p_values)) or p == corrected
    order = np.argsort(p_values, kind="stable")
    assert np.all(np.diff(np.array(holm(p_values))[order]) >= 0)
