"""How good scores are: each metric by scikit-learn, and the same for many lanes at once.

``Metric.of`` is scikit-learn's, which takes a millisecond or two; ``Metric.by_lane`` is the same
number in torch, for all lanes on their device, and equals it to 1e-12 (`tests/training/
test_metrics.py`). Where there are several labels, classes (one against the rest) or targets, a
metric is the mean over those for which it is defined.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import UsageError
from ..graphs import TargetKind, kind_of
from ..graphs.targets import known

_HUGE = 1e300  # what an infinite score counts as: scikit-learn takes finite ones alone


@dataclass(frozen=True)
class Metric:
    """A measure of scores.

    Attributes:
        name: What users type.
        title: How it is written in tables.
        kinds: The kinds of targets that it is for.
        higher_is_better: Whether more of it is better.
        is_share: Whether it goes from 0 to 1 and is printed in percent.
        of: ``of(y [B(, T)], scores [B, out])``: its value by scikit-learn, NaN where it is
            undefined.
        by_lane: ``by_lane(scores [L, B, out], y [L, B(, T)], mask [L, B])``: its value for each
            lane, over the graphs of its mask: ``[L]`` in float64, where ``of`` has it.
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
    of: Callable[[Tensor, Tensor], float]
    by_lane: Callable[[Tensor, Tensor, Tensor], Tensor]
    needs: str

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
    """Return every metric of the kind by scikit-learn, NaN where one is undefined.

    Example:
        >>> evaluate(torch.tensor([[1.0], [3.0]]), torch.tensor([[1.5], [3.5]]))["r2"]
        0.75
    """
    return {metric.name: metric.of(y, scores) for metric in metrics_for(kind_of(y))}


# By scikit-learn --------------------------------------------------------------------------------

_Array = NDArray[Any]
_Column = Callable[[_Array, _Array], float]


def _by_sklearn(column: _Column, whole: _Column | None = None) -> Callable[[Tensor, Tensor], float]:
    """Make ``Metric.of``.

    Args:
        column: Of the known targets of a label, a class or a target, and their scores; NaN where it
            is undefined.
        whole: Of classes and the classes that score highest, where it is not the mean over columns.
    """

    def of(y: Tensor, scores: Tensor) -> float:
        kind, there = kind_of(y), known(y)
        rows = there if kind == "classes" else there.any(1)
        y, scores, there = y[rows], _finite(scores.detach().cpu()[rows]), there[rows]
        if len(y) == 0 or bool(scores.isnan().any()):
            return math.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a class that is predicted and not there is no fault
            if kind == "classes" and whole is not None:
                return float(whole(y.numpy(), scores.argmax(1).numpy()))
            if kind == "classes":
                y, scores = _one_against_rest(y, scores)
                there = torch.ones_like(y, dtype=torch.bool)
            columns = zip(y.T.numpy(), scores.T.numpy(), there.T.numpy(), strict=True)
            values = [column(t[own], s[own]) if own.any() else math.nan for t, s, own in columns]
        defined = [value for value in values if not math.isnan(value)]
        return sum(defined) / len(defined) if defined else math.nan

    return of


def _sklearn(name: str, **settings: Any) -> _Column:
    def value(y: _Array, guess: _Array) -> float:
        from sklearn import metrics

        return float(getattr(metrics, name)(y, guess, **settings))

    return value


def _of_signs(column: _Column) -> _Column:
    """Let a metric of classes judge a label: it is there where its score is above 0."""
    return lambda y, scores: column(y, (scores > 0).astype(y.dtype))


def _if(condition: Callable[[_Array], bool], column: _Column) -> _Column:
    return lambda y, scores: column(y, scores) if condition(y) else math.nan


# By lane ----------------------------------------------------------------------------------------


def _finite(scores: Tensor) -> Tensor:
    """Return scores in float64, infinite ones as huge ones; NaN stays."""
    return scores.double().clamp(-_HUGE, _HUGE)


