"""The answer from frames of results: what it says, and what it says it cannot tell."""

import json
import math
import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from gnn_vpa.analysis import Answer, answer, answer_dots
from gnn_vpa.errors import UsageError

Make = Callable[..., pd.DataFrame]
SUM, MEAN, MAX, VPA = (("mine", "GIN", name) for name in ("sum", "mean", "max", "vpa"))
NOISE = [0.00, 0.01, -0.01, 0.02, -0.02, 0.00, 0.01, -0.01, 0.02, -0.02]


def around(mean: float, turn: int = 0, spread: float = 1.0) -> list[float]:
    return [mean + spread * noise for noise in np.roll(NOISE, turn)]


def signals(variances: dict[str, list[float]], dataset: str = "mine") -> pd.DataFrame:
    rows = [
        [dataset, "GIN", name, "released", "auto", f"layers.{place}", value]
        for name, of in variances.items()
        for place, value in enumerate(of)
    ]
    columns = ["dataset", "model", "aggregation", "variant", "features", "layer", "variance"]
    return pd.DataFrame(rows, columns=columns)


def test_a_clear_best_is_named_and_what_the_others_cost(make_folds: Make) -> None:
    found = answer(make_folds({SUM: around(0.8, 1), MEAN: around(0.6), VPA: around(0.9, 2)}))
    assert found.may_be_best == {"GIN on mine": ("vpa",)}
    assert found.avoid == {"GIN on mine": ("sum", "mean")}
    assert found.default == {"GIN on mine": "vpa"}
    assert found.text.startswith(
        "With GIN on mine, vpa is the best of 3 aggregations (95 % confidence, 10 folds). "
        "The lead has vpa (90.0 %) in 100 % of resampled folds. Avoid sum (costs 10.0 points, at "
        "least "
    )


def test_vpa_is_one_candidate_among_the_others(make_folds: Make) -> None:
    found = answer(make_folds({SUM: around(0.9), MEAN: around(0.6, 1), VPA: around(0.7, 2)}))
    assert found.may_be_best == {"GIN on mine": ("sum",)}
    assert found.avoid == {"GIN on mine": ("vpa", "mean")}
    without = answer(make_folds({SUM: around(0.9), MEAN: around(0.6, 1)}))
    assert without.may_be_best == {"GIN on mine": ("sum",)}


def test_where_nothing_can_be_told_apart_it_says_so_and_names_a_default(make_folds: Make) -> None:
    found = answer(make_folds({SUM: around(0.8), VPA: around(0.801, 1)}))
    assert found.may_be_best == {"GIN on mine": ("vpa", "sum")}
    assert found.avoid == {"GIN on mine": ()}
    text = found.text
    assert "no aggregation is shown to be better than another (10 folds): vpa or sum may be" in text
    assert "As a default, take vpa: its score is the best so far." in text
    assert "Against the true best that costs at most" in text
    assert "nothing within reach would tell sum from vpa" in text


def test_a_tie_is_not_called_the_best(make_folds: Make) -> None:
    text = answer(make_folds({SUM: around(0.8), VPA: around(0.8)})).text
    assert "As a default, take sum: no score is better, though vpa has the same." in text
    assert "sum and vpa have the same score on every fold: nothing here tells them apart." in text
    assert "best so far" not in text
    assert "at most" not in text  # equal folds bound nothing
    assert "What would make it surer" not in text


def test_equal_scores_of_a_single_fold_are_said_to_be_equal(make_folds: Make) -> None:
    cells = {SUM: [0.8], VPA: [0.8]}
    assert "All have the same score (80.0 %)." in answer(make_folds(cells)).text
    two = answer(make_folds({**cells, MEAN: [0.7]})).text
    assert "The best score so far have sum and vpa (80.0 %)." in two


