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
    ("value", "digits", "text"),
    [
        (1.2e-5, 6, "0.000012"),
        (1.234e-8, 10, "1.23e-8"),
        (-1.234e-8, 10, f"{MINUS}1.23e-8"),
        (9.9e-8, 10, "9.90e-8"),
        (12.34e-8, 10, "12.34e-8"),  # beside others of its table
        (0.15e-8, 10, "0.15e-8"),
        (1e-13, 10, "0"),
        (0.0, 10, "0"),
        (123456.7, 0, "123457"),
        (1.234e8, -6, "1.23e8"),
        (0.15e8, -6, "0.15e8"),
        (3.2e-300, 302, "3.20e-300"),
        (3.2e300, -298, "3.20e300"),
        (1e7 - 1, 1, "9999999.0"),
        (1e7, 1, "1.00e7"),
        (-1.2345e15, 1, f"{MINUS}1.23e15"),  # beside others whose decimals these are
        (9.999e12, 3, "1.00e13"),
        (1.234e22, -6, "1.23e22"),
        (0.5, 10, "5.00e-1"),
        (1e300, 302, "1.00e300"),
        (1.5e308, -306, "1.50e308"),
        (math.inf, 1, "inf"),
        (-math.inf, 1, f"{MINUS}inf"),
        (math.inf, 10, "inf"),
        (math.nan, 10, DASH),
    ],
)
def test_far_from_one_a_number_has_an_exponent(value: float, digits: int, text: str) -> None:
    assert f.number(value, digits) == text


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
