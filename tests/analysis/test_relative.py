"""Errors with a unit, side by side: what one fold or one method does to the others' differences."""

import math
import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from gnn_vpa.analysis import answer, findings, overall_tests
from gnn_vpa.analysis.answer import Choice
from gnn_vpa.analysis.relative import percents
from gnn_vpa.analysis.summary import decimals

Make = Callable[..., pd.DataFrame]
LEVELS = {
    "A": {"sum": 1.2, "mean": 1.0, "vpa": 0.5, "max": 1.3},
    "B": {"sum": 12.0, "mean": 10.0, "vpa": 10.2, "max": 13.0},
}
EVERY = list(range(10))


@pytest.fixture
def errors(make_folds: Make) -> pd.DataFrame:
    """On A vpa halves the error; it is a little worse on B, where units are ten times as fine."""
    rng = np.random.default_rng(0)
    cells = {
        (dataset, model, aggr): list(level + levels["mean"] * rng.normal(0, 0.01, 10))
        for dataset, levels in LEVELS.items()
        for model in ("GIN", "GCN")
        for aggr, level in levels.items()
    }
    return make_folds(cells).assign(metric="mae", higher_is_better=False)


def exploded(errors: pd.DataFrame, model: str, aggr: str, folds: list[int]) -> pd.DataFrame:
    where = (errors["dataset"] == "A") & (errors["model"] == model)
    where &= (errors["aggregation"] == aggr) & errors["fold"].isin(folds)
    return errors.assign(test_score=errors["test_score"].mask(where, 1e9))


def against_mean(errors: pd.DataFrame) -> tuple[float, float]:
    (row,) = (
        row
        for row in overall_tests(errors).itertuples()
        if (row.model, row.aggregation) == ("GIN", "mean")
    )
    return row.difference, row.low


def whole(errors: pd.DataFrame) -> Choice:
    return next(c for c in answer(errors).choices if c.model == "GIN" and len(c.datasets) == 2)


@pytest.mark.parametrize("folds", [[3], EVERY], ids=["one fold", "every fold"])
@pytest.mark.parametrize("broken", [("sum",), ("sum", "max")], ids=["one", "half of them"])
def test_methods_that_explode_change_no_verdict_on_others(
    errors: pd.DataFrame, broken: tuple[str, ...], folds: list[int]
) -> None:
    found = errors
    for aggr in broken:
        found = exploded(found, "GIN", aggr, folds)
    assert against_mean(errors)[1] > 0
    assert against_mean(found) == against_mean(errors)
    (alone,) = (c for c in answer(found).choices if c.where == "GIN on A")
    for choice in (whole(errors), whole(found), alone):
        assert choice.may_be_best[0] == "vpa"
        assert "mean" in choice.avoid


def test_what_explodes_takes_no_decimals_from_others(errors: pd.DataFrame) -> None:
    broken = exploded(exploded(errors, "GIN", "sum", EVERY), "GIN", "max", EVERY)
    text = answer(broken).text
    costs = (
        r"mean \(costs \d\d\.\d % of the best median MAE, at least \d\d\.\d\), sum \(costs (\S+),"
    )
    found = re.search(costs, text)
    assert found is not None
    assert re.fullmatch(r"(1\.0\d|9\.9\d)e1[01]", found[1])  # half of 1e9 / 0.5, in percent
    assert re.search(r"- A: vpa; avoid mean \(0\.\d\d+, at least 0\.\d\d+\), .*\(1\.00e9,", text)
    assert decimals(broken) == decimals(errors)


def test_another_model_that_explodes_changes_nothing(errors: pd.DataFrame) -> None:
    broken = exploded(errors, "GCN", "vpa", EVERY)
    assert against_mean(broken) == against_mean(errors)


def test_the_answer_and_the_tests_count_in_the_same_percent(errors: pd.DataFrame) -> None:
    (mean,) = (c for c in whole(errors).candidates if c.name == "mean")
    assert mean.cost == pytest.approx(against_mean(errors)[0])


