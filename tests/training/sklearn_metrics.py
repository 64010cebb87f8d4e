"""The metrics of the library by scikit-learn, one training at a time."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from gnn_vpa.graphs import kind_of
from gnn_vpa.graphs.targets import known
from gnn_vpa.training.scores import finite, is_broken, one_against_rest

Array = NDArray[Any]
Column = Callable[[Array, Array], float]


def by_sklearn(column: Column, whole: Column | None = None) -> Callable[[Tensor, Tensor], float]:
    """Make a function of targets and scores.

    Args:
        column: Of the known targets of a label, a class or a target, and their scores; NaN where it
            is undefined.
        whole: Of classes and the classes that score highest, where it is not the mean over columns.
    """

    def of(y: Tensor, scores: Tensor) -> float:
        kind, there = kind_of(y), known(y)
        rows = there if kind == "classes" else there.any(1)
        y, scores, there = (part[rows].cpu() for part in (y, scores.detach(), there))
        if len(y) == 0 or bool(is_broken(scores, y).any()):
            return math.nan
        scores = finite(scores)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a class that is predicted and not there is no fault
            if kind == "classes" and whole is not None:
                return float(whole(y.numpy(), scores.argmax(1).numpy()))
            if kind == "classes":
                y, scores = one_against_rest(y, scores)
                there = torch.ones_like(y, dtype=torch.bool)
            columns = zip(y.T.numpy(), scores.T.numpy(), there.T.numpy(), strict=True)
            values = [column(t[own], s[own]) if own.any() else math.nan for t, s, own in columns]
        defined = [value for value in values if not math.isnan(value)]
        return sum(defined) / len(defined) if defined else math.nan

    return of


def by_name(name: str, **settings: Any) -> Column:
    """Return scikit-learn's metric of this name."""

    def value(y: Array, guess: Array) -> float:
        from sklearn import metrics

        return float(getattr(metrics, name)(y, guess, **settings))

    return value


def of_signs(column: Column) -> Column:
    """Let a metric of classes judge a label: it is there where its score is above 0."""
    return lambda y, scores: column(y, (scores > 0).astype(y.dtype))


def where_defined(condition: Callable[[Array], bool], column: Column) -> Column:
    """Let a metric be NaN of targets for which scikit-learn's has no meaning."""
    return lambda y, scores: column(y, scores) if condition(y) else math.nan


def _has_both(y: Array) -> bool:
    return bool(y.min() != y.max())


_F1 = {"zero_division": 0}
BY_SKLEARN = {
    "accuracy": by_sklearn(of_signs(by_name("accuracy_score")), by_name("accuracy_score")),
    "balanced_accuracy": by_sklearn(
        of_signs(by_name("balanced_accuracy_score")), by_name("balanced_accuracy_score")
    ),
    "macro_f1": by_sklearn(
        of_signs(by_name("f1_score", **_F1)), by_name("f1_score", average="macro", **_F1)
    ),
    "roc_auc": by_sklearn(where_defined(_has_both, by_name("roc_auc_score"))),
    "average_precision": by_sklearn(
        where_defined(lambda y: bool(y.any()), by_name("average_precision_score"))
    ),
    "mae": by_sklearn(by_name("mean_absolute_error")),
    "rmse": by_sklearn(by_name("root_mean_squared_error")),
    "r2": by_sklearn(where_defined(_has_both, by_name("r2_score"))),
}
