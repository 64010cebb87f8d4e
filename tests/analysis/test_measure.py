"""Everything that is made of scores knows which direction of their metric is better."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gnn_vpa.analysis import (
    compare_with_paper,
    dataset_tests,
    findings,
    fold_dots,
    measure,
    measure_of,
    overall_tests,
    render_report,
    score_table,
    split_by_setting,
    summarise,
    to_csv,
    to_latex,
    to_markdown,
    write_markdown,
)
from gnn_vpa.errors import UsageError
from gnn_vpa.training import METRICS

Make = Callable[..., pd.DataFrame]
SUM, VPA = ("MUTAG", "GIN", "sum"), ("MUTAG", "GIN", "vpa")
NOISE = np.array([0.00, 0.01, -0.01, 0.02, -0.02, 0.00, 0.01, -0.01, 0.02, -0.02])


@pytest.fixture
def errors(make_folds: Make) -> pd.DataFrame:
    """Of a regression: vpa has the smaller error."""
    folds = make_folds({SUM: list(0.42 + NOISE), VPA: list(0.31 - NOISE)})
    return folds.assign(metric="mae", higher_is_better=False)


def test_every_metric_of_a_training_is_known() -> None:
    for name, metric in METRICS.items():
        known = measure(name)
        assert (known.title, known.higher_is_better) == (metric.title, metric.higher_is_better)
        assert known.gain(*((1, 0) if metric.higher_is_better else (0, 1))) > 0


def test_an_error_is_not_in_percent_and_the_smallest_is_the_best(errors: pd.DataFrame) -> None:
    cells = summarise(errors).set_index("aggregation")
    assert cells.loc["vpa", "mean"] == pytest.approx(0.31)
    assert {row.label: row.cells["MUTAG"].best for row in score_table(errors).rows} == {
        "GIN+sum": False,
        "GIN+vpa": True,
    }


def test_three_significant_digits_are_printed(errors: pd.DataFrame) -> None:
    assert "| GIN+vpa | **0.310 ± 0.015** |" in to_markdown(score_table(errors))
    assert r"\textbf{0.310 $\pm$ 0.015}" in to_latex(score_table(errors))
    thousands = errors.assign(test_score=errors["test_score"] * 1e5)
    assert "**31000 ± 1491**" in to_markdown(score_table(thousands))


def test_vpa_leads_where_its_error_is_smaller(errors: pd.DataFrame) -> None:
    for tests in (overall_tests(errors), dataset_tests(errors)):
        (row,) = tests.itertuples()
        assert row.difference == pytest.approx(0.11)
        assert row.low > 0
        assert row.p_wilcoxon < 0.01
        assert row.rank_biserial == 1.0
    accuracies = errors.assign(metric="accuracy", higher_is_better=True)
    assert overall_tests(accuracies)["difference"].tolist() == pytest.approx([-11])


def test_sentences_say_better_and_in_what(errors: pd.DataFrame) -> None:
    first, *_ = findings(errors)
    assert first.startswith("With GIN on MUTAG, vpa is better than sum (MAE lower by 0.110, 95 % ")
    assert first.endswith(" lower).")
    worse, *_ = findings(errors.replace({"aggregation": {"vpa": "sum", "sum": "vpa"}}))
    assert "vpa is worse than sum (MAE higher by 0.110, 95 % interval 0.0" in worse
    assert worse.endswith(" higher).")
    alone = findings(errors[errors["aggregation"] == "vpa"])
    assert alone[0] == "GIN+vpa reaches an MAE of 0.310 ± 0.015 on MUTAG."


def test_the_paper_has_no_errors_to_compare_with(errors: pd.DataFrame) -> None:
    assert compare_with_paper(errors).empty


def test_errors_of_several_data_sets_have_no_average(make_folds: Make) -> None:
    cells = {
        (name, "GIN", aggr): list(size * (level + NOISE))
        for name, size in (("small", 1.0), ("large", 1000.0))
        for aggr, level in (("sum", 0.4), ("vpa", 0.3))
    }
    folds = make_folds(cells).assign(metric="rmse", higher_is_better=False)
    table = score_table(folds)
    assert not table.has_average
    assert all(row.average is None for row in table.rows)
    assert "Avg" not in to_markdown(table) + to_latex(table)
    (row,) = overall_tests(folds).itertuples()
    assert row.unit == "% of the best median RMSE"
    best = 0.3 + float(np.median(NOISE))
    assert row.difference == pytest.approx(100 * 0.1 / best)  # on both data sets, whatever the unit


@pytest.mark.parametrize(
    ("metric", "scores", "digits"),
    [
        ("mae", [0.412, 1e13, 2e13, 3e13], 3),  # three exploded, and one did not
        ("mae", [0.412, 0.5, 3.9, 4.0], 2),  # as the table's middle needs
        ("mae", [1e13, 2e13], -11),  # all did: there is nothing else to show
        ("r2", [0.91, 0.89, -1e20, -2e20], 3),
        ("r2", [-0.002, 0.91, 0.89], 3),  # that of a mean, which is no small error
        ("accuracy", [80.0, 90.0], 1),
    ],
)
def test_what_exploded_sets_no_decimals(metric: str, scores: list[float], digits: int) -> None:
    assert measure(metric).digits(scores) == digits


def test_metrics_are_settings_of_their_own(make_folds: Make, errors: pd.DataFrame) -> None:
    classes = make_folds({SUM: list(0.8 + NOISE), VPA: list(0.9 + NOISE)})
    both = pd.concat([classes, errors])
    assert [(setting.metric, len(part)) for setting, part in split_by_setting(both)] == [
        ("accuracy", 20),
        ("mae", 20),
    ]
    with pytest.raises(UsageError, match="2 settings"):
        summarise(both)
    with pytest.raises(UsageError, match=r"several metrics \(accuracy, mae\)"):
        measure_of(both)


def test_a_baseline_goes_with_the_settings_of_its_metric(
    make_folds: Make, errors: pd.DataFrame
) -> None:
    baseline = make_folds({("MUTAG", "MAJORITY", ""): [0.66] * 10}).assign(metric="accuracy")
    classes = make_folds({VPA: [0.9] * 10}).assign(metric="accuracy")
    parts = {s.metric: part for s, part in split_by_setting(pd.concat([classes, baseline, errors]))}
    assert "MAJORITY" in set(parts["accuracy"]["model"])
    assert "MAJORITY" not in set(parts["mae"]["model"])


def test_results_that_contradict_themselves_are_refused(errors: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match="say that of mae the higher is better"):
        summarise(errors.assign(higher_is_better=True))


def test_figures_and_pages_name_the_metric(errors: pd.DataFrame) -> None:
    assert ">test MAE (lower is better)</text>" in fold_dots(errors)
    page = re.sub(r"\s+", " ", render_report(errors, errors[:0], {}))
    assert "at the epoch of lowest validation MAE" in page
    assert "<caption>Test MAE</caption>" in page
    assert "Tests: is vpa better?" in page
    assert "the other minus vpa (positive: vpa is better), in MAE" in page
    assert "accura" not in page


def test_markdown_names_the_metric(errors: pd.DataFrame, tmp_path: Path) -> None:
    text = write_markdown(errors, errors[:0], {}, tmp_path / "r.md").read_text("utf-8")
    assert "Test MAE, mean ± standard deviation over folds. Lower is better." in text
    assert "accura" not in text


def test_csv_says_which_metric_and_repeat(errors: pd.DataFrame) -> None:
    head = to_csv(errors.assign(repeat=1)).splitlines()[0].split(",")
    assert {"metric", "higher_is_better", "repeat", "test_score"} <= set(head)


def test_repeats_have_a_standard_deviation_of_their_own(make_folds: Make) -> None:
    """Over all folds, and over the means of the repeats."""
    drawn = [
        make_folds({VPA: list(level + NOISE)}).assign(repeat=repeat, num_folds=10)
        for repeat, level in enumerate((0.79, 0.80, 0.81))
    ]
    (row,) = summarise(pd.concat(drawn)).itertuples()
    assert (row.folds, row.asked, row.repeats, row.note) == (30, 30, 3, "")
    assert row.repeats_std == pytest.approx(1.0)
    spread = np.concatenate([100 * (level + NOISE) for level in (0.79, 0.80, 0.81)])
    assert row.std == pytest.approx(spread.std(ddof=1))
    table = to_markdown(score_table(pd.concat(drawn)), paper=False)
    assert "80.0 ± 1.7 (repeats ± 1.0)" in table


def test_a_repeat_that_is_missing_is_told(make_folds: Make) -> None:
    drawn = [make_folds({VPA: list(0.8 + NOISE)}).assign(repeat=r, num_folds=10) for r in (0, 1)]
    once = make_folds({SUM: list(0.8 + NOISE)}).assign(repeat=0, num_folds=10)
    cells = summarise(pd.concat([*drawn, once])).set_index("aggregation")
    assert cells["note"].to_dict() == {"vpa": "", "sum": "10 of 20 folds"}


def test_repeats_are_paired_with_each_other(make_folds: Make) -> None:
    """Of repeat 0 sum has the folds that vpa has in repeat 1: no pair may cross them."""
    first = make_folds({SUM: list(0.5 + NOISE), VPA: list(0.6 + NOISE)}).assign(repeat=0)
    second = make_folds({SUM: list(0.7 + NOISE), VPA: list(0.8 + NOISE)}).assign(repeat=1)
    (row,) = overall_tests(pd.concat([first, second])).itertuples()
    assert row.pairs == 20
    assert (row.low, row.high) == pytest.approx((10, 10))
