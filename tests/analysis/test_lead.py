import math

import pytest

from gnn_vpa.analysis.lead import interval, interval_text, lead_text
from gnn_vpa.analysis.measure import measure

MAE = measure("mae")


@pytest.mark.parametrize(
    ("lead", "said"),
    [(11.6, "MAE lower by 11.6"), (-11.6, "MAE higher by 11.6"), (-0.01, "the same MAE")],
)
def test_of_an_error_the_direction_is_a_word(lead: float, said: str) -> None:
    assert lead_text(MAE, lead, 1, MAE.unit()) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-63.5, 86.7, "63.5 higher to 86.7 lower"),
        (0.5, 2.0, "0.5 to 2.0 lower"),
        (-2.0, -0.5, "0.5 to 2.0 higher"),
    ],
)
def test_an_interval_of_an_error_says_the_direction(low: float, high: float, said: str) -> None:
    assert interval_text(MAE, low, high) == said


def test_what_is_better_when_higher_keeps_its_sign() -> None:
    assert lead_text(measure("accuracy"), -3.1) == "\N{MINUS SIGN}3.1 points"
    assert lead_text(measure("r2"), 0.12, 2, measure("r2").unit()).startswith("+0.12 of ")
    assert interval_text(measure("accuracy"), -1.0, 2.0) == "\N{MINUS SIGN}1.0 to 2.0"


def test_folds_without_a_spread_have_no_interval() -> None:
    assert interval(0.0, 0.0) == interval(math.nan, math.nan) == "\N{EN DASH}"