def test_the_default_keeps_the_signal_where_scores_do_not_tell(make_folds: Make) -> None:
    folds = make_folds({SUM: around(0.801), VPA: around(0.8, 1)})
    known = signals({"sum": [1, 30, 900], "vpa": [1, 1, 1.1]})
    found = answer(folds, known)
    assert found.may_be_best == {"GIN on mine": ("sum", "vpa")}
    assert found.default == {"GIN on mine": "vpa"}
    assert (
        "take vpa: it keeps the signal at the start: over 3 layers its variance changes by a "
        "factor of 1.1, of 9e2 with sum."
    ) in found.text
    alike = answer(folds, signals({"sum": [1, 1, 2], "vpa": [1, 1, 1]}))
    assert alike.default == {"GIN on mine": "sum"}
    assert "the signal at the start is alike with all of them" in alike.text


def test_rounding_is_no_signal_that_is_kept(make_folds: Make) -> None:
    # The mean of features that are all the same: what a norm makes of rounding may seem steady.
    folds = make_folds({SUM: around(0.801), MEAN: around(0.8, 1)})
    found = answer(folds, signals({"sum": [1, 30, 900], "mean": [8e-10, 6e-10, 8e-10]}))
    assert found.default == {"GIN on mine": "sum"}
    assert "the signal" not in found.text


def test_degrees_are_named_where_the_data_set_is_known(make_folds: Make) -> None:
    cells = {("COLLAB", "GIN", "sum"): around(0.801), ("COLLAB", "GIN", "vpa"): around(0.8, 1)}
    known = signals({"sum": [1, 30, 900], "vpa": [1, 1, 1.1]}, "COLLAB")
    assert "(nodes have 66.0 neighbours on average)" in answer(make_folds(cells), known).text


def test_of_an_error_the_lowest_is_the_best(make_folds: Make) -> None:
    folds = make_folds({SUM: around(0.8, 1), MEAN: around(0.6), VPA: around(0.9, 2)})
    found = answer(folds.assign(metric="mae", higher_is_better=False))
    assert found.may_be_best == {"GIN on mine": ("mean",)}
    assert found.avoid == {"GIN on mine": ("sum", "vpa")}
    assert "The lead has mean (0.600) in 100 % of resampled folds." in found.text
    assert "Avoid sum (costs 0.200 of MAE, at least 0.1" in found.text


def test_metrics_are_never_averaged_together(make_folds: Make) -> None:
    classes = make_folds({SUM: around(0.6), VPA: around(0.9, 1)}).assign(metric="accuracy")
    numbers = make_folds({("QM9", *SUM[1:]): around(0.6), ("QM9", *VPA[1:]): around(0.9, 1)})
    found = answer(pd.concat([classes, numbers.assign(metric="mae")]))
    assert [(c.datasets, c.may_be_best) for c in found.choices] == [
        (("mine",), ("vpa",)),
        (("QM9",), ("sum",)),
    ]


def test_errors_of_data_sets_with_other_units_are_averaged_in_percent(make_folds: Make) -> None:
    cells = {
        ("small", "GIN", "sum"): around(1.0),
        ("small", "GIN", "vpa"): around(0.9, 1),
        ("large", "GIN", "sum"): around(1000.0, 2, 1000),
        ("large", "GIN", "vpa"): around(990.0, 3, 1000),
    }
    whole, *_ = answer(make_folds(cells).assign(metric="rmse")).choices
    assert whole.relative
    best, other = whole.candidates
    assert best.name == "vpa"
    # Of 0.9 and of 990, the best medians, each data set counting alike.
    assert other.cost == pytest.approx((100 * 0.1 / 0.9 + 100 * 10 / 990) / 2)
    assert "% of the best median RMSE" in whole.unit


def test_over_several_data_sets_and_on_each(make_folds: Make) -> None:
    cells = {
        ("a", "GIN", "sum"): around(0.9),
        ("a", "GIN", "vpa"): around(0.6, 1),
        ("b", "GIN", "sum"): around(0.6, 2),
        ("b", "GIN", "vpa"): around(0.8, 3),
    }
    found = answer(make_folds(cells))
    assert found.may_be_best == {
        "GIN on 2 data sets": ("sum",),
        "GIN on a": ("sum",),
        "GIN on b": ("vpa",),
    }
    assert "No aggregation may be the best on every data set" in found.text
    assert "\n- b: vpa; avoid sum (20.0, at least " in found.text