@pytest.mark.parametrize("more", [8.0, 0.1], ids=["worse", "better"])
def test_what_was_run_on_one_data_set_changes_no_average(make_folds: Make, more: float) -> None:
    """By a fifth vpa is better on A, by a tenth worse on B, whatever else A was run with."""
    rng = np.random.default_rng(0)
    both = {("A", "vpa"): 0.8, ("A", "mean"): 1.0, ("B", "vpa"): 11.0, ("B", "mean"): 10.0}

    def folds_of(levels: dict[tuple[str, str], float]) -> pd.DataFrame:
        cells = {
            (dataset, "GIN", aggr): list(level * (1 + rng.normal(0, 0.01, 10)))
            for (dataset, aggr), level in levels.items()
        }
        return make_folds(cells).assign(metric="mae", higher_is_better=False)

    two = folds_of(both)
    four = pd.concat([two, folds_of({("A", "sum"): more, ("A", "max"): more})])
    assert against_mean(two)[0] == pytest.approx((100 * 0.2 / 0.8 - 100 * 1 / 10) / 2, abs=2)
    assert against_mean(four) == against_mean(two)
    for found in (two, four):
        assert whole(found).may_be_best == ("vpa",)
        assert whole(found).candidates[1].cost == pytest.approx(against_mean(two)[0])
        assert any("vpa is better than" in said and " mean (" in said for said in findings(found))


def scores(folds: dict[tuple[str, str], list[float]]) -> pd.DataFrame:
    """Fold scores from {(dataset, aggregation): scores} of one model."""
    rows = [
        (dataset, "GIN", aggr, 0, fold, score)
        for (dataset, aggr), found in folds.items()
        for fold, score in enumerate(found)
    ]
    columns = ["dataset", "model", "aggregation", "repeat", "fold", "score"]
    return pd.DataFrame(rows, columns=columns)


def test_the_percent_is_of_the_best_median() -> None:
    found = {("A", "sum"): [1.0, 3.0, 2.0], ("A", "mean"): [4.0, 4.0, 1e9]}
    found |= {("A", "vpa"): [math.nan, 9.0, 9.0]}
    assert percents(scores(found)) == {("GIN", "A"): 100 / 2}
    # Of nobody's error there is no percent: who makes none sets no scale.
    zeros = {("A", "sum"): [0.0, 0.0], ("A", "mean"): [5.0, 5.0]}
    assert percents(scores(zeros)) == {("GIN", "A"): 100 / 5}
    assert percents(scores({("A", "sum"): [0.0, math.nan]})) == {("GIN", "A"): 100}


def test_the_percent_is_of_methods_that_have_all_data_sets() -> None:
    found = {("A", "sum"): [1.0], ("A", "mean"): [4.0], ("B", "mean"): [8.0]}
    assert percents(scores(found)) == {("GIN", "A"): 100 / 4, ("GIN", "B"): 100 / 8}
    # Where none has a score is no data set to have, and an infinite error is no score.
    none = {("C", "sum"): [math.nan], ("C", "mean"): [math.nan], ("B", "sum"): [math.inf]}
    assert percents(scores(found | none)) == {
        ("GIN", "A"): 100 / 4,
        ("GIN", "B"): 100 / 8,
        ("GIN", "C"): 100,
    }
    apart = {("A", "sum"): [1.0], ("B", "mean"): [8.0]}
    assert percents(scores(apart)) == {("GIN", "A"): 100 / 1, ("GIN", "B"): 100 / 8}


def test_the_text_says_of_what_the_percent_is(errors: pd.DataFrame) -> None:
    text = answer(errors).text
    assert re.search(
        r"The lead has vpa \([\d.]+ % of the best median\) in 100 % of resampled", text
    )
    assert re.search(r"costs [\d.]+ % of the best median MAE, at least", text)
    assert "% of the mean" not in text
