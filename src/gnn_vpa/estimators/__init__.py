"""scikit-learn estimators of graphs: models that are trained by the engine of `run`."""

from .classifier import GraphClassifier as GraphClassifier
from .cross_validation import cross_validate as cross_validate
from .regressor import GraphRegressor as GraphRegressor

__all__ = ["GraphClassifier", "GraphRegressor", "cross_validate"]