def test_a_data_set_that_makes_most_of_the_uncertainty_is_named(make_folds: Make) -> None:
    cells = {
        ("quiet", "GIN", "sum"): around(0.8, 0, 0.1),
        ("quiet", "GIN", "vpa"): around(0.81, 1, 0.1),
        ("tiny", "GIN", "sum"): around(0.7, 2, 10),
        ("tiny", "GIN", "vpa"): around(0.71, 3, 10),
    }
    text = answer(make_folds(cells)).text
    assert "100 % of its uncertainty is that of tiny alone" in text


def test_one_aggregation_only(make_folds: Make) -> None:
    found = answer(make_folds({VPA: around(0.8)}))
    assert found.default == {"GIN on mine": None}
    assert "only vpa can be judged (80.0 %): there is nothing to compare it with" in found.text


def test_one_fold_cannot_tell(make_folds: Make) -> None:
    found = answer(make_folds({SUM: [0.8], VPA: [0.9]}))
    assert found.may_be_best == {"GIN on mine": ("vpa", "sum")}
    assert found.default == {"GIN on mine": None}
    assert "1 fold cannot tell a difference from chance" in found.text


def test_an_aggregation_that_mostly_diverged_is_not_compared(make_folds: Make) -> None:
    lost = [math.nan] * 6 + [0.99] * 4
    found = answer(make_folds({SUM: lost, MEAN: around(0.6), VPA: around(0.8, 1)}))
    assert found.may_be_best == {"GIN on mine": ("vpa",)}
    assert "Not compared: sum (4 of 10 folds finished, 6 trainings diverged)." in found.text


def test_an_aggregation_that_lost_some_folds_is_compared_on_the_others(make_folds: Make) -> None:
    few = [math.nan] * 2 + around(0.6)[2:]
    found = answer(make_folds({SUM: few, VPA: around(0.8, 1)}))
    assert found.choices[0].folds == 8
    assert "In 2 of 10 folds sum diverged: it is compared on the others" in found.text


def seeds(make_folds: Make, cells: dict[tuple[str, str, str], list[list[float]]]) -> pd.DataFrame:
    """Folds of several seeds: a list of scores for each."""
    return pd.concat(
        make_folds({cell: [scores]}, seed=seed).assign(fold=fold)
        for cell, of_folds in cells.items()
        for fold, of_seeds in enumerate(of_folds)
        for seed, scores in enumerate(of_seeds)
    )


def test_seeds_that_diverged_are_told_though_every_fold_has_a_score(make_folds: Make) -> None:
    lucky = [[score, math.nan, math.nan] for score in around(0.9)]
    steady = [[score] * 3 for score in around(0.8, 1)]
    found = answer(seeds(make_folds, {SUM: lucky, VPA: steady}))
    assert found.may_be_best == {"GIN on mine": ("sum",)}
    said = "its folds count with the others, which may flatter it."
    assert f"20 of 30 trainings of sum diverged: {said}" in found.text
    assert "of vpa" not in found.text
    assert "flatter" not in answer(seeds(make_folds, {SUM: steady, VPA: steady})).text


def test_folds_and_seeds_that_are_missing_are_told_apart(make_folds: Make) -> None:
    few = [[score] * 2 for score in around(0.9)]
    few[0] = [math.nan, math.nan]  # a fold that diverged, and a seed of the next
    few[1] = [0.9, math.nan]
    steady = [[score] * 2 for score in around(0.8, 1)]
    folds = seeds(make_folds, {SUM: few, VPA: steady})
    text = answer(folds).text
    assert "In 1 of 10 folds sum diverged: it is compared on the others" in text
    assert "1 of 18 trainings of sum diverged: " in text
    is_sum = folds["aggregation"] == "sum"
    gone = (is_sum & (folds["fold"] == 0)) | (is_sum & (folds["fold"] == 2) & (folds["seed"] == 1))
    text = answer(folds[~gone]).text
    assert "In 1 of 10 folds sum has not finished" in text
    assert "2 of 18 trainings of sum diverged or have not finished: " in text
    text = answer(folds[~gone & (folds["status"] == "done")]).text
    assert "2 of 18 trainings of sum have not finished: " in text


