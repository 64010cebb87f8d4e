import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from gnn_vpa.analysis import dataset_tests, findings, overall_tests

SUM, MEAN, VPA = (("mine", "GIN", name) for name in ("sum", "mean", "vpa"))
NOISE = [0.00, 0.01, -0.01, 0.02, -0.02, 0.00, 0.01, -0.01, 0.02, -0.02]


def around(mean: float, turn: int = 0) -> list[float]:
    return [mean + noise for noise in np.roll(NOISE, turn)]


def test_a_clear_lead_is_claimed(make_folds: Callable[..., pd.DataFrame]) -> None:
    (sentence,) = findings(make_folds({SUM: around(0.6), VPA: around(0.8, 1)}))
    assert sentence.startswith(
        "With GIN on mine, vpa is more accurate than sum (+20.0 points, 95 %"
    )


def test_a_clear_loss_is_admitted(make_folds: Callable[..., pd.DataFrame]) -> None:
    (sentence,) = findings(make_folds({SUM: around(0.8), VPA: around(0.6, 1)}))
    assert "vpa is less accurate than sum (\N{MINUS SIGN}20.0 points" in sentence


def test_no_difference_is_no_difference(make_folds: Callable[..., pd.DataFrame]) -> None:
    (sentence,) = findings(make_folds({SUM: around(0.8), VPA: around(0.8, 1)}))
    assert "vpa is not distinguishable from sum (0.0 points" in sentence


def test_folds_that_are_all_equal_have_no_interval(make_folds: Callable[..., pd.DataFrame]) -> None:
    (sentence,) = findings(make_folds({SUM: around(0.8), VPA: around(0.8)}))
    assert sentence.endswith(
        "vpa is not distinguishable from sum (0.0 points, the same on every fold, which gives no "
        "interval)."
    )


