import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from gnn_vpa.analysis import corrected_mean, dataset_tests, holm, overall_tests
from gnn_vpa.analysis.style import DATASETS

SUM, VPA = ("MUTAG", "GIN", "sum"), ("MUTAG", "GIN", "vpa")
RISING = [0.01 * (fold + 1) for fold in range(10)]


def test_every_fold_better_is_as_rare_as_its_signs(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({SUM: [0.5] * 10, VPA: [0.5 + lead for lead in RISING]})
    row = overall_tests(folds).iloc[0]
    assert (row["model"], row["aggregation"], row["pairs"]) == ("GIN", "sum", 10)
    assert row["p_wilcoxon"] == 2.0**-10
    assert row["rank_biserial"] == 1.0
    assert row["difference"] == pytest.approx(5.5)


def test_the_corrected_test_is_that_of_the_differences(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    row = overall_tests(make_folds({SUM: [0.5] * 10, VPA: [0.5 + lead for lead in RISING]})).iloc[0]
    expected = corrected_mean(100 * np.array(RISING))
    assert row["p_corrected"] == pytest.approx(expected.p_greater)
    assert (row["low"], row["high"]) == pytest.approx(expected.interval())


def test_all_data_sets_are_pooled_as_in_the_paper(full_run: pd.DataFrame) -> None:
    finished = full_run[full_run["model"] == "GCN"].pivot(
        index=["dataset", "fold"], columns="aggregation", values="test_score"
    )
    expected = wilcoxon((finished["vpa"] - finished["sum"]).round(9), alternative="greater").pvalue
    tests = overall_tests(full_run).set_index(["model", "aggregation"])
    assert tests.loc[("GCN", "sum"), "p_wilcoxon"] == pytest.approx(expected)
    assert tests.loc[("GCN", "sum"), "pairs"] == 90
    assert tests.loc[("GCN", "sum"), "p_paper"] == 9.9e-9


def test_the_papers_p_is_for_its_nine_sets_alone(make_folds: Callable[..., pd.DataFrame]) -> None:
    row = overall_tests(make_folds({SUM: [0.5] * 10, VPA: [0.6] * 10})).iloc[0]
    assert math.isnan(row["p_paper"])


def test_comparisons_are_those_of_the_paper(full_run: pd.DataFrame) -> None:
    tests = overall_tests(full_run)
    assert list(zip(tests["model"], tests["aggregation"], strict=True)) == [
        *(
            (model, aggregation)
            for model in ("GIN", "GCN")
            for aggregation in ("sum", "mean", "max")
        ),
        ("SGC", "default"),
        ("GAT", "default"),
    ]


def test_a_diverged_fold_takes_its_partner_along(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({SUM: [0.5, math.nan, 0.5], VPA: [0.6, 0.9, 0.7]})
    row = overall_tests(folds).iloc[0]
    assert row["pairs"] == 2
    assert row["difference"] == pytest.approx(15)


def test_folds_are_paired_by_number_not_by_row(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({SUM: [0.5, 0.6, 0.7], VPA: [0.51, 0.61, 0.71]})
    shuffled = folds.sample(frac=1, random_state=0)
    assert overall_tests(shuffled).equals(overall_tests(folds))
    row = overall_tests(folds).iloc[0]
    assert row["difference"] == pytest.approx(1)
    # Three folds that all say the same are too few to be sure of it.
    assert math.isnan(row["low"])
    assert row["p_corrected"] == 1 / 8


def test_all_equal_shows_nothing(make_folds: Callable[..., pd.DataFrame]) -> None:
    row = overall_tests(make_folds({SUM: [0.5] * 10, VPA: [0.5] * 10})).iloc[0]
    assert (row["difference"], row["p_wilcoxon"], row["p_corrected"]) == (0, 1, 1)


def test_one_fold_has_no_interval(make_folds: Callable[..., pd.DataFrame]) -> None:
    row = overall_tests(make_folds({SUM: [0.5], VPA: [0.6]})).iloc[0]
    assert row["p_wilcoxon"] == 0.5
    assert math.isnan(row["low"])


@pytest.mark.parametrize("alone", [SUM, VPA])
def test_nothing_to_compare_gives_no_rows(
    make_folds: Callable[..., pd.DataFrame], alone: tuple[str, str, str]
) -> None:
    folds = make_folds({alone: [0.5, 0.6], ("MUTAG", "WL", ""): [0.5, 0.6]})
    assert overall_tests(folds).empty
    assert dataset_tests(folds).empty


def test_folds_in_common_are_needed(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert overall_tests(make_folds({SUM: [math.nan, 0.5], VPA: [0.5, math.nan]})).empty


def test_each_data_set_has_its_own_test_and_holm_spans_them(full_run: pd.DataFrame) -> None:
    tests = dataset_tests(full_run)
    assert len(tests) == 8 * 9
    family = tests[(tests["model"] == "SGC")]
    assert family["dataset"].tolist() == list(DATASETS)
    assert family["p_wilcoxon_holm"].tolist() == holm(family["p_wilcoxon"].tolist())
    assert family["p_corrected_holm"].tolist() == holm(family["p_corrected"].tolist())


def test_seeds_do_not_make_more_pairs(make_folds: Callable[..., pd.DataFrame]) -> None:
    cells = {SUM: [0.5, 0.6], VPA: [0.6, 0.8]}
    twice = pd.concat([make_folds(cells, seed=seed) for seed in (0, 1)])
    assert overall_tests(twice).equals(overall_tests(make_folds(cells)))
