"""Metrics of many lanes at once: the formulas of scikit-learn's, in torch, on their device."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..graphs.targets import known
from .scores import finite, is_broken, one_against_rest

ByColumn = Callable[[Tensor, Tensor, Tensor], Tensor]
ByClass = Callable[[Tensor, Tensor, Tensor, int], Tensor]


def by_lane(
    columns: ByColumn, whole: ByClass | None = None
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Make ``Metric.by_lane``.

    Args:
        columns: Of targets, scores and which are there, ``[L, T, B]``: ``[L, T]``, NaN where it is
            undefined.
        whole: Of classes, those that score highest and which are there, ``[L, B]``, and of the
            number of classes: ``[L]``.
    """

    def of_lanes(scores: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        is_class = y.dim() == 2
        there = known(y) & (mask if is_class else mask.unsqueeze(2))
        judged = there if is_class else there.any(2)
        broken = (is_broken(scores, y).any(2) & judged).any(1)
        if is_class and whole is not None:
            values = whole(y, scores.argmax(2), there, scores.shape[2])
        else:
            values = _mean_over_columns(columns, scores, y, there)
        return values.masked_fill(broken, torch.nan)

    return of_lanes


def _mean_over_columns(columns: ByColumn, scores: Tensor, y: Tensor, there: Tensor) -> Tensor:
    scores = finite(scores)
    if y.dim() == 2:
        y, scores = one_against_rest(y, scores)
        there = there.unsqueeze(2).expand(y.shape)
    # What is not there may be anything that sorts and compares.
    scores = torch.where(there, scores, 0.0)
    y = torch.where(there, y, 0).double()
    own = columns(*(part.transpose(1, 2).contiguous() for part in (y, scores, there)))
    return own.nanmean(1)


def share(y: Tensor, guess: Tensor, there: Tensor, classes: int = 2) -> Tensor:
    """Return the share that is right; NaN of nothing."""
    return ((guess == y) & there).sum(-1).double() / there.sum(-1)


def _members(y: Tensor, there: Tensor, classes: int) -> Tensor:
    """Say which are of each class: ``[..., B, classes]``."""
    return (y.unsqueeze(-1) == torch.arange(classes, device=y.device)) & there.unsqueeze(-1)


def recall(y: Tensor, guess: Tensor, there: Tensor, classes: int = 2) -> Tensor:
    """Return the mean, over the classes that are there, of the share that is right."""
    own = _members(y, there, classes)
    right = (own & (guess == y).unsqueeze(-1)).sum(-2)
    return (right.double() / own.sum(-2)).nanmean(-1)


def _f1_scores(y: Tensor, guess: Tensor, there: Tensor, classes: int = 2) -> Tensor:
    """Return ``2 TP / (2 TP + FP + FN)`` of each class; NaN of one neither there nor guessed."""
    own, guessed = (_members(part, there, classes) for part in (y, guess))
    return 2 * (own & guessed).sum(-2).double() / (own.sum(-2) + guessed.sum(-2))


def f1(y: Tensor, guess: Tensor, there: Tensor, classes: int) -> Tensor:
    """Return the mean of F1 over the classes that are there or guessed."""
    return _f1_scores(y, guess, there, classes).nanmean(-1)


def label_share(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return the share of graphs whose label is told right."""
    return share(y, (scores > 0).double(), there)


def label_recall(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return the mean of the shares that are right with the label, and without."""
    return recall(y, (scores > 0).double(), there)


def label_f1(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return the F1 of having the label: 0 where no graph has it, nor is said to have it."""
    own = _f1_scores(y, (scores > 0).double(), there)[..., 1]
    return torch.where(there.any(-1), own.nan_to_num(0.0), torch.nan)


def _below(scores: Tensor, counted: Tensor, right: bool) -> Tensor:
    """Count for each score how many ``counted`` ones are below it, with ``right`` at most it."""
    ordered, order = scores.contiguous().sort(-1)
    total = torch.nn.functional.pad(counted.gather(-1, order).cumsum(-1), (1, 0))
    return total.gather(-1, torch.searchsorted(ordered, scores.contiguous(), right=right))


def roc_auc(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return the share of pairs, one with and one without, that are in order; ties count half."""
    positive, negative = ((y == label) & there for label in (1, 0))
    counted = negative.double()
    beaten = (_below(scores, counted, False) + _below(scores, counted, True)) / 2
    pairs = positive.sum(-1) * negative.sum(-1)  # none: 0/0
    return torch.where(positive, beaten, 0.0).sum(-1) / pairs


def average_precision(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
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


def mae(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return the mean of ``|score - y|``."""
    return _mean((scores - y).abs(), there)


def rmse(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return the root of the mean of ``(score - y)^2``."""
    return _mean((scores - y).square(), there).sqrt()


def r2(y: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Return ``1 - mean((score - y)^2) / var(y)``; NaN where all targets are the same."""
    centred = y - _mean(y, there).unsqueeze(-1)
    ratio = _mean((scores - y).square(), there) / _mean(centred.square(), there)
    lowest = torch.where(there, y, torch.inf).amin(-1)
    highest = torch.where(there, y, -torch.inf).amax(-1)
    return torch.where(highest > lowest, 1 - ratio, torch.nan)
