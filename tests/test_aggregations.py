import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.aggregations import AGGREGATIONS, Aggregation, aggregation, names, operators, ordered
from gnn_vpa.errors import UsageError


@given(st.floats(-8, 8))
def test_a_power_has_one_name_however_it_is_spelt(p: float) -> None:
    entry = aggregation(f"power({p!r})")
    assert entry.exponent == p
    assert aggregation(entry.name) == entry
    assert aggregation(f" POWER( {p!r} ) ") == entry


@pytest.mark.parametrize("text", ["nan", "inf", "9", "-8.1", "", "half", "1,2"])
def test_a_power_needs_a_number_within_reach(text: str) -> None:
    with pytest.raises(UsageError):
        aggregation(f"power({text})")


def test_zero_has_no_sign() -> None:
    assert aggregation("power(-0.0)").name == "power(0)"
    assert math.copysign(1, aggregation("power(-0.0)").exponent or 0.0) == 1


def test_powers_have_the_colours_of_what_they_equal() -> None:
    for name, p in (("sum", 0), ("vpa", 0.5), ("mean", 1)):
        assert aggregation(f"power({p})").colour == AGGREGATIONS[name].colour


def test_default_is_no_operator() -> None:
    assert aggregation("default").kind == "plain"
    assert "default" not in operators()
    with pytest.raises(UsageError, match="expected one of sum, mean, max, vpa"):
        aggregation("default", among="operators")
    assert "default" not in names("operators")


@pytest.mark.parametrize("name", [None, 3, "", "summe"])
def test_what_is_unknown_is_named(name: object) -> None:
    with pytest.raises(UsageError, match="is unknown"):
        aggregation(name)  # type: ignore[arg-type]


def test_an_entry_must_make_sense() -> None:
    with pytest.raises(UsageError, match="has an exponent"):
        Aggregation("mine", "linear", None, "#000000", "none", "o")
    with pytest.raises(UsageError, match="has an exponent"):
        Aggregation("mine", "maximum", 0.5, "#000000", "none", "o")
    with pytest.raises(UsageError, match="need the exponent"):
        Aggregation("mine", "linear", 0.3, "#000000", "none", "o", squares_weights=True)


def test_powers_stand_behind_the_others_by_their_exponent() -> None:
    given_names = ["power(1)", "power(0.25)", "vpa", "power(0)", "sum"]
    assert ordered(given_names) == ["sum", "vpa", "power(0)", "power(0.25)", "power(1)"]
