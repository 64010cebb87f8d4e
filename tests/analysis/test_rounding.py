"""What is an error of 1e-8 in one unit is one of 10 in another: nothing that is told may change."""

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gnn_vpa.analysis import (
    answer,
    corrected_mean,
    dataset_tests,
    findings,
    overall_tests,
    paired_wilcoxon,
    render_report,
    score_table,
    summarise,
    to_markdown,
    write_markdown,
)
from gnn_vpa.analysis.answer import Answer, Candidate, sentences
from gnn_vpa.analysis.answer._contest import Folds, contest, leading
from gnn_vpa.analysis.rounding import last_bits, settled, usual

Make = Callable[..., pd.DataFrame]
UNITS = [1e-12, 1e-9, 1.0, 1e9, 1e12]
_IN_UNITS = ["difference", "low", "high"]


@pytest.fixture
def errors(make_folds: Make) -> pd.DataFrame:
    """MAEs on two data sets: noise, ties of folds, a constant lead, and the same on every fold."""
    rng = np.random.default_rng(3)
    cells: dict[tuple[str, str, str], list[float]] = {}
    for dataset in ("one", "two"):
        base = rng.uniform(8, 12, 10).round(2)
        noise = rng.normal(0, 0.5, 10).round(1)  # so coarse that some are ties
        cells |= {
            (dataset, "GIN", "vpa"): list(base),
            (dataset, "GIN", "sum"): list(base + noise + 1.2),
            (dataset, "GIN", "mean"): list(base + 0.1),
            (dataset, "GIN", "max"): list((base + 0.3) - 0.3),
        }
    return make_folds(cells).assign(metric="mae", higher_is_better=False)


def in_unit(errors: pd.DataFrame, unit: float) -> pd.DataFrame:
    return errors.assign(test_score=errors["test_score"] * unit)


def judged(found: Answer) -> list[tuple[object, ...]]:
    return [
        (choice.place, choice.default, choice.tied, choice.may_be_best, choice.avoid)
        for choice in found.choices
    ]


@pytest.mark.parametrize("unit", UNITS)
def test_no_test_depends_on_the_unit(errors: pd.DataFrame, unit: float) -> None:
    free = ["p_wilcoxon", "p_corrected", "rank_biserial", "pairs"]
    for tests in (dataset_tests, overall_tests):
        plain, other = tests(errors), tests(in_unit(errors, unit))
        pd.testing.assert_frame_equal(plain[free], other[free], rtol=1e-9)
    plain, other = dataset_tests(errors), dataset_tests(in_unit(errors, unit))
    scaled = plain[_IN_UNITS] * unit
    pd.testing.assert_frame_equal(scaled, other[_IN_UNITS], rtol=1e-6, atol=0)
    of_mean = overall_tests(in_unit(errors, unit))[_IN_UNITS]
    pd.testing.assert_frame_equal(overall_tests(errors)[_IN_UNITS], of_mean, rtol=1e-6, atol=0)


@pytest.mark.parametrize("unit", UNITS)
def test_no_answer_depends_on_the_unit(errors: pd.DataFrame, unit: float) -> None:
    plain, other = answer(errors), answer(in_unit(errors, unit))
    assert judged(plain) == judged(other)
    for one, two in zip(plain.choices, other.choices, strict=True):
        factor = 1.0 if one.relative else unit
        assert [c.share for c in one.candidates] == [c.share for c in two.candidates]

        def numbers(candidate: Candidate, by: float) -> list[float]:
            found = (candidate.score, candidate.cost, candidate.low, candidate.half)
            return [by * value for value in found]

        for c, d in zip(one.candidates, two.candidates, strict=True):
            assert numbers(c, factor) == pytest.approx(numbers(d, 1.0), rel=1e-6, abs=0)
        assert [re.sub(r"\d[\d.e-]*", "#", said) for said in one.surer] == [
            re.sub(r"\d[\d.e-]*", "#", said) for said in two.surer
        ]


