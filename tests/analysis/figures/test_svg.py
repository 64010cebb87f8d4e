import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.analysis.figures._svg import Scale, element, label, path, picture, text, width


def test_elements_are_escaped() -> None:
    node = ElementTree.fromstring(text('<a & "b">', 1.0, 2.25, text_anchor='"end"'))
    assert node.text == '<a & "b">'
    assert node.attrib == {"x": "1", "y": "2.2", "text-anchor": '"end"'}


def test_path_is_short() -> None:
    assert path([(0.0, 1.26), (2.0, 3.0)], closed=True) == "M0 1.3L2 3Z"


def test_a_picture_is_named_for_those_who_do_not_see_it() -> None:
    node = ElementTree.fromstring(picture(100, "A & B", "C.", [element("g")]))
    assert node.attrib["role"] == "img"
    assert node.attrib["aria-label"] == "A & B. C."
    assert [child.text for child in node][:2] == ["A & B", "C."]


def test_scale_maps_ends_to_ends_and_stays_within() -> None:
    scale = Scale(0.0, 10.0, 100.0, 0.0)
    assert [scale(value) for value in (-5, 0, 5, 10, 99)] == [100, 100, 50, 0, 0]


def test_log_scale_maps_the_geometric_mean_to_the_middle() -> None:
    assert Scale(0.01, 100.0, 0.0, 1.0, log=True)(1.0) == pytest.approx(0.5)


def test_ticks_are_round() -> None:
    assert Scale(0.0, 1.0, 0, 1).ticks() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Scale(31.0, 88.0, 0, 1).ticks() == [40, 60, 80]
    assert Scale(0.03, 3.0, 0, 1, log=True).ticks() == pytest.approx([0.05, 0.1, 0.2, 0.5, 1, 2])
    assert Scale(1e-4, 1e3, 0, 1, log=True).ticks() == pytest.approx([1e-4, 1e-2, 1, 100])


@given(st.floats(1e-3, 1e6), st.floats(1.01, 1e6), st.booleans())
def test_ticks_lie_within_and_are_few(low: float, factor: float, log: bool) -> None:
    scale = Scale(low, low * factor, 0.0, 1.0, log=log)
    ticks = scale.ticks()
    assert len(ticks) <= 8
    assert all(scale.low * (1 - 1e-6) <= tick <= scale.high * (1 + 1e-6) for tick in ticks)
    assert all(math.isfinite(scale(tick)) for tick in ticks)


@given(st.floats(1e-3, 1e6), st.floats(2.25, 1e6))
def test_a_log_scale_has_ticks_enough_to_read_values(low: float, factor: float) -> None:
    assert len(Scale(low, low * factor, 0.0, 1.0, log=True).ticks()) >= 3


@given(st.text("abc:+", min_size=1, max_size=60), st.floats(60.0, 400.0))
def test_a_label_has_the_room_it_is_given(name: str, most: float) -> None:
    node = ElementTree.fromstring(label(name, 0.0, 0.0, most))
    shown, whole = node.text, node.findtext("title")
    assert shown is not None
    assert width(shown) <= most
    assert (whole or shown) == name
    assert (shown[0], shown[-1]) == (name[0], name[-1])


@pytest.mark.parametrize(("letters", "shown"), [(0, "…"), (1, "…"), (2, "…f"), (3, "a…f")])
def test_where_hardly_a_letter_fits_a_label_is_short(letters: int, shown: str) -> None:
    node = ElementTree.fromstring(label("abcdef", 0.0, 0.0, letters * width("x")))
    assert node.text == shown
    assert [child.text for child in node] == ["abcdef"]
