import math

import pytest

from gnn_vpa.analysis import format as f

MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"


@pytest.mark.parametrize(
    ("value", "text"),
    [(71.84, "71.8"), (-0.04, "0.0"), (-1.26, f"{MINUS}1.3"), (math.nan, DASH), (None, DASH)],
)
def test_number(value: float | None, text: str) -> None:
    assert f.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.26, "+1.3"), (-1.26, f"{MINUS}1.3"), (0.04, "0.0"), (-0.04, "0.0"), (math.nan, DASH)],
)
def test_signed(value: float, text: str) -> None:
    assert f.signed(value) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [(2.0e-5, "2.0e-5"), (3.2e-15, "3.2e-15"), (0.0312, "0.031"), (1.0, "1.000"), (None, DASH)],
)
def test_p_as_the_paper_prints_it(p: float | None, text: str) -> None:
    assert f.p_value(p) == text


def test_mean_std() -> None:
    assert f.mean_std(71.8, 4.0) == "71.8 ± 4.0"
    assert f.mean_std(71.8, math.nan) == "71.8"


def test_listing_and_count() -> None:
    assert [f.listing(list(items)) for items in ("", "a", "ab", "abc")] == [
        *("", "a", "a and b", "a, b and c")
    ]
    assert (f.count(1, "fold"), f.count(2, "fold")) == ("1 fold", "2 folds")
