"""Errors with a unit, side by side: what one fold or one method does to the others' differences."""

import math
import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from gnn_vpa.analysis import answer, overall_tests
from gnn_vpa.analysis.answer import Choice
from gnn_vpa.analysis.relative import percent

Make = Callable[..., pd.DataFrame]
LEVELS = {"A": {"sum": 1.2, "mean": 1.0, "vpa": 0.5}, "B": {"sum": 12.0, "mean": 10.0, "vpa": 10.2}}


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


# Where every fold explodes, the median over three methods becomes another's: 1.2 of it at most.
@pytest.mark.parametrize(
    ("folds", "within"), [([3], 0.01), (list(range(10)), 0.25)], ids=["one fold", "every fold"]
)
def test_a_method_that_explodes_changes_no_verdict_on_others(
    errors: pd.DataFrame, folds: list[int], within: float
) -> None:
    broken = exploded(errors, "GIN", "sum", folds)
    assert against_mean(errors)[1] > 0
    assert against_mean(broken) == pytest.approx(against_mean(errors), rel=within)
    for found in (errors, broken):
        assert whole(found).may_be_best[0] == "vpa"
        assert "mean" in whole(found).avoid


def test_another_model_that_explodes_changes_nothing(errors: pd.DataFrame) -> None:
    broken = exploded(errors, "GCN", "vpa", list(range(10)))
    assert against_mean(broken) == against_mean(errors)


def test_the_answer_and_the_tests_count_in_the_same_percent(errors: pd.DataFrame) -> None:
    (mean,) = (c for c in whole(errors).candidates if c.name == "mean")
    assert mean.cost == pytest.approx(against_mean(errors)[0])


def test_the_percent_is_of_the_median_of_what_errs() -> None:
    assert percent([[1.0, 4.0, math.nan], [3.0, 4.0, 9.0], [2.0, 1e9, 9.0]]) == 100 / 4
    assert percent([[0.0, 5.0, 0.0], [0.0, 5.0, 0.0]]) == 100 / 5
    assert percent([[0.0, 0.0], [math.nan, 0.0]]) == 100


def test_the_text_says_of_what_the_percent_is(errors: pd.DataFrame) -> None:
    text = answer(errors).text
    assert re.search(r"The lead has vpa \([\d.]+ % of the median\) in 100 % of resampled", text)
    assert re.search(r"costs [\d.]+ % of the median MAE, at least", text)
    assert "% of the mean" not in text
