"""The estimators in scikit-learn's tools."""

import copy
import pickle
from collections.abc import Iterator

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from torch_geometric.data import Data

from gnn_vpa import GraphClassifier, GraphRegressor

TWO = StratifiedKFold(2)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_the_kind_is_known(classifier: GraphClassifier, regressor: GraphRegressor) -> None:
    assert is_classifier(classifier)
    assert is_regressor(regressor)
    assert not is_regressor(classifier)


def test_what_scikit_learn_can_check_it_checks(classifier: GraphClassifier) -> None:
    with pytest.warns(SkipTestWarning, match="Can't test estimator GraphClassifier"):
        check_estimator(classifier)  # tables are none of its inputs: see gnn_vpa.testing


def test_clone_and_parameters(classifier: GraphClassifier) -> None:
    assert clone(classifier).get_params() == classifier.get_params()
    assert classifier.set_params(width=4).get_params()["width"] == 4
    assert set(GraphClassifier().get_params()) - set(GraphRegressor().get_params()) == {
        "class_weight"
    }


def test_a_pipeline_ends_in_it_or_goes_on_from_it(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    last = make_pipeline(FunctionTransformer(list), classifier).fit(graphs, labels)
    expected = clone(classifier).fit(graphs, labels)
    assert np.array_equal(last.predict_proba(graphs), expected.predict_proba(graphs))
    first = make_pipeline(classifier, StandardScaler(), LogisticRegression()).fit(graphs, labels)
    assert first.predict(graphs).shape == (60,)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_over_parameters(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray, n_jobs: int | None
) -> None:
    grid = {"width": [4, 8], "aggr": ["vpa", "mean"]}
    search = GridSearchCV(classifier, grid, cv=TWO, n_jobs=n_jobs).fit(graphs, labels)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    alone = clone(classifier).set_params(**search.best_params_)
    assert cross_val_score(alone, graphs, labels, cv=TWO).mean() == search.best_score_
    assert np.array_equal(search.predict(graphs), alone.fit(graphs, labels).predict(graphs))


def test_scores_and_predictions_of_a_cross_validation(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    shares = cross_val_predict(classifier, graphs, labels, cv=TWO, method="predict_proba")
    for train, test in TWO.split(graphs, labels):
        fold = clone(classifier).fit([graphs[i] for i in train], labels[train])
        assert np.array_equal(shares[test], fold.predict_proba([graphs[i] for i in test]))


def test_calibration(classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray) -> None:
    for weights in (None, np.linspace(1, 2, 60)):
        calibrated = CalibratedClassifierCV(classifier, cv=TWO)
        calibrated.fit(graphs, labels, sample_weight=weights)
        shares = calibrated.predict_proba(graphs)
        np.testing.assert_allclose(shares.sum(1), 1)
        assert calibrated.classes_.tolist() == ["path", "star"]


def test_stacking(classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray) -> None:
    both = [("vpa", classifier), ("sum", clone(classifier).set_params(aggr="sum"))]
    stacked = StackingClassifier(both, cv=TWO).fit(graphs, labels)
    assert stacked.transform(graphs).shape == (60, 2)
    assert stacked.score(graphs, labels) > 0.4


def test_copies_of_a_fitted_one(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    said = classifier.fit(graphs, labels).predict_proba(graphs)
    for other in (pickle.loads(pickle.dumps(classifier)), copy.deepcopy(classifier)):
        assert np.array_equal(other.predict_proba(graphs), said)
        assert other.module_ is other.model_.module
        assert other.module_ is not classifier.module_
        assert other.signal_.steps[0].layer == classifier.signal_.steps[0].layer


@pytest.mark.usefixtures("routing")
def test_groups_and_weights_are_routed(
    classifier: GraphClassifier, graphs: list[Data], labels: np.ndarray
) -> None:
    weights, groups = np.linspace(0, 3, 60), np.arange(60) // 4
    asking = classifier.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    params = {"sample_weight": weights, "groups": groups}
    found = cross_validate(
        asking, graphs, labels, cv=GroupKFold(3), params=params, return_indices=True
    )
    folds = zip(
        found["indices"]["train"], found["indices"]["test"], found["test_score"], strict=True
    )
    for train, test, score in folds:
        assert not set(groups[train]) & set(groups[test])
        fold = clone(asking).fit([graphs[i] for i in train], labels[train], weights[train])
        assert fold.score([graphs[i] for i in test], labels[test], weights[test]) == score
