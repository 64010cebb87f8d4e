"""Numbers for people: what is near a bound does not read as if it were there."""

import math

from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.signal.probing._numbers import NONE, number, percent


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_only_nothing_is_0_percent_and_only_all_is_100(share: float) -> None:
    text = percent(share)
    assert text not in ("0 %", "100 %")
    value = float(text.strip("<> %"))
    assert 0 < value < 100
    if text.startswith("<"):
        assert 100 * share < value
    elif text.startswith(">"):
        assert 100 * share > value
    else:
        assert math.isclose(value, 100 * share, rel_tol=0.051)


def test_the_bounds_are_written_as_such() -> None:
    assert (percent(0.0), percent(1.0), percent(math.nan)) == ("0 %", "100 %", NONE)
    assert (percent(0.996), percent(0.003)) == ("99.6 %", "0.3 %")
    assert number(-0.0) == "0"