def _log_odds(scores: Tensor) -> Tensor:
    """Return ``log(p_c / (1 - p_c))`` of each class, which does not saturate as p_c does."""
    classes = scores.shape[-1]
    if classes == 2:
        return scores - scores.flip(-1)
    others = scores.unsqueeze(-2).expand(*scores.shape[:-1], classes, classes)
    own = torch.eye(classes, dtype=torch.bool, device=scores.device)
    return scores - others.masked_fill(own, -torch.inf).logsumexp(-1)


def _one_against_rest(y: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return classes as labels: of two the second alone, of more each."""
    odds, classes = _log_odds(scores), scores.shape[-1]
    number = torch.arange(classes, device=y.device)
    is_own = (y.unsqueeze(-1) == number).to(torch.int8)
    return (is_own[..., 1:], odds[..., 1:]) if classes == 2 else (is_own, odds)


_ByColumn = Callable[[Tensor, Tensor, Tensor], Tensor]
_ByClass = Callable[[Tensor, Tensor, Tensor, int], Tensor]


def _lanes(
    columns: _ByColumn, whole: _ByClass | None = None
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Make ``Metric.by_lane``.

    Args:
        columns: Of targets, scores and which are there, ``[L, T, B]``: ``[L, T]``, NaN where it is
            undefined.
        whole: Of classes, those that score highest and which are there, ``[L, B]``, and of the
            number of classes: ``[L]``.
    """

    def by_lane(scores: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        is_class = y.dim() == 2
        there = known(y) & (mask if is_class else mask.unsqueeze(2))
        broken = (scores.isnan().any(2) & mask).any(1)
        if is_class and whole is not None:
            values = whole(y, scores.argmax(2), there, scores.shape[2])
        else:
            values = _mean_over_columns(columns, scores, y, there)
        return values.masked_fill(broken, torch.nan)

    return by_lane


def _mean_over_columns(columns: _ByColumn, scores: Tensor, y: Tensor, there: Tensor) -> Tensor:
    scores = _finite(scores)
    if y.dim() == 2:
        y, scores = _one_against_rest(y, scores)
        there = there.unsqueeze(2).expand(y.shape)
    # What is not there may be anything that sorts and compares.
    scores = torch.where(there, scores, 0.0)
    y = torch.where(there, y, 0).double()
    own = columns(*(part.transpose(1, 2).contiguous() for part in (y, scores, there)))
    return own.nanmean(1)


def _share(y: Tensor, guess: Tensor, there: Tensor, classes: int = 2) -> Tensor:
    """Return the share that is right; NaN of nothing."""
    return ((guess == y) & there).sum(-1).double() / there.sum(-1)


def _members(y: Tensor, there: Tensor, classes: int) -> Tensor:
    """Say which are of each class: ``[..., B, classes]``."""
    return (y.unsqueeze(-1) == torch.arange(classes, device=y.device)) & there.unsqueeze(-1)


def _recall(y: Tensor, guess: Tensor, there: Tensor, classes: int = 2) -> Tensor:
    """Return the mean, over the classes that are there, of the share that is right."""
    own = _members(y, there, classes)
    right = (own & (guess == y).unsqueeze(-1)).sum(-2)
    return (right.double() / own.sum(-2)).nanmean(-1)


def _f1_scores(y: Tensor, guess: Tensor, there: Tensor, classes: int = 2) -> Tensor:
    """Return ``2 TP / (2 TP + FP + FN)`` of each class; NaN of one neither there nor guessed."""
    own, guessed = (_members(part, there, classes) for part in (y, guess))
    return 2 * (own & guessed).sum(-2).double() / (own.sum(-2) + guessed.sum(-2))


def _f1(y: Tensor, guess: Tensor, there: Tensor, classes: int) -> Tensor:
    return _f1_scores(y, guess, there, classes).nanmean(-1)


def _label_share(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    return _share(y, (scores > 0).double(), there)


def _label_recall(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    return _recall(y, (scores > 0).double(), there)


def _label_f1(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return the F1 of having the label: 0 where no graph has it, nor is said to have it."""
    own = _f1_scores(y, (scores > 0).double(), there)[..., 1]
    return torch.where(there.any(-1), own.nan_to_num(0.0), torch.nan)


def _below(scores: Tensor, counted: Tensor, right: bool) -> Tensor:
    """Count for each score how many ``counted`` ones are below it, with ``right`` at most it."""
    ordered, order = scores.contiguous().sort(-1)
    total = torch.nn.functional.pad(counted.gather(-1, order).cumsum(-1), (1, 0))
    return total.gather(-1, torch.searchsorted(ordered, scores.contiguous(), right=right))


def _roc_auc(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return the share of pairs, one with and one without, that are in order; ties count half."""
    positive, negative = ((y == label) & there for label in (1, 0))
    counted = negative.double()
    beaten = (_below(scores, counted, False) + _below(scores, counted, True)) / 2
    pairs = positive.sum(-1) * negative.sum(-1)  # none: 0/0
    return torch.where(positive, beaten, 0.0).sum(-1) / pairs


def _average_precision(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return the mean over those with the label of the precision among all that score as high."""
    positive = (y == 1) & there
    found = [
        part.sum(-1, keepdim=True) - _below(scores, part.double(), False)
        for part in (positive, there)
    ]
    precision = torch.where(positive, found[0] / found[1], 0.0)
    return precision.sum(-1) / positive.sum(-1)


def _mean(values: Tensor, there: Tensor) -> Tensor:
    return torch.where(there, values, 0.0).sum(-1) / there.sum(-1)


def _mae(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    return _mean((scores - y).abs(), there)


def _rmse(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    return _mean((scores - y).square(), there).sqrt()


def _r2(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    centred = y - _mean(y, there).unsqueeze(-1)
    ratio = _mean((scores - y).square(), there) / _mean(centred.square(), there)
    lowest = torch.where(there, y, torch.inf).amin(-1)
    highest = torch.where(there, y, -torch.inf).amax(-1)
    return torch.where(highest > lowest, 1 - ratio, torch.nan)


# The table --------------------------------------------------------------------------------------

_CLASSED: tuple[TargetKind, ...] = ("classes", "labels")
_SOME = "a target"


def _has_both(y: _Array) -> bool:
    return bool(y.min() != y.max())


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "accuracy", "Accuracy", _CLASSED, True, True,
            _by_sklearn(_of_signs(_sklearn("accuracy_score")), _sklearn("accuracy_score")),
            _lanes(_label_share, _share), _SOME,
        ),
        Metric(
            "balanced_accuracy", "Balanced accuracy", _CLASSED, True, True,
            _by_sklearn(
                _of_signs(_sklearn("balanced_accuracy_score")), _sklearn("balanced_accuracy_score")
            ),
            _lanes(_label_recall, _recall), _SOME,
        ),
        Metric(
            "macro_f1", "Macro F1", _CLASSED, True, True,
            _by_sklearn(
                _of_signs(_sklearn("f1_score", zero_division=0)),
                _sklearn("f1_score", average="macro", zero_division=0),
            ),
            _lanes(_label_f1, _f1), _SOME,
        ),
        Metric(
            "roc_auc", "ROC-AUC", _CLASSED, True, True,
            _by_sklearn(_if(_has_both, _sklearn("roc_auc_score"))),
            _lanes(_roc_auc), "graphs with and without a class or label",
        ),
        Metric(
            "average_precision", "Average precision", _CLASSED, True, True,
            _by_sklearn(
                _if(lambda y: bool(y.any()), _sklearn("average_precision_score"))
            ),
            _lanes(_average_precision), "a graph of the second class, or with a label",
        ),
        Metric(
            "mae", "MAE", ("regression",), False, False,
            _by_sklearn(_sklearn("mean_absolute_error")), _lanes(_mae), _SOME,
        ),
        Metric(
            "rmse", "RMSE", ("regression",), False, False,
            _by_sklearn(_sklearn("root_mean_squared_error")), _lanes(_rmse), _SOME,
        ),
        Metric(
            "r2", "R2", ("regression",), True, False,
            _by_sklearn(_if(_has_both, _sklearn("r2_score"))), _lanes(_r2),
            "two targets that differ",
        ),
    )
}  # fmt: skip
"""The metrics by name."""
