import math

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp

from gnn_vpa.analysis import Estimate, average, corrected_mean

SAMPLE = np.random.default_rng(0).normal(0.5, 1.0, 10)


def test_without_shared_data_it_is_the_ordinary_t_test() -> None:
    estimate = corrected_mean(SAMPLE, test_per_train=0)
    expected = ttest_1samp(SAMPLE, 0, alternative="greater")
    assert estimate.p_greater == pytest.approx(expected.pvalue)
    interval = ttest_1samp(SAMPLE, 0).confidence_interval(0.95)
    assert estimate.interval() == pytest.approx((interval.low, interval.high))


def test_the_correction_scales_the_statistic() -> None:
    """With n = 10 and one graph tested for eight trained, t shrinks by sqrt(0.1 / 0.225)."""
    plain = ttest_1samp(SAMPLE, 0).statistic
    expected = t.sf(plain * math.sqrt(0.1 / (0.1 + 1 / 8)), 9)
    assert corrected_mean(SAMPLE).p_greater == pytest.approx(expected)


def test_variance_by_hand() -> None:
    estimate = corrected_mean([1.0, 2.0, 3.0, 6.0], test_per_train=0.25)
    assert estimate.mean == 3.0
    assert estimate.variance == pytest.approx((1 / 4 + 1 / 4) * (4 + 1 + 0 + 9) / 3)
    assert estimate.dof == 3


def test_one_fold_has_a_mean_and_no_interval() -> None:
    estimate = corrected_mean([2.0])
    assert estimate.mean == 2.0
    assert math.isnan(estimate.p_greater)
    assert all(math.isnan(end) for end in estimate.interval())


def test_equal_differences_are_judged_by_their_signs() -> None:
    assert corrected_mean([0.1 + 0.2, 0.3, 0.3]).p_greater == 1 / 8  # by signs alone
    assert corrected_mean([0.0, 0.0]).p_greater == 1.0
    assert corrected_mean([-1.0, -1.0]).p_greater == 1.0
    assert corrected_mean([1e-14, 1e-14], size=100.0).p_greater == 1.0  # last bits
    assert corrected_mean([1e-14, 1e-14], size=1e-14).p_greater == 1 / 4  # all that there is
    assert corrected_mean([2.0] * 6).interval() == (2.0, 2.0)
    assert corrected_mean([0.0, 0.0]).interval() == (0.0, 0.0)
    # Of five coins all fall on one side in one of sixteen throws.
    assert all(math.isnan(end) for end in corrected_mean([2.0] * 5).interval())


def test_diverged_folds_are_left_out() -> None:
    assert corrected_mean([1.0, math.nan, 3.0]) == corrected_mean([1.0, 3.0])
    assert math.isnan(corrected_mean([math.nan]).mean)


def test_p_is_half_where_the_mean_is_zero() -> None:
    assert corrected_mean([-1.0, 1.0]).p_greater == pytest.approx(0.5)


def test_average_of_one_is_itself() -> None:
    estimate = corrected_mean(SAMPLE)
    averaged = average([estimate])
    assert averaged.mean == estimate.mean
    assert averaged.variance == pytest.approx(estimate.variance)
    assert averaged.dof == pytest.approx(9)


def test_average_of_independent_estimates_is_less_uncertain() -> None:
    """Four data sets of the same variance: a quarter of it."""
    averaged = average([Estimate(float(mean), 2.0, 9) for mean in (1, 2, 3, 6)])
    assert averaged.mean == 3.0
    assert averaged.variance == pytest.approx(2.0 / 4)


def test_average_takes_the_degrees_of_freedom_of_the_noisiest() -> None:
    """Welch and Satterthwaite: a variance that dominates brings its own, equal ones add up."""
    noisy, quiet = Estimate(0.0, 1.0, 9), Estimate(0.0, 1e-9, 9)
    assert average([noisy, quiet]).dof == pytest.approx(9)
    assert average([noisy, noisy]).dof == pytest.approx(18)


def test_average_needs_every_variance() -> None:
    averaged = average([Estimate(1.0, 1.0, 9), Estimate(3.0, math.nan, 0)])
    assert averaged.mean == 2.0
    assert math.isnan(averaged.variance)
    assert math.isnan(average([]).mean)


def test_average_of_certain_estimates_is_as_certain_as_their_signs() -> None:
    averaged = average([corrected_mean([1.0] * 10), corrected_mean([3.0] * 10)])
    assert averaged.p_greater == averaged.p_signs == 0.5**20
    assert averaged.interval() == (2.0, 2.0)


def test_a_zero_has_no_sign_and_the_other_way_counts_against() -> None:
    """Ten folds without a difference do not make three of a kind any rarer."""
    same, three, ten = (corrected_mean(d) for d in ([0.0] * 10, [1.0] * 3, [-1.0] * 10))
    assert average([same, three]).p_greater == 1 / 8
    assert all(math.isnan(end) for end in average([same, three]).interval())
    against = average([corrected_mean([5.0] * 10), ten])  # ten heads of twenty, or more
    assert against.mean == 2.0
    assert against.p_greater == pytest.approx((1 + math.comb(20, 10) / 2**20) / 2)
    assert all(math.isnan(end) for end in against.interval())


def test_few_folds_that_agree_make_no_average_more_certain() -> None:
    """Two folds with the same lead do not tell chance; ten do, and a lead of 0 is none."""
    spread = corrected_mean([1.0, 2.0, 3.0] * 3)
    unknown = average([spread, corrected_mean([20.0] * 2)])
    assert unknown.mean == 11.0
    assert math.isnan(unknown.p_greater)
    assert all(math.isnan(end) for end in unknown.interval())
    for certain in ([20.0] * 10, [0.0] * 2):
        assert average([spread, corrected_mean(certain)]).variance == spread.variance / 4


def test_leads_that_cancel_each_other_are_no_lead() -> None:
    up, down = corrected_mean([0.3 - 0.1] * 10), corrected_mean([-0.2] * 10)
    assert average([up, down]).mean == 0.0
    assert average([up, down]).interval() == (0.0, 0.0)


def test_without_signs_an_exact_estimate_is_not_known_to_be_more_than_zero() -> None:
    assert Estimate(2.0, 0.0, 9).p_greater == 1.0
    assert all(math.isnan(end) for end in Estimate(2.0, 0.0, 9).interval())


def test_interval_covers_the_mean_as_often_as_it_says() -> None:
    """Independent folds, so no correction: 2,000 intervals, within five standard errors."""
    rng = np.random.default_rng(1)
    intervals = [corrected_mean(rng.normal(1, 2, 10), 0).interval(0.9) for _ in range(2000)]
    covered = sum(low <= 1 <= high for low, high in intervals)
    assert abs(covered - 1800) < 5 * math.sqrt(2000 * 0.9 * 0.1)
