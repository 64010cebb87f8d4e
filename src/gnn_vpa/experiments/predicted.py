"""Classes that were predicted, judged by any metric: what the baselines share."""

from torch import Tensor
from torch.nn.functional import one_hot

from ..training import METRICS


def score(metric: str, y: Tensor, predicted: Tensor, classes: int) -> float:
    """Return what predicted classes are worth; a class counts as sure.

    Args:
        metric: A name of ``METRICS``.
        y: True classes, ``[B]``.
        predicted: Predicted classes, ``[B]``.
        classes: How many there are.

    Example:
        >>> import torch
        >>> score("accuracy", torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), 2)
        0.6666666666666666
    """
    return METRICS[metric].of(y, one_hot(predicted, classes).float())
