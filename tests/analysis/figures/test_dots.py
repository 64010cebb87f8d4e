import math
import re
from collections.abc import Callable
from xml.etree import ElementTree

import pandas as pd
import pytest

from gnn_vpa.analysis import fold_dots
from gnn_vpa.analysis.style import colour
from gnn_vpa.errors import UsageError

CIRCLE = "{http://www.w3.org/2000/svg}circle"
TITLE = "{http://www.w3.org/2000/svg}title"


def dots(svg: str) -> list[ElementTree.Element]:
    """The folds' dots; that of the legend has no title."""
    return [c for c in ElementTree.fromstring(svg).iter(CIRCLE) if c.find(TITLE) is not None]


def test_a_dot_a_fold_where_its_accuracy_is(make_folds: Callable[..., pd.DataFrame]) -> None:
    circles = dots(fold_dots(make_folds({("mine", "GIN", "vpa"): [0.5, 0.75, 1.0]})))
    left, middle, right = (float(circle.attrib["cx"]) for circle in circles)
    assert left < right
    assert middle == pytest.approx((left + right) / 2, abs=0.1)
    assert {circle.attrib["fill"] for circle in circles} == {colour("vpa")}
    assert [c.find(TITLE).text for c in circles] == [
        "fold 0: 50.0 %",
        "fold 1: 75.0 %",
        "fold 2: 100.0 %",
    ]


def test_equal_folds_do_not_hide_each_other(make_folds: Callable[..., pd.DataFrame]) -> None:
    circles = dots(fold_dots(make_folds({("mine", "GIN", "vpa"): [0.5] * 10})))
    assert len({circle.attrib["cy"] for circle in circles}) == 10


def test_the_description_has_the_numbers(make_folds: Callable[..., pd.DataFrame]) -> None:
    svg = fold_dots(
        make_folds({("mine", "GIN", "sum"): [0.7, 0.8, 0.9], ("mine", "WL", ""): [0.5]})
    )
    assert "GIN+sum 80.0 ± 10.0, WL subtree kernel + SVM 50.0 (1 of 3 folds)." in svg


def test_the_paper_is_there_where_it_has_the_cell(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert "paper" in fold_dots(make_folds({("MUTAG", "GIN", "vpa"): [0.8]}))
    assert "paper" not in fold_dots(make_folds({("mine", "GIN", "vpa"): [0.8]}))


def test_diverged_folds_are_counted_beside_the_dots(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    svg = fold_dots(make_folds({("mine", "GIN", "vpa"): [0.5, math.nan, 0.9]}))
    assert "1 diverged" in svg
    room = max(float(circle.attrib["cx"]) for circle in dots(svg))
    assert room < 340 - 12 - 60


def test_only_diverged_folds(make_folds: Callable[..., pd.DataFrame]) -> None:
    svg = fold_dots(make_folds({("mine", "GIN", "vpa"): [math.nan]}))
    assert dots(svg) == []
    assert "GIN+vpa no finished fold" in svg


def test_names_are_escaped(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert "<b>" not in fold_dots(make_folds({("<b>", "GIN", "vpa"): [0.5]}))


def test_several_data_sets_are_refused(full_run: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="one data set, got 9"):
        fold_dots(full_run)


def test_long_names_have_room(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({("MUTAG", "GIN", "power(0.125)"): [0.5, 0.6]})
    ((x, label),) = re.findall(r'<text x="([\d.]+)" [^>]*>(GIN[^<]+)</text>', fold_dots(folds))
    assert float(x) >= 6 * len(label)