def test_averages_say_that_folds_are_equal_within_a_data_set(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    cells = {(name, *SUM[1:]): around(0.8) for name in ("one", "two")}
    cells |= {("one", *VPA[1:]): around(0.9), ("two", *VPA[1:]): around(0.7)}
    (sentence,) = findings(make_folds(cells))
    assert "(0.0 points, the same on every fold of a data set, which gives no int" in sentence


def test_where_the_two_tests_disagree_it_is_said(make_folds: Callable[..., pd.DataFrame]) -> None:
    lead = [0.00, 0.03, 0.01, 0.08, 0.02, -0.01, 0.04, 0.01, 0.06, 0.005]
    first, second = findings(make_folds({SUM: [0.6] * 10, VPA: [0.6 + x for x in lead]}))
    assert "not distinguishable from sum" in first
    assert second.startswith("The paper's Wilcoxon test does find vpa better than GIN+sum (p = 0.0")
    assert second.endswith("the corrected test does not confirm it.")


def test_where_the_two_tests_agree_nothing_is_doubted(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    """A one-sided p below 0.05 in both, though the two-sided interval has room for zero."""
    lead = [0.01, 0.03, 0.01, 0.08, 0.02, 0.005, 0.04, 0.01, 0.06, 0.005]
    (sentence,) = findings(make_folds({SUM: [0.6] * 10, VPA: [0.6 + x for x in lead]}))
    assert "not distinguishable from sum" in sentence


def test_one_fold_is_not_tested(make_folds: Callable[..., pd.DataFrame]) -> None:
    (sentence,) = findings(make_folds({SUM: [0.6], VPA: [0.8]}))
    assert "untested against sum (+20.0 points, a single fold has no interval)" in sentence


def test_two_equal_folds_prove_nothing(make_folds: Callable[..., pd.DataFrame]) -> None:
    (sentence, *_) = findings(make_folds({SUM: [0.7, 0.8], VPA: [0.75, 0.85]}))
    few = "the same on every fold, and too few of one sign for an interval"
    assert f"untested against sum (+5.0 points, {few})" in sentence


def test_a_data_set_of_too_few_folds_is_not_called_the_same_on_all(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    lead = [0.01, 0.03, 0.01, 0.08, 0.02, 0.005, 0.04, 0.01, 0.06, 0.005]
    for few in (1, 2):
        cells = {
            SUM: [0.6] * 10,
            VPA: [0.6 + x for x in lead],
            ("b", *SUM[1:]): [0.5] * few,
            ("b", *VPA[1:]): [0.75] * few,
        }
        text = " ".join(findings(make_folds(cells)))
        assert "points, a data set has too few folds that differ for an interval)" in text
        assert "the same on every fold" not in text


def test_trainings_without_a_score_are_told_beside_the_test(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    lost = [make_folds({SUM: [0.6, 0.7], VPA: [0.8, 0.7]})]
    lost += [make_folds({SUM: [math.nan, 0.7], VPA: [0.8, 0.7]}, seed=1)]
    folds = pd.concat(lost)
    assert "over 2 of 2 pairs, 1 training missing" in findings(folds)[0]
    for tests in (overall_tests, dataset_tests):
        assert tests(folds)["missing"].tolist() == [1]
        assert tests(lost[0])["missing"].tolist() == [0]


def test_one_aggregation_has_nothing_to_be_tested_against(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    assert findings(make_folds({VPA: [0.8, 0.8]})) == [
        "GIN+vpa reaches 80.0 ± 0.0 % on mine.",
        "Only one aggregation was run for each model, so there is nothing to test it against.",
    ]


def test_without_vpa_nothing_is_tested(make_folds: Callable[..., pd.DataFrame]) -> None:
    first, second = findings(make_folds({SUM: [0.8, 0.8], MEAN: [0.9, 0.9]}))
    assert first == "The most accurate cell: GIN+mean reaches 90.0 ± 0.0 % on mine."
    assert second.startswith("vpa was not run")


def test_folds_that_are_not_shared(make_folds: Callable[..., pd.DataFrame]) -> None:
    second = findings(make_folds({SUM: [0.8, math.nan], VPA: [math.nan, 0.8]}))[1]
    assert "no finished fold in common" in second


def test_nothing_finished(make_folds: Callable[..., pd.DataFrame]) -> None:
    nothing = make_folds({VPA: [0.8]}).iloc[:0]
    assert findings(nothing) == [
        "No fold has finished with an accuracy, so there is nothing to compare."
    ]


def test_all_diverged(make_folds: Callable[..., pd.DataFrame]) -> None:
    first, second = findings(make_folds({VPA: [math.nan]}))
    assert first.startswith("No fold has finished")
    assert second.startswith("1 of 1 training diverged")


def test_diverged_trainings_are_named_with_their_epoch(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    last = findings(make_folds({SUM: [0.6, 0.6, math.nan], VPA: [0.8] * 3}))[-1]
    assert "1 of 6 trainings diverged" in last
    assert "GIN+sum on mine, fold 2 at epoch 17" in last


def test_many_diverged_trainings_are_counted(make_folds: Callable[..., pd.DataFrame]) -> None:
    last = findings(make_folds({SUM: [math.nan] * 8, VPA: [0.8] * 8}))[-1]
    assert "fold 4 at epoch 17; 3 more)" in last


def test_several_models_have_a_headline(full_run: pd.DataFrame) -> None:
    headline, *rest = findings(full_run)
    assert headline.startswith("vpa is more accurate than ")
    assert " of the 8 methods it was compared with" in headline
    assert [s.split()[1] for s in rest[:4]] == ["GIN", "GCN", "SGC", "GAT"]
    assert any("plain SGC" in sentence for sentence in rest)


def test_agreement_with_the_paper_is_counted(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds(
        {("MUTAG", "GIN", "vpa"): around(0.867), ("MUTAG", "GIN", "sum"): around(0.5)}
    )
    assert any(
        s.startswith("1 of 2 numbers that the paper has too is within") for s in findings(folds)
    )


LOST = [math.nan] * 3


def test_a_lead_over_fewer_folds_says_over_how_many(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    first, *rest = findings(make_folds({SUM: around(0.6)[:7] + LOST, VPA: around(0.8, 1)}))
    assert "sum (+19.6 points over 7 of 10 pairs, 95 % interval" in first
    assert any(s.startswith("Not over all folds: GIN+sum on mine (7 of 10).") for s in rest)


def test_folds_that_left_no_trace_are_missed(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({SUM: around(0.6)[:7], VPA: around(0.8, 1)}).assign(num_folds=10)
    first, last = findings(folds)
    assert "over 7 of 10 pairs" in first
    assert last.startswith("Not over all folds: GIN+sum on mine (7 of 10).")


def test_a_lead_on_fewer_data_sets_says_on_how_many(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    other = ("other", "GIN", "vpa")
    first, *_ = findings(make_folds({SUM: around(0.6), VPA: around(0.8, 1), other: around(0.7)}))
    assert "over 2 data sets, vpa is more accurate than sum (+20.0 points on 1 of them" in first
    assert "over 10 of 20 pairs" in first


def test_the_best_cell_says_what_it_stands_for(make_folds: Callable[..., pd.DataFrame]) -> None:
    first, *_ = findings(make_folds({VPA: around(0.8)[:7] + LOST}))
    assert "% (7 of 10 folds) on mine." in first


def test_one_class_tells_nothing(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({SUM: [1.0] * 3, VPA: [1.0] * 3}).assign(classes=1)
    assert findings(folds)[-1].startswith("mine has only one class, so that every method is right")


def test_incomplete_numbers_beside_the_papers_are_counted(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    folds = make_folds({("MUTAG", "GIN", "vpa"): around(0.867)[:7] + LOST})
    assert any(s.endswith("1 of ours is incomplete.") for s in findings(folds))
