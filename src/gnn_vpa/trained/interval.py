"""How sure a score of so many graphs is."""

import math
from statistics import NormalDist

import torch
from torch import Tensor

from ..training import Metric
from .record import IntervalBy

_Z = NormalDist().inv_cdf(0.975)
_RESAMPLES = 1000
_AT_ONCE = 1 << 22  # scores of resampled graphs that are held at once


def wilson(right: float, graphs: int) -> tuple[float, float]:
    """Return Wilson's interval of a share: 95 % of such intervals hold the true one.

    Example:
        >>> low, high = wilson(0.9, 100)
        >>> round(low, 3), round(high, 3)
        (0.826, 0.945)
    """
    near = _Z * _Z / graphs
    centre = (right + near / 2) / (1 + near)
    reach = _Z / (1 + near) * math.sqrt(right * (1 - right) / graphs + near / (4 * graphs))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def bootstrap(metric: Metric, y: Tensor, scores: Tensor) -> tuple[float, float] | None:
    """Return the middle 95 % of a metric over graphs that are drawn anew, with repetition.

    None where it is undefined for more than half of what is drawn, or there is one graph alone.

    Example:
        >>> from gnn_vpa.training import METRICS
        >>> y = torch.arange(50.0).unsqueeze(1)
        >>> bootstrap(METRICS["mae"], y, y + 1.0)
        (1.0, 1.0)
    """
    count = len(y)
    if count < 2:
        return None
    draw = torch.Generator().manual_seed(0)
    at_once = max(1, _AT_ONCE // max(1, scores.numel()))
    values = []
    for begin in range(0, _RESAMPLES, at_once):
        lanes = min(at_once, _RESAMPLES - begin)
        drawn = torch.randint(count, (lanes, count), generator=draw)
        there = torch.ones(lanes, count, dtype=torch.bool)
        values.append(metric.by_lane(scores[drawn], y[drawn], there))
    defined = torch.cat(values)
    defined = defined[~defined.isnan()]
    if len(defined) <= _RESAMPLES // 2:
        return None
    low, high = torch.quantile(defined, torch.tensor([0.025, 0.975], dtype=defined.dtype)).tolist()
    return low, high


def interval_of(
    metric: Metric, y: Tensor, scores: Tensor
) -> tuple[tuple[float, float] | None, IntervalBy]:
    """Return the 95 % interval of a score, and how it was made.

    Example:
        >>> from gnn_vpa.training import METRICS
        >>> interval_of(METRICS["accuracy"], torch.tensor([0, 1]), torch.eye(2))[1]
        'Wilson'
    """
    if metric.name == "accuracy" and y.dim() == 1:
        there = y >= 0
        value = metric.of(y, scores)
        if math.isnan(value):
            return None, ""
        return wilson(value, int(there.sum())), "Wilson"
    found = bootstrap(metric, y, scores)
    return found, "" if found is None else "bootstrap"
