"""The checks of estimators find what is wrong."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator

from gnn_vpa import GraphClassifier
from gnn_vpa.testing import check_graph_estimator

QUICK: dict[str, Any] = {
    "width": 4, "depth": 1, "epochs": 1, "device": "cpu", "random_state": 0
}  # fmt: skip


class ChangesItsParameters(GraphClassifier):
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        super().fit(X, y)
        self.width = 5
        return self


class ChangesGraphs(GraphClassifier):
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        super().fit(X, y)
        X[0].seen = True
        return self


class DrawsWithoutItsSeed(GraphClassifier):
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        torch.rand(1)
        return super().fit(X, y)


class LooksAtOwnTargets(GraphClassifier):
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        named = isinstance(X, list) and X and isinstance(X[0].get("y"), str)
        return super().fit(X, np.roll(y, 1) if named and y is not None else y)


class NumbersItsClasses(GraphClassifier):
    def predict(self, X: Any) -> Any:
        return super().predict(X)[:, None]


class LooksAtNeighbours(GraphClassifier):
    def predict_proba(self, X: Any) -> Any:
        said = super().predict_proba(X)
        return (said + 0.3 * said.mean(0)) / 1.3 if len(said) > 1 else said


class SaysItIsATable(GraphClassifier):
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


class ForgetsItselfInCopies(GraphClassifier):
    def __getstate__(self) -> dict[str, Any]:
        self_without = BaseEstimator.__getstate__(self)
        model = self_without.get("model_")
        if model is None:
            return dict(self_without)
        empty = type(self)(**QUICK, aggr="sum").fit(self.graphs, self.labels)
        return {**self_without, "model_": empty.model_}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        self.graphs, self.labels = X, y
        return super().fit(X, y)


BROKEN = [
    (ChangesItsParameters, "a fit leaves them alone"),
    (ChangesGraphs, "Graphs and targets are left as they are"),
    (DrawsWithoutItsSeed, "torch's generator was used"),
    (LooksAtOwnTargets, "what the graphs have as y is not looked at"),
    (NumbersItsClasses, "form and type of the targets"),
    (LooksAtNeighbours, "does not depend on the graphs beside it"),
    (SaysItIsATable, "two_d_array"),
    (ForgetsItselfInCopies, "Copies say the same"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN, ids=lambda value: str(value)[:60])
def test_a_broken_estimator_is_found(broken: type[GraphClassifier], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_graph_estimator(broken(**QUICK))


def test_a_sound_one_passes() -> None:
    check_graph_estimator(GraphClassifier(**QUICK))
