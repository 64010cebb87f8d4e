"""The figure of accuracy and signal against the exponent."""

import math
import re
from itertools import pairwise

import pandas as pd

from gnn_vpa.analysis.figures import power_lines


def points(**columns: list[float] | list[str]) -> pd.DataFrame:
    given = {
        "aggregation": ["power(0)", "power(0.5)", "power(1)"],
        "p": [0.0, 0.5, 1.0],
        "mean": [70.0, 75.0, 72.0],
        "std": [1.0, 2.0, 3.0],
        "note": ["", "", ""],
        "variance": [100.0, 1.0, 0.01],
    }
    return pd.DataFrame({"dataset": "MUTAG", "model": "GIN", "digits": 1, **given, **columns})


def dots(svg: str) -> list[tuple[float, float]]:
    return [
        (float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
    ]


def strokes(svg: str) -> list[int]:
    """How many points each line through powers has."""
    found = re.findall(r'<path d="(M[^"]*)" fill="none" stroke="currentColor"', svg)
    return [d.count("L") + 1 for d in found]


def test_places_are_those_of_the_exponents_and_heights_those_of_the_values() -> None:
    at = dots(power_lines(points()))
    accuracy, variance = at[:3], at[3:]
    assert math.isclose(*(b[0] - a[0] for a, b in pairwise(accuracy)), abs_tol=0.11)
    assert accuracy[1][1] < accuracy[2][1] < accuracy[0][1]
    steps = [b[1] - a[1] for a, b in pairwise(variance)]
    assert math.isclose(*steps, abs_tol=0.11)  # equal factors, so equal steps


def test_exponents_with_a_name_are_marked_where_the_axis_has_them() -> None:
    assert {"sum", "vpa", "mean"} <= set(re.findall(r">(\w+)</text>", power_lines(points())))
    few = power_lines(points(p=[0.4, 0.5, 0.6]))
    assert {"sum", "mean"}.isdisjoint(re.findall(r">(\w+)</text>", few))
    assert ">vpa</text>" in few


def test_what_was_run_by_name_is_a_mark_of_its_own_and_not_of_the_line() -> None:
    frame = pd.concat([points(), points(aggregation=["sum", "vpa", "mean"])])
    svg = power_lines(frame)
    assert strokes(svg) == [3, 3]
    assert len(dots(svg)) == 6
    assert len(re.findall(r'Z" fill="none" stroke="#', svg)) == 6


def test_a_power_without_a_number_is_a_cross_and_a_gap() -> None:
    mean, variance = [70.0, math.nan, 72.0], [1.0, math.inf, 0.0]
    svg = power_lines(points(mean=mean, variance=variance))
    assert strokes(svg) == [1, 1, 1]
    assert svg.count("\N{MULTIPLICATION SIGN}</text>") == 3
    assert "power(0.5) no accuracy, variance inf" in svg


def test_a_number_with_a_note_has_an_asterisk() -> None:
    svg = power_lines(points(note=["", "2 of 3 folds", ""]))
    assert svg.count(">*</text>") == 1
    assert "power(0.5) 75.0 ± 2.0 % (2 of 3 folds)" in svg


def test_without_signals_there_is_no_panel_for_them() -> None:
    svg = power_lines(points(variance=[math.nan] * 3))
    assert "variance" not in svg
    assert len(dots(svg)) == 3


def test_a_single_fold_has_no_band_and_a_constant_accuracy_has_an_axis() -> None:
    svg = power_lines(points(mean=[50.0] * 3, std=[math.nan] * 3))
    assert "fill-opacity" not in svg
    assert len({y for _, y in dots(svg)[:3]}) == 1
