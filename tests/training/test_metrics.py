"""Metrics by lane equal scikit-learn's, whatever the scores: ties, missing targets, one class."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from sklearn import metrics as sklearn_metrics
from torch import Tensor

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import TargetKind
from gnn_vpa.training.metrics import (
    METRICS,
    Metric,
    better,
    default_metric,
    evaluate,
    metric_for,
    metrics_for,
)

from .sklearn_metrics import BY_SKLEARN

PAIRS = [
    pytest.param(metric, kind, id=f"{metric.name}-{kind}")
    for metric in METRICS.values()
    for kind in metric.kinds
]
# Few values, so that there are ties; infinite ones, as of a network that is about to diverge.
SCORES = st.sampled_from([-math.inf, -40.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1e8, math.inf])


@st.composite
def lanes(draw: DrawFn, kind: TargetKind) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, targets and masks of some lanes; some targets are missing, some masks are empty."""
    count, graphs = draw(st.integers(1, 3)), draw(st.integers(1, 12))
    outputs = draw(st.integers(2 if kind == "classes" else 1, 4))
    finite = [-3.0, -0.5, 0.0, 0.25, 1.0, 7.0]
    score = st.sampled_from([*finite * 5, math.inf]) if kind == "regression" else SCORES
    target = {
        "classes": st.integers(-1, outputs - 1),
        "labels": st.integers(-1, 1),
        "regression": st.sampled_from([*finite, math.nan]),
    }[kind]
    dtype = {"classes": torch.int64, "labels": torch.int8, "regression": torch.float32}[kind]
    shape = (count, graphs) if kind == "classes" else (count, graphs, outputs)

    def filled(values: st.SearchStrategy[float], size: tuple[int, ...], of: torch.dtype) -> Tensor:
        number = math.prod(size)
        own = draw(st.lists(values, min_size=number, max_size=number))
        return torch.tensor(own, dtype=of).view(size)

    scores = filled(score, (count, graphs, outputs), torch.float64)
    return scores, filled(target, shape, dtype), filled(st.booleans(), shape[:2], torch.bool)


@pytest.mark.parametrize(("metric", "kind"), PAIRS)
def test_every_lane_has_what_scikit_learn_says(metric: Metric, kind: TargetKind) -> None:
    @settings(max_examples=40, deadline=None)
    @given(drawn=lanes(kind))
    def check(drawn: tuple[Tensor, Tensor, Tensor]) -> None:
        scores, y, mask = drawn
        values = metric.by_lane(scores, y, mask)
        for lane, value in enumerate(values.tolist()):
            own = mask[lane]
            expected = BY_SKLEARN[metric.name](y[lane][own], scores[lane][own])
            assert metric.of(y[lane][own], scores[lane][own]) == pytest.approx(
                expected, abs=1e-12, rel=1e-12, nan_ok=True
            )
            assert value == pytest.approx(expected, abs=1e-12, rel=1e-12, nan_ok=True)
            if kind != "regression" or scores[lane][own].isfinite().all():
                assert metric.is_defined(y[lane][own], scores.shape[2]) != math.isnan(expected)

    check()


def test_two_classes_are_judged_as_scikit_learn_does() -> None:
    draw = np.random.default_rng(0)
    y, scores = draw.integers(0, 2, 50), draw.normal(size=(50, 2))
    found = evaluate(torch.from_numpy(y), torch.from_numpy(scores))
    guess, odds = scores.argmax(1), scores[:, 1] - scores[:, 0]
    assert found == pytest.approx(
        {
            "accuracy": sklearn_metrics.accuracy_score(y, guess),
            "balanced_accuracy": sklearn_metrics.balanced_accuracy_score(y, guess),
            "macro_f1": sklearn_metrics.f1_score(y, guess, average="macro"),
            "roc_auc": sklearn_metrics.roc_auc_score(y, odds),
            "average_precision": sklearn_metrics.average_precision_score(y, odds),
        }
    )


def test_several_classes_are_judged_one_against_the_rest() -> None:
    draw = np.random.default_rng(1)
    y, scores = draw.integers(0, 4, 80), draw.normal(size=(80, 4))
    found = evaluate(torch.from_numpy(y), torch.from_numpy(scores))
    shares = torch.from_numpy(scores).softmax(1).numpy()
    expected = sklearn_metrics.roc_auc_score(y, shares, multi_class="ovr", average="macro")
    assert found["roc_auc"] == pytest.approx(expected)
    one_hot = np.eye(4)[y]
    expected = sklearn_metrics.average_precision_score(one_hot, shares, average="macro")
    assert found["average_precision"] == pytest.approx(expected)


def test_labels_and_targets_are_averaged() -> None:
    draw = np.random.default_rng(2)
    y, scores = draw.integers(0, 2, (60, 3)), draw.normal(size=(60, 3))
    found = evaluate(torch.from_numpy(y).to(torch.int8), torch.from_numpy(scores))
    expected = sklearn_metrics.roc_auc_score(y, scores, average="macro")
    assert found["roc_auc"] == pytest.approx(expected)
    expected = sklearn_metrics.f1_score(y, scores > 0, average="macro")
    assert found["macro_f1"] == pytest.approx(expected)
    numbers = draw.normal(size=(60, 3)).astype(np.float32)
    found = evaluate(torch.from_numpy(numbers), torch.from_numpy(scores))
    assert found["mae"] == pytest.approx(sklearn_metrics.mean_absolute_error(numbers, scores))
    assert found["r2"] == pytest.approx(sklearn_metrics.r2_score(numbers, scores))
    expected = sklearn_metrics.root_mean_squared_error(numbers, scores)
    assert found["rmse"] == pytest.approx(expected)


@pytest.mark.parametrize(("metric", "kind"), PAIRS)
def test_a_score_that_is_no_number_has_no_worth(metric: Metric, kind: TargetKind) -> None:
    y = {
        "classes": torch.tensor([[0, 1, 1]]),
        "labels": torch.tensor([[[0], [1], [1]]], dtype=torch.int8),
        "regression": torch.tensor([[[0.0], [1.0], [2.0]]]),
    }[kind]
    scores = torch.zeros(1, 3, 2 if kind == "classes" else 1)
    scores[0, 1, 0] = math.nan
    everyone = torch.ones(1, 3, dtype=torch.bool)
    assert math.isnan(metric.of(y[0], scores[0]))
    assert math.isnan(metric.by_lane(scores, y, everyone).item())
    others = torch.tensor([[True, False, True]])
    assert not math.isnan(metric.by_lane(scores, y, others).item())


def test_the_first_of_the_highest_scores_is_the_guess() -> None:
    assert METRICS["accuracy"].of(torch.tensor([0, 1]), torch.zeros(2, 2)) == 0.5


def test_which_is_better() -> None:
    accuracy, mae = METRICS["accuracy"], METRICS["mae"]
    assert better(accuracy, 0.9, 0.8)
    assert better(mae, 0.8, 0.9)
    for metric in (accuracy, mae):
        assert not better(metric, 0.5, 0.5)
        assert not better(metric, math.nan, 0.5)


def test_names_are_checked_for_the_kind() -> None:
    assert metric_for("auto", "classes") is default_metric("classes") is METRICS["accuracy"]
    assert {metric.name for metric in metrics_for("labels")} == {
        metric.name for metric in metrics_for("classes")
    }
    with pytest.raises(UsageError, match="'mae' is not for classes, expected one of accuracy,"):
        metric_for("mae", "classes")
    with pytest.raises(UsageError, match="'auc' is unknown, expected one of mae, rmse, r2"):
        metric_for("auc", "regression")