def test_an_average_says_where_trainings_are_missing(make_folds: Make) -> None:
    cells = {
        (name, "GIN", aggr): [[score] * 2 for score in around(level, turn)]
        for turn, name in enumerate("abc")
        for aggr, level in (("sum", 0.9), ("vpa", 0.8 + turn / 100))
    }
    for name in "ac":
        cells[name, "GIN", "sum"][3] = [0.95, math.nan]
    main, *_ = answer(seeds(make_folds, cells)).choices
    said = "On a and c sum is without some trainings, which may flatter it."
    assert said in main.cautions
    assert said in answer(seeds(make_folds, cells)).text


def test_a_data_set_where_too_few_folds_agree_makes_no_claim(make_folds: Make) -> None:
    """Of b two folds have the same lead: nobody knows how far chance moves it."""
    cells = {
        ("a", "GIN", "sum"): around(0.8),
        ("a", "GIN", "mean"): around(0.5, 1),
        ("a", "GIN", "vpa"): around(0.82, 2),
        ("b", "GIN", "sum"): [0.5, 0.75],
        ("b", "GIN", "mean"): [0.25, 0.5],
        ("b", "GIN", "vpa"): [0.75, 1.0],
    }
    found = answer(make_folds(cells))
    whole = found.choices[0]
    assert whole.is_compared
    assert whole.may_be_best == ("vpa", "sum", "mean")
    assert all(math.isinf(c.half) for c in whole.candidates)
    text = found.text
    assert "no aggregation is shown to be better than another (12 folds)" in text
    assert "cannot tell a difference from chance" not in text
    assert "far below the noise" not in text
    for said in ("nan", "inf"):
        assert not re.search(rf"\b{said}\b", text)
    json.loads(found.json())
    picture = answer_dots(whole)
    assert "nan" not in picture
    assert "inf" not in picture


def test_it_does_not_say_what_would_help_where_too_few_folds_agree(make_folds: Make) -> None:
    """On a there is nothing but noise; on b it is not known how much of it there is."""
    cells = {
        ("a", "GIN", "sum"): around(0.5, 0, 10),
        ("a", "GIN", "vpa"): around(0.5, 1, 10),
        ("b", "GIN", "sum"): [0.5, 0.75],
        ("b", "GIN", "vpa"): [0.53125, 0.78125],
    }
    text = answer(make_folds(cells)).text
    said = "on a data set they differ by the same on all of too few folds."
    assert f"nothing here says what would tell sum from vpa: {said}" in text
    assert "far below the noise" not in text


def test_everything_diverged(make_folds: Make) -> None:
    found = answer(make_folds({SUM: [math.nan] * 3, VPA: [math.nan] * 3}))
    assert found.may_be_best == {"GIN on mine": ()}
    assert "nothing can be compared" in found.text


def test_nothing_finished() -> None:
    assert "nothing to choose from" in answer(pd.DataFrame()).text


def test_baselines_are_lines_and_no_candidates(make_folds: Make) -> None:
    cells = {SUM: around(0.6), VPA: around(0.8, 1)}
    baselines = {("mine", "MAJORITY", ""): around(0.5, 2), ("mine", "WL", ""): around(0.85, 3)}
    folds = make_folds({**cells, **baselines})
    (choice,) = answer(folds, ceiling={("mine", "auto"): 0.95}).choices
    assert [c.name for c in choice.candidates] == ["vpa", "sum"]
    assert choice.lines == pytest.approx(
        {"Majority class": 50, "WL subtree kernel + SVM": 85, "ceiling": 95}
    )
    (said,) = choice.cautions
    assert said == "WL subtree kernel + SVM (85.0 %) is better than vpa by 5.0 points."


