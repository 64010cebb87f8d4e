"""Metrics of scores, for many lanes at once.

Each metric equals scikit-learn's to 1e-12 (`tests/training/test_metrics.py`). With several labels,
classes (one against the rest) or targets, a metric is the mean over those for which it is defined.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import UsageError
from ..graphs import TargetKind, kind_of
from .lane_metrics import (
    average_precision,
    by_lane,
    f1,
    label_f1,
    label_recall,
    label_share,
    mae,
    r2,
    recall,
    rmse,
    roc_auc,
    share,
)


@dataclass(frozen=True)
class Metric:
    """A measure of scores.

    Attributes:
        name: What users type.
        title: How it is written in tables.
        kinds: The kinds of targets that it is for.
        higher_is_better: Whether more of it is better.
        is_share: Whether it goes from 0 to 1 and is printed in percent.
        by_lane: ``by_lane(scores [L, B, out], y [L, B(, T)], mask [L, B])``: its value for each
            lane, over the graphs of its mask: ``[L]`` in float64, NaN where it is undefined.
        needs: What targets must have for it to be defined.

    Example:
        >>> METRICS["mae"].of(torch.tensor([[1.0], [3.0]]), torch.tensor([[1.5], [3.5]]))
        0.5
    """

    name: str
    title: str
    kinds: tuple[TargetKind, ...]
    higher_is_better: bool
    is_share: bool
    by_lane: Callable[[Tensor, Tensor, Tensor], Tensor]
    needs: str

    def of(self, y: Tensor, scores: Tensor) -> float:
        """Return the value for targets ``y`` (``[B]`` or ``[B, T]``) and ``scores`` (``[B, out]``).

        NaN where the metric is undefined, and where a score is no number.
        """
        if len(y) == 0:
            return math.nan
        y, scores = y.cpu().unsqueeze(0), scores.detach().cpu().unsqueeze(0)
        return float(self.by_lane(scores, y, torch.ones(y.shape[:2], dtype=torch.bool)))

    def is_defined(self, y: Tensor, outputs: int) -> bool:
        """Say whether these targets have what it needs, whatever the scores will be.

        Example:
            >>> METRICS["roc_auc"].is_defined(torch.tensor([1, 1, 1]), outputs=2)
            False
        """
        if len(y) == 0:
            return False
        scores, everyone = torch.zeros(1, len(y), outputs), torch.ones(1, len(y), dtype=torch.bool)
        return not bool(self.by_lane(scores, y.unsqueeze(0), everyone).isnan())


def default_metric(kind: TargetKind) -> Metric:
    """Return the metric that chooses the epoch where none is named.

    Example:
        >>> default_metric("regression").title
        'MAE'
    """
    return METRICS[{"classes": "accuracy", "labels": "roc_auc", "regression": "mae"}[kind]]


def metrics_for(kind: TargetKind) -> list[Metric]:
    """List the metrics of a kind of targets.

    Example:
        >>> [metric.name for metric in metrics_for("regression")]
        ['mae', 'rmse', 'r2']
    """
    return [metric for metric in METRICS.values() if kind in metric.kinds]


def metric_for(name: str, kind: TargetKind) -> Metric:
    """Return a metric by its name; ``"auto"`` is the default of the kind.

    Example:
        >>> metric_for("auto", "labels").name
        'roc_auc'
    """
    if name == "auto":
        return default_metric(kind)
    there = [metric.name for metric in metrics_for(kind)]
    if name not in there:
        wrong = f"is not for {kind}" if name in METRICS else "is unknown"
        raise UsageError(f"metric: {name!r} {wrong}, expected one of {', '.join(there)}.")
    return METRICS[name]


def better(metric: Metric, a: float, b: float) -> bool:
    """Say whether a value is better than another; NaN never is.

    Example:
        >>> better(METRICS["accuracy"], 0.9, 0.8), better(METRICS["mae"], 0.9, 0.8)
        (True, False)
    """
    return a > b if metric.higher_is_better else a < b


def evaluate(y: Tensor, scores: Tensor) -> dict[str, float]:
    """Return every metric of the kind, NaN where one is undefined.

    Example:
        >>> evaluate(torch.tensor([[1.0], [3.0]]), torch.tensor([[1.5], [3.5]]))["r2"]
        0.75
    """
    return {metric.name: metric.of(y, scores) for metric in metrics_for(kind_of(y))}


_CLASSED: tuple[TargetKind, ...] = ("classes", "labels")
_SOME = "a target"

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", "Accuracy", _CLASSED, True, True, by_lane(label_share, share), _SOME),
        Metric(
            "balanced_accuracy", "Balanced accuracy", _CLASSED, True, True,
            by_lane(label_recall, recall), _SOME,
        ),
        Metric("macro_f1", "Macro F1", _CLASSED, True, True, by_lane(label_f1, f1), _SOME),
        Metric(
            "roc_auc", "ROC-AUC", _CLASSED, True, True,
            by_lane(roc_auc), "graphs with and without a class or label",
        ),
        Metric(
            "average_precision", "Average precision", _CLASSED, True, True,
            by_lane(average_precision), "a graph of the second class, or with a label",
        ),
        Metric("mae", "MAE", ("regression",), False, False, by_lane(mae), _SOME),
        Metric("rmse", "RMSE", ("regression",), False, False, by_lane(rmse), _SOME),
        Metric("r2", "R2", ("regression",), True, False, by_lane(r2), "two targets that differ"),
    )
}  # fmt: skip
"""The metrics by name."""