def test_the_answer_tells_what_there_is_to_tell(errors: pd.DataFrame) -> None:
    """Not invariant by telling nothing: equal ones are tied, a constant lead is one."""
    (choice,) = (c for c in answer(in_unit(errors, 1e-9)).choices if c.datasets == ("one",))
    assert set(choice.tied) == {"vpa", "max"}
    assert set(choice.avoid) == {"mean", "sum"}
    by_aggr = dataset_tests(in_unit(errors, 1e-9)).set_index(["aggregation", "dataset"])
    assert by_aggr.loc[("mean", "one"), "p_corrected"] == 0.5**10
    assert by_aggr.loc[("mean", "one"), "p_wilcoxon"] == 0.5**10
    assert by_aggr.loc[("max", "one"), "p_wilcoxon"] == 1.0
    assert by_aggr.loc[("max", "one"), "p_corrected"] == 1.0


@pytest.mark.parametrize("unit", UNITS)
def test_functions_of_differences_are_free_of_units(unit: float) -> None:
    differences = np.array([1.0, 2.0, -0.5, 3.0, 2.0, 0.0])
    assert paired_wilcoxon(unit * differences) == paired_wilcoxon(differences)
    one, other = corrected_mean(differences), corrected_mean(unit * differences)
    assert one.p_greater == pytest.approx(other.p_greater, rel=1e-9)
    scaled = [unit * end for end in one.interval()]
    assert scaled == pytest.approx(other.interval(), rel=1e-9, abs=0)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_no_page_shows_a_small_number_as_zero_or_a_large_one_at_length(
    errors: pd.DataFrame, unit: float, tmp_path: Path
) -> None:
    folds = in_unit(errors, unit)
    mean = summarise(errors).set_index(["dataset", "aggregation"]).loc[("one", "sum"), "mean"]
    exponent = "e-9" if unit < 1 else "e9"
    shown = f"{mean:.2f}{exponent}"
    table = to_markdown(score_table(folds))
    page = write_markdown(folds, folds[:0], {}, tmp_path / "report.md").read_text("utf-8")
    html = render_report(folds, folds[:0], {})
    for text in (table, page, html):
        assert shown in text
        assert "0.000000" not in text
        assert "000000000" not in text
    (choice,) = (c for c in answer(folds).choices if c.datasets == ("one",))
    (first, *_) = findings(folds[folds["dataset"] == "one"])
    assert f"mean (MAE lower by 0.10{exponent}" in first
    assert "max (the same MAE, " in first
    assert f"mean (costs 0.10{exponent} of MAE, at least 0.10{exponent})" in " ".join(
        sentences(choice)
    )


def test_accuracies_are_the_same_to_the_last_graph(make_folds: Make) -> None:
    """One graph of ten thousands, in one fold of ten, is a difference."""
    rng = np.random.default_rng(5)
    right = rng.integers(7_000, 9_000, 10)
    better = right + np.eye(1, 10, 4, dtype=int)[0]
    folds = make_folds(
        {
            ("D", "GIN", "sum"): list(right / 10_000),
            ("D", "GIN", "vpa"): list(better / 10_000),
        }
    )
    (row,) = dataset_tests(folds).itertuples()
    assert (row.p_wilcoxon, row.rank_biserial) == (0.5, 1.0)
    assert answer(folds).choices[0].tied == ("vpa",)


def test_what_is_usual_and_what_is_settled() -> None:
    assert usual([]) == usual([0.0, 0.0]) == 0.0
    assert usual([float("inf"), -3.0], [float("nan")]) == 3.0
    assert usual([[1.0, 5.0], [1e13, 7.0], [2.0, 9.0]]) == 2.0
    assert settled([-math.inf, -0.5, math.nan, 0.1], 1e-12)[:2].tolist() == [-math.inf, -0.5]
    assert settled([], 1.0).tolist() == []
    assert settled([3.0, 1.0, 3.0, 1.5], 0.0).tolist() == [3.0, 1.0, 3.0, 1.5]
    near = 0.1 * 3
    assert near != 0.3
    assert settled([near, 1.0, 0.3], last_bits(1.0)).tolist() == [0.3, 1.0, 0.3]


def test_one_training_that_exploded_hides_no_other_difference() -> None:
    draw = np.random.default_rng(0)
    worse, better = 1 + 0.01 * draw.random(10), 0.5 + 0.01 * draw.random(10)
    worse[3] = 1e13
    assert paired_wilcoxon(worse - better, size=usual(worse, better)).p == 2.0**-10
    others = np.stack([-better, -better - 0.3, -worse], 1)  # larger is better
    standings = contest([Folds(others, 1, 1 / 9)])
    assert standings[0].cost == 0
    assert standings[1].cost > 0.2
    assert leading([Folds(others, 1, 1 / 9)])[1] == 0
