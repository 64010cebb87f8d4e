import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from gnn_vpa.analysis import fold_scores, overall_tests, summarise
from gnn_vpa.errors import UsageError

CELL = ("MUTAG", "GIN", "vpa")


def test_mean_and_sample_standard_deviation_in_percent(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    row = summarise(make_folds({CELL: [0.7, 0.8, 0.9]})).iloc[0]
    assert (row["mean"], row["std"]) == (pytest.approx(80), pytest.approx(10))
    assert (row["folds"], row["diverged"]) == (3, 0)


def test_seeds_are_averaged_within_a_fold_first(make_folds: Callable[..., pd.DataFrame]) -> None:
    """Two seeds that differ much and folds that do not: the spread over folds stays small."""
    seeds = [make_folds({CELL: [0.6, 0.6]}, seed=0), make_folds({CELL: [0.8, 0.8]}, seed=1)]
    row = summarise(pd.concat(seeds)).iloc[0]
    assert (row["mean"], row["std"], row["folds"]) == (pytest.approx(70), pytest.approx(0), 2)


def test_a_diverged_training_is_left_out_and_counted(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    row = summarise(make_folds({CELL: [0.7, math.nan, 0.9]})).iloc[0]
    assert (row["mean"], row["folds"], row["diverged"]) == (pytest.approx(80), 2, 1)


def test_a_diverged_training_has_no_accuracy_even_where_one_was_recorded(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    folds = make_folds({CELL: [0.7, math.nan]}).fillna({"test_score": 0.99})
    assert summarise(folds)["mean"].tolist() == pytest.approx([70])


def test_one_seed_of_a_fold_may_diverge(make_folds: Callable[..., pd.DataFrame]) -> None:
    seeds = [make_folds({CELL: [0.6]}, seed=0), make_folds({CELL: [math.nan]}, seed=1)]
    row = fold_scores(pd.concat(seeds)).iloc[0]
    assert (row["score"], row["diverged"]) == (pytest.approx(60), 1)


def test_one_fold_has_no_standard_deviation(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert np.isnan(summarise(make_folds({CELL: [0.7]}))["std"].iloc[0])


def test_no_folds_have_no_rows(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert summarise(make_folds({CELL: [0.7]}).iloc[:0]).empty


def test_settings_do_not_mix(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = pd.concat([make_folds({CELL: [0.7]}, variant=name) for name in ("released", "printed")])
    with pytest.raises(UsageError, match=r"2 settings .*as released.*split_by_setting"):
        summarise(folds)


def test_a_missing_column_is_named(make_folds: Callable[..., pd.DataFrame]) -> None:
    with pytest.raises(UsageError, match="no column test_score"):
        summarise(make_folds({CELL: [0.7]}).drop(columns="test_score"))


def note(folds: pd.DataFrame) -> str:
    (text,) = summarise(folds)["note"]
    return text


def test_a_complete_mean_needs_no_note(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert note(make_folds({CELL: [0.7] * 10}).assign(num_folds=10, classes=2)) == ""


def test_a_mean_without_its_diverged_folds_says_so(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert note(make_folds({CELL: [0.7] * 7 + [math.nan] * 3})) == "7 of 10 folds"
    assert note(make_folds({CELL: [math.nan] * 2})) == "0 of 2 folds"


def test_a_mean_without_folds_that_left_no_trace_says_so(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    assert note(make_folds({CELL: [0.7] * 7}).assign(num_folds=10)) == "7 of 10 folds"


def test_without_a_number_that_was_asked_for_other_methods_tell_it(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    dataset, model, _ = CELL
    other = (dataset, model, "another")
    cells = summarise(make_folds({CELL: [0.7] * 7, other: [0.7] * 10})).set_index("aggregation")
    assert cells["note"].to_dict() == {CELL[2]: "7 of 10 folds", "another": ""}


# pandas 2 warns that columns without values will count; here they make no difference.
@pytest.mark.filterwarnings("ignore:The behavior of DataFrame concatenation:FutureWarning")
def test_a_lost_seed_is_said_where_its_fold_has_another(
    make_folds: Callable[..., pd.DataFrame],
) -> None:
    seeds = [make_folds({CELL: [0.6, 0.7]}), make_folds({CELL: [0.6, math.nan]}, seed=1)]
    assert note(pd.concat(seeds)) == "3 of 4 trainings"


def test_one_class_is_said(make_folds: Callable[..., pd.DataFrame]) -> None:
    assert note(make_folds({CELL: [1.0] * 3}).assign(classes=1)) == "one class"
    both = make_folds({CELL: [1.0, 1.0, math.nan]}).assign(classes=1)
    assert note(both) == "one class, 2 of 3 folds"


def test_an_unknown_number_of_classes_is_not_one(make_folds: Callable[..., pd.DataFrame]) -> None:
    folds = make_folds({CELL: [1.0] * 3})
    assert note(folds.assign(classes=pd.array([pd.NA] * 3, "Int64"))) == ""


def test_each_repeat_may_have_a_seed_of_its_own(make_folds: Callable[..., pd.DataFrame]) -> None:
    """What is missing is counted against the trainings of a fold, not against all seeds."""
    both = {CELL: [0.6, 0.7], ("MUTAG", "GIN", "sum"): [0.5, 0.6]}
    folds = pd.concat([make_folds(both, seed=n).assign(repeat=n) for n in (0, 1)])
    assert fold_scores(folds)[["trainings", "seeds"]].drop_duplicates().values.tolist() == [[1, 1]]
    assert summarise(folds)["note"].tolist() == ["", ""]
    assert overall_tests(folds)["missing"].tolist() == [0]
    whole = pd.concat([folds, make_folds(both, seed=2).assign(repeat=0)])
    assert set(fold_scores(whole)["seeds"]) == {2}  # as often as on any fold
    assert set(summarise(whole)["note"]) == {"6 of 8 trainings"}
