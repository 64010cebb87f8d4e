import re
from collections.abc import Callable
from xml.etree import ElementTree

import pandas as pd

from gnn_vpa.analysis import answer, answer_dots

Make = Callable[..., pd.DataFrame]
NOISE = [0.00, 0.01, -0.01, 0.02, -0.02]


def drawn(make_folds: Make, **more: object) -> str:
    folds = make_folds(
        {
            ("mine", "GIN", "sum"): [0.6 + n for n in NOISE],
            ("mine", "GIN", "vpa"): [0.8 - n for n in NOISE],
            ("mine", "MAJORITY", ""): [0.7] * 5,
        }
    ).assign(**more)
    svg = answer_dots(answer(folds, ceiling={"mine": 0.99}).choices[0])
    ElementTree.fromstring(svg)
    return svg


def test_a_dot_for_each_hollow_where_it_is_beaten(make_folds: Make) -> None:
    svg = drawn(make_folds)
    assert re.findall(r'<circle [^>]*class="([^"]*)"', svg) == ["area vpa", "line hollow sum"]
    first, second = (float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg))
    assert first > second


def test_baselines_and_the_ceiling_are_named_lines(make_folds: Make) -> None:
    svg = drawn(make_folds)
    assert ">Majority 70.0</text>" in svg
    assert ">ceiling 99.0</text>" in svg
    assert svg.count('stroke-dasharray="2 3"') == 2


def test_a_line_far_away_is_named_at_the_edge(make_folds: Make) -> None:
    folds = make_folds(
        {
            ("mine", "GIN", "sum"): [0.80, 0.81, 0.79],
            ("mine", "GIN", "vpa"): [0.81, 0.80, 0.80],
            ("mine", "MAJORITY", ""): [0.2] * 3,
        }
    )
    svg = answer_dots(answer(folds).choices[0])
    assert ">◂ Majority 20.0</text>" in svg
    assert "stroke-dasharray" not in svg


def test_the_axis_says_which_direction_is_better(make_folds: Make) -> None:
    assert ">test accuracy, %</text>" in drawn(make_folds)
    assert ">test MAE (lower is better)</text>" in drawn(make_folds, metric="mae")


def test_one_candidate_has_no_picture(make_folds: Make) -> None:
    (choice,) = answer(make_folds({("mine", "GIN", "vpa"): [0.8, 0.9]})).choices
    assert answer_dots(choice) == ""
