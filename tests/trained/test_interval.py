"""Intervals hold the truth as often as they say."""

import pytest
import torch

from gnn_vpa.trained.interval import bootstrap, interval_of, wilson
from gnn_vpa.training import METRICS


def test_wilson_is_that_of_the_textbook() -> None:
    # Newcombe (1998), table I: 81 of 263.
    low, high = wilson(81 / 263, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)


@pytest.mark.parametrize("right", [0.0, 1.0])
def test_wilson_stays_within_0_and_1(right: float) -> None:
    low, high = wilson(right, 10)
    assert 0 <= low < high <= 1


def test_the_bootstrap_of_a_mean_is_as_wide_as_theory_says() -> None:
    torch.manual_seed(0)
    y = torch.zeros(400, 1)
    scores = torch.randn(400, 1)
    found = bootstrap(METRICS["mae"], y, scores)
    assert found is not None
    expected = 2 * 1.96 * float(scores.abs().std()) / 20
    assert found[1] - found[0] == pytest.approx(expected, rel=0.15)  # of 1,000 resamples


def test_what_is_undefined_has_no_interval() -> None:
    y, scores = torch.tensor([1, 1, 1]), torch.randn(3, 2)
    assert interval_of(METRICS["roc_auc"], y, scores) == (None, "")
    assert bootstrap(METRICS["mae"], torch.zeros(1, 1), torch.zeros(1, 1)) is None
