"""Folds side by side come to what scikit-learn's loop comes to."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sklearn
import torch
from joblib import parallel_config
from sklearn import model_selection
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, RepeatedStratifiedKFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from torch_geometric.data import Data

from gnn_vpa import GraphClassifier, GraphRegressor, cross_validate, training
from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.estimators import cross_validation, folds
from gnn_vpa.graphs import GraphSet
from gnn_vpa.host import Host
from gnn_vpa.trained import signals
from gnn_vpa.trained import train as train_one

SPLITTERS: list[Any] = [
    3,
    KFold(4),
    RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
    ShuffleSplit(2, test_size=0.3, random_state=0),
    [(np.arange(40), np.arange(40, 60))],
]


@pytest.fixture
def joint(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the folds of each training that was joint."""
    counted: list[int] = []
    real = folds.fit_folds

    def counting(estimator: Any, learned: Any, parts: Any, *others: Any, **named: Any) -> Any:
        counted.append(len(parts))
        return real(estimator, learned, parts, *others, **named)

    monkeypatch.setattr(cross_validation, "fit_folds", counting)
    return counted


def same(ours: dict[str, Any], theirs: dict[str, Any], atol: float = 1e-4) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        if name.startswith(("test", "train")):
            np.testing.assert_allclose(ours[name], theirs[name], atol=atol)


@pytest.mark.parametrize("cv", SPLITTERS, ids=lambda cv: type(cv).__name__)
def test_scores_are_those_of_scikit_learn(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray, cv: Any, joint: list[int]
) -> None:
    options: dict[str, Any] = {
        "cv": cv,
        "scoring": ["neg_log_loss", "accuracy"],
        "return_train_score": True,
    }
    ours = cross_validate(classifier, graphs, labels, **options)
    same(ours, model_selection.cross_validate(classifier, graphs, labels, **options))
    assert joint == [len(ours["fit_time"])]


def test_scores_of_a_regression_are_those_of_scikit_learn(
    regressor: GraphRegressor, graphs: list[Data], sizes: np.ndarray, joint: list[int]
) -> None:
    ours = cross_validate(regressor, graphs, sizes, cv=3)
    same(ours, model_selection.cross_validate(regressor, graphs, sizes, cv=3), atol=1e-3)
    assert joint == [3]


