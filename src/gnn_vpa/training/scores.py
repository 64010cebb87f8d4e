"""What scores are worth, to every metric: which are broken, and classes as labels."""

import torch
from torch import Tensor

_HUGE = 1e300  # what an infinite score counts as: scikit-learn takes finite ones alone


def finite(scores: Tensor) -> Tensor:
    """Return scores in float64, infinite ones as huge ones; NaN stays."""
    return scores.double().clamp(-_HUGE, _HUGE)


def is_broken(scores: Tensor, y: Tensor) -> Tensor:
    """Say which scores have no worth: NaN, and of numbers infinite ones; classes are ranked."""
    return ~scores.isfinite() if y.is_floating_point() else scores.isnan()


def _log_odds(scores: Tensor) -> Tensor:
    """Return ``log(p_c / (1 - p_c))`` of each class, which does not saturate as p_c does."""
    classes = scores.shape[-1]
    if classes == 2:
        return scores - scores.flip(-1)
    others = scores.unsqueeze(-2).expand(*scores.shape[:-1], classes, classes)
    own = torch.eye(classes, dtype=torch.bool, device=scores.device)
    return scores - others.masked_fill(own, -torch.inf).logsumexp(-1)


def one_against_rest(y: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return classes as labels: of two the second alone, of more each."""
    odds, classes = _log_odds(scores), scores.shape[-1]
    number = torch.arange(classes, device=y.device)
    is_own = (y.unsqueeze(-1) == number).to(torch.int8)
    return (is_own[..., 1:], odds[..., 1:]) if classes == 2 else (is_own, odds)