def test_a_network_that_is_no_better_than_the_largest_class_is_told(make_folds: Make) -> None:
    folds = make_folds(
        {SUM: around(0.5), VPA: around(0.501, 1), ("mine", "MAJORITY", ""): around(0.5, 2)}
    )
    assert "Not even vpa is shown to be better than the baseline “Majority class”" in (
        answer(folds).text
    )


def test_one_class_says_that_it_tells_nothing(make_folds: Make) -> None:
    folds = make_folds({SUM: [1.0] * 10, VPA: [1.0] * 10}).assign(classes=1)
    assert "On mine there is only one class" in answer(folds).text


def test_repeats_are_pairs_and_their_number_is_told(make_folds: Make) -> None:
    cells = {SUM: around(0.79), VPA: around(0.8, 3)}
    drawn = [make_folds(cells).assign(repeat=repeat) for repeat in range(3)]
    (choice,) = answer(pd.concat(drawn)).choices
    assert (choice.folds, choice.repeats) == (30, 3)
    assert "(30 folds of 3 repeats)" in answer(pd.concat(drawn)).text
    (once,) = answer(drawn[0]).choices
    # Repeats make 1/n smaller and leave the share of test graphs as it is.
    assert choice.candidates[1].half < once.candidates[1].half
    assert choice.candidates[1].half > 0.5 * once.candidates[1].half


def test_seeds_are_averaged_first(make_folds: Make) -> None:
    cells = {SUM: around(0.79), VPA: around(0.8, 3)}
    seeds = pd.concat([make_folds(cells, seed=seed) for seed in range(5)])
    assert answer(seeds).choices == answer(make_folds(cells)).choices


def test_fewer_folds_share_more(make_folds: Make) -> None:
    cells = {SUM: around(0.79)[:5], VPA: around(0.8, 3)[:5]}
    (five,) = answer(make_folds(cells).assign(num_folds=5)).choices
    (of_ten,) = answer(make_folds(cells).assign(num_folds=5, test_per_train=1 / 8)).choices
    assert five.candidates[1].half > of_ten.candidates[1].half


def test_settings_that_invite_to_choose_by_test_score_are_warned_of(make_folds: Make) -> None:
    cells = {SUM: around(0.79), VPA: around(0.8, 3)}
    rates = [make_folds(cells, options="", protocol=p) for p in ("", "learning rate 0.01")]
    (warning,) = answer(pd.concat(rates)).warnings
    assert "under 2 settings. Do not take the one that tests best" in warning
    chosen = [part.assign(chosen='{"lr": 0.01}') for part in rates]
    assert answer(pd.concat(chosen)).warnings == ()
    assert answer(rates[0]).warnings == ()


def test_an_edited_model_is_told(make_folds: Make) -> None:
    folds = make_folds({("mine", f"nets:a@{h}", "vpa"): around(0.8) for h in ("3f2a", "9c1b")})
    folds["source"] = folds["model"].str[-4:]
    (warning,) = answer(folds).warnings
    assert warning.startswith("The source of nets:a was edited between trainings: each version is")


def test_a_program_can_read_it(make_folds: Make) -> None:
    found = answer(make_folds({SUM: [0.8], VPA: [0.9]}))
    (choice,) = json.loads(found.json())["choices"]
    assert choice["may_be_best"] == ["vpa", "sum"]
    assert choice["candidates"][0]["half"] is None
    assert str(found) == found.text


def test_a_metric_nobody_knows_is_refused(make_folds: Make) -> None:
    with pytest.raises(UsageError, match="'luck' is unknown: expected one of accuracy"):
        answer(make_folds({VPA: [0.8]}).assign(metric="luck"))


def test_without_networks_there_is_no_choice(make_folds: Make) -> None:
    assert answer(make_folds({("mine", "WL", ""): around(0.8)})).choices == Answer(()).choices