def test_estimators_are_those_that_scikit_learn_would_fit(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    found = cross_validate(
        classifier, graphs, labels, cv=3, return_estimator=True, return_indices=True
    )
    for estimator, train in zip(found["estimator"], found["indices"]["train"], strict=True):
        alone = clone(classifier).fit([graphs[i] for i in train], labels[train])
        assert type(estimator) is GraphClassifier
        assert estimator.model_.record.data == alone.model_.record.data
        assert estimator.model_.encoding == alone.model_.encoding
        assert estimator.best_epoch_ == alone.best_epoch_
        np.testing.assert_allclose(
            estimator.predict_proba(graphs), alone.predict_proba(graphs), atol=1e-4
        )


def signal_of(estimator: GraphClassifier, X: Any, y: Any = None) -> float:
    return float(len(estimator.model_.record.signal))


@pytest.mark.parametrize(
    ("options", "measured"),
    [
        ({}, False),
        ({"scoring": "accuracy"}, False),
        ({"scoring": ["accuracy", "neg_log_loss"]}, False),
        ({"scoring": signal_of}, True),
        ({"scoring": {"own": signal_of}}, True),
        ({"return_estimator": True}, True),
    ],
    ids=["default", "name", "names", "function", "functions", "estimators"],
)
def test_records_are_full_where_somebody_may_see_them(
    classifier: GraphClassifier,
    graphs: list[Data],
    labels: np.ndarray,
    options: dict[str, Any],
    measured: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, measure = [], signals.layer_variances
    records, make = [], train_one._record
    monkeypatch.setattr(train_one, "layer_variances", lambda *a: (seen.append(a), measure(*a))[1])
    monkeypatch.setattr(train_one, "_record", lambda *a: (records.append(make(*a)), records[-1])[1])
    cross_validate(classifier.set_params(epochs=1), graphs, labels, cv=2, **options)
    assert len(seen) == (2 if measured else 0)
    assert [bool(record.data.content) for record in records] == [measured, measured]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_more_processes_change_nothing(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray, n_jobs: int | None
) -> None:
    options: dict[str, Any] = {"cv": 4, "scoring": "neg_log_loss"}
    one = cross_validate(classifier, graphs, labels, **options)
    other = cross_validate(classifier, graphs, labels, n_jobs=n_jobs, **options)
    assert np.array_equal(one["test_score"], other["test_score"])


@pytest.mark.parametrize(
    ("device", "jobs", "cv", "started"),
    [("cpu", 2, 3, 1), ("auto", 3, 3, 1), ("cpu", 1, 3, 0), ("cpu", 2, ShuffleSplit(1), 0)],
)
def test_a_process_that_is_needed_starts_before_graphs_are_read(
    classifier: GraphClassifier,
    graphs: list[Data],
    labels: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
    device: str,
    jobs: int,
    cv: Any,
    started: int,
) -> None:
    class ReadingError(Exception):
        pass

    def ahead(count: int) -> Any:
        counted.append(count)
        return nullcontext()

    def read(*args: Any) -> None:
        raise ReadingError

    counted: list[int] = []
    monkeypatch.setattr(cross_validation, "started_ahead", ahead)
    monkeypatch.setattr(GraphClassifier, "read", read)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ReadingError):
        cross_validate(classifier.set_params(device=device), graphs, labels, cv=cv, n_jobs=jobs)
    assert counted == [started]


def test_by_default_long_trainings_use_the_cores_unless_joblib_says_how_many(
    classifier: GraphClassifier,
    graphs: list[Data],
    labels: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class AskedError(Exception):
        pass

    def asked(estimator: Any, learned: Any, parts: Any, sets: Any, workers: int, **_: Any) -> Any:
        raise AskedError(workers)

    def processes(**options: Any) -> int:
        with pytest.raises(AskedError) as found:
            cross_validate(classifier, graphs, labels, cv=3, **options)
        return int(found.value.args[0])

    monkeypatch.setattr(cross_validation, "fit_folds", asked)
    monkeypatch.setattr(Host, "here", classmethod(lambda cls: cls(cores=5, memory=None)))
    assert processes() == 1  # they are short
    passes = 2 * len(graphs) * classifier.epochs  # of three folds, each with two thirds
    monkeypatch.setattr(cross_validation, "LONG", passes)
    assert processes() == 5
    assert processes(n_jobs=1) == 1
    with parallel_config(n_jobs=3):
        assert processes() == 3
    monkeypatch.setattr(cross_validation, "LONG", passes + 1)
    assert processes() == 1


def test_data_sets_bring_their_targets(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    expected = cross_validate(classifier, graphs, cv=3)["test_score"]
    assert np.array_equal(
        cross_validate(classifier, GraphSet.from_pyg(graphs), cv=3)["test_score"], expected
    )
    assert cross_validate(classifier, "MUTAG", cv=2)["test_score"].shape == (2,)


def test_a_seed_is_drawn_for_each_fold_where_there_is_none(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    classifier.set_params(random_state=None)
    found = cross_validate(classifier, graphs, labels, cv=KFold(3), return_estimator=True)
    assert len({estimator.seed_ for estimator in found["estimator"]}) == 3


def test_degrees_that_a_fold_lacks_are_left_to_scikit_learn(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray, joint: list[int]
) -> None:
    degrees = classifier.set_params(features="degree")
    rare = [np.array([i for i in range(60) if graphs[i].num_nodes != 9 or i < 30])]
    splits = [(rare[0], np.arange(0, 10))]
    assert cross_validate(degrees, graphs, labels, cv=splits)["test_score"].shape == (1,)
    assert joint == [1]  # all degrees are there
    few = [(np.array([i for i in range(60) if graphs[i].num_nodes < 9]), np.arange(0, 10))]
    ours = cross_validate(degrees, graphs, labels, cv=few)
    same(ours, model_selection.cross_validate(degrees, graphs, labels, cv=few))
    assert joint == [1]


def test_folds_that_lack_a_class_are_left_to_scikit_learn(
    classifier: GraphClassifier, graphs: list[Data], joint: list[int]
) -> None:
    y = np.array(["path", "star"] * 30)
    y[:3] = "odd"
    splits = [(np.arange(10, 60), np.arange(10))]
    ours = cross_validate(classifier, graphs, y, cv=splits)
    same(ours, model_selection.cross_validate(classifier, graphs, y, cv=splits))
    assert joint == []


def test_splits_are_made_once(
    classifier: GraphClassifier, graphs: list[Data], joint: list[int]
) -> None:
    """A generator of folds can be gone through once, whoever trains them."""
    y = np.array(["path", "star"] * 30)
    for lacking in (0, 3):
        y[:lacking] = "odd"
        splits = ((np.arange(10, 60), np.arange(number)) for number in (5, 10))
        assert cross_validate(classifier, graphs, y, cv=splits)["test_score"].shape == (2,)
    assert joint == [2]


def test_what_a_fit_does_not_take_is_refused(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    with pytest.raises(TypeError, match="sample_wait"):
        cross_validate(
            classifier, graphs, labels, cv=2,
            params={"sample_wait": np.ones(60)}, error_score="raise",
        )  # fmt: skip


def test_other_estimators_are_left_to_scikit_learn(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    pipeline = make_pipeline(classifier, LogisticRegression())
    ours = cross_validate(pipeline, graphs, labels, cv=2)
    same(ours, model_selection.cross_validate(pipeline, graphs, labels, cv=2))


def test_a_fold_that_cannot_be_fitted_has_no_score(
    classifier: GraphClassifier,
    graphs: list[Data],
    labels: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = folds.fit_folds

    def failing(*args: Any, **named: Any) -> Any:
        return [GnnVpaError("it diverged"), *real(*args, **named)[1:]]

    monkeypatch.setattr(cross_validation, "fit_folds", failing)
    with pytest.warns(Warning, match="it diverged"):
        found = cross_validate(classifier, graphs, labels, cv=3)
    assert np.isnan(found["test_score"]).tolist() == [True, False, False]
    with pytest.raises(GnnVpaError, match="it diverged"):
        cross_validate(classifier, graphs, labels, cv=3, error_score="raise")


def test_groups_and_weights_arrive(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray, joint: list[int]
) -> None:
    groups, weights = np.arange(60) // 4, np.linspace(0, 3, 60)
    options: dict[str, Any] = {"cv": GroupKFold(3), "scoring": "neg_log_loss"}
    plain = cross_validate(classifier, graphs, labels, groups=groups, **options)
    same(
        plain, model_selection.cross_validate(classifier, graphs, labels, groups=groups, **options)
    )
    options["params"] = {"sample_weight": weights}
    ours = cross_validate(classifier, graphs, labels, groups=groups, **options)
    same(ours, model_selection.cross_validate(classifier, graphs, labels, groups=groups, **options))
    assert np.abs(ours["test_score"] - plain["test_score"]).max() > 1e-4
    assert joint == [3, 3]


def test_groups_and_weights_are_routed(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray, joint: list[int]
) -> None:
    params = {"sample_weight": np.linspace(0, 3, 60), "groups": np.arange(60) // 4}
    with sklearn.config_context(enable_metadata_routing=True):
        for fits, scores in ((True, True), (True, False), (False, True)):
            asking = clone(classifier).set_fit_request(sample_weight=fits)
            asking.set_score_request(sample_weight=scores)
            options: dict[str, Any] = {"cv": GroupKFold(3), "params": params}
            ours = cross_validate(asking, graphs, labels, **options)
            same(ours, model_selection.cross_validate(asking, graphs, labels, **options))
    assert joint == [3, 3, 3]


def test_lanes_equal_fits_in_double_precision(
    classifier: GraphClassifier,
    graphs: list[Data],
    labels: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What differs in single precision is rounding, and nothing else."""
    real, double = training.fit, torch.float64
    monkeypatch.setattr(train_one, "fit", lambda *args, **named: real(*args, **named, dtype=double))
    classifier.set_params(epochs=8)
    parts = [part for part, _ in KFold(3).split(graphs)]
    learned = classifier.read(graphs, labels)
    sets = folds.sets_of(learned, parts)
    joint = folds.fit_folds(classifier, learned, parts, sets, 1, double)
    for fold, part in zip(joint, parts, strict=True):
        alone = clone(classifier).fit([graphs[i] for i in part], labels[part])
        np.testing.assert_allclose(
            fold.predict_proba(graphs), alone.predict_proba(graphs), rtol=0, atol=1e-9
        )
        np.testing.assert_allclose(
            np.array(fold.history_["train_loss"], float),
            np.array(alone.history_["train_loss"], float),
            rtol=0,
            atol=1e-9,
        )


def test_masks_and_negative_numbers_mean_what_they_mean_to_numpy(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray, joint: list[int]
) -> None:
    mask = np.random.RandomState(0).rand(len(graphs)) < 0.8
    cv = [(mask, ~mask), (mask.tolist(), np.flatnonzero(~mask)), (np.arange(-40, 0), [0, -60])]
    ours, theirs = (
        function(classifier, graphs, labels, cv=cv)
        for function in (cross_validate, model_selection.cross_validate)
    )
    same(ours, theirs)
    assert joint == [3]


def test_an_alias_of_metadata_is_found(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    weights = np.random.RandomState(0).rand(len(graphs))
    with sklearn.config_context(enable_metadata_routing=True):
        asks = clone(classifier).set_fit_request(sample_weight="importance")
        ours, theirs = (
            function(asks, graphs, labels, cv=3, params={"importance": weights})
            for function in (cross_validate, model_selection.cross_validate)
        )
        same(ours, theirs)
        for function in (cross_validate, model_selection.cross_validate):
            with pytest.raises((ValueError, UsageError), match="groups"):
                function(classifier, graphs, labels, cv=3, groups=labels)


def test_weights_of_a_data_set_are_not_dropped(
    classifier: GraphClassifier, graphs: list[Data]
) -> None:
    weighted = replace(GraphSet.from_pyg(graphs), weights=torch.ones(len(graphs), 1))
    with pytest.raises(UsageError, match=r"have weights, .* sample_weight"):
        cross_validate(classifier, weighted, cv=3)
