"""What lanes minimise: the loss by kind of targets, each lane with numbers of its own graphs."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from ..errors import UsageError
from ..graphs import TargetKind, kind_of
from ..graphs.targets import known
from .task import Protocol, Training

LOSSES: dict[TargetKind, tuple[str, ...]] = {
    "classes": ("cross_entropy",),
    "labels": ("bce",),
    "regression": ("l1", "mse", "huber"),
}
"""The losses by kind of targets; the first is the default."""


def loss_for(protocol: Protocol, kind: TargetKind) -> str:
    """Return the loss that a protocol means for a kind of targets.

    Example:
        >>> loss_for(Protocol(), "regression")
        'l1'
    """
    there = LOSSES[kind]
    if protocol.class_weight != "none" and kind == "regression":
        raise UsageError("class_weight: regression has no classes to weigh, expected 'none'.")
    if protocol.loss not in ("auto", *there):
        raise UsageError(
            f"loss: {protocol.loss!r} is not for {kind}, expected one of {', '.join(there)}."
        )
    return there[0] if protocol.loss == "auto" else protocol.loss


class Objective:
    """The losses of L lanes, from the scores of B graphs each.

    A missing target counts nothing. Regression is learned with targets that have a mean of 0 and a
    variance of 1 among the training graphs of a lane; ``outputs`` brings scores back to the data's
    units. Weights of classes are those of scikit-learn's ``"balanced"``, by lane too.
    """

    def __init__(
        self,
        y: Tensor,
        trainings: Sequence[Training],
        outputs: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        protocol, self.kind = trainings[0].protocol, kind_of(y)
        self.loss = loss_for(protocol, self.kind)
        self._misses = not bool(known(y).all())
        own = [y[training.lane.split.train].cpu() for training in trainings]
        self._centre = self._spread = self._weight = None
        if self.kind == "regression":
            pairs = [moments(part.double()) for part in own]
            centre, spread = (torch.stack(part) for part in zip(*pairs, strict=True))
            self._centre = centre.unsqueeze(1).to(device, dtype)  # [L, 1, T]
            self._spread = spread.unsqueeze(1).to(device, dtype)
        if protocol.class_weight == "balanced":
            count = outputs if self.kind == "classes" else 2
            weights = [_balanced(part if part.dim() == 2 else part[:, None], count) for part in own]
            self._weight = torch.stack(weights).to(device, dtype)  # [L, T, C], T = 1 for classes

    def losses(self, scores: Tensor, y: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean loss of each lane, and how much the mean is of.

        Args:
            scores: ``[L * B, outputs]``.
            y: The targets, ``[L * B]`` or ``[L * B, T]``.
            real: Which graphs there are, ``[L, B]``, or how much each counts.

        Returns:
            Means ``[L]``, 0 where a lane has no target, and the weight of each, ``[L]``: the number
            of its targets, or the sum of their weights.
        """
        if self.kind == "classes":
            each = F.cross_entropy(scores, y, reduction="none", ignore_index=-1).view_as(real)
            share = real
            y = y.view_as(real)
        else:
            y = y.view(*real.shape, -1)
            each = self._each(scores.view_as(y), y)
            share = real.unsqueeze(2).expand(y.shape)
        if self._misses:
            share = share * known(y)
        if self._weight is not None:
            share = share * self._weights_of(y)
        if self.kind != "classes":
            each, share = each.flatten(1), share.flatten(1)
        total = share.sum(1)
        # Where nothing counts the mean is 0, and so is its gradient: 0 / 0 would have none.
        return (each * share).sum(1) / total.where(total > 0, 1), total

    def outputs(self, scores: Tensor) -> Tensor:
        """Return scores ``[L, B, outputs]`` in the data's units."""
        if self._centre is None or self._spread is None:
            return scores
        return scores * self._spread + self._centre

    def _each(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return the loss of every target, ``[L, B, T]``; anything finite where it is missing."""
        there = known(y)
        if self.kind == "labels":
            right = torch.where(there, y, 0).to(scores.dtype)
            return F.binary_cross_entropy_with_logits(scores, right, reduction="none")
        assert self._centre is not None
        assert self._spread is not None
        right = (torch.where(there, y.to(scores.dtype), self._centre) - self._centre) / self._spread
        if self.loss == "l1":
            return F.l1_loss(scores, right, reduction="none")
        if self.loss == "mse":
            return F.mse_loss(scores, right, reduction="none")
        return F.huber_loss(scores, right, reduction="none")

    def _weights_of(self, y: Tensor) -> Tensor:
        """Return the weight of every target, in the shape of ``y``."""
        assert self._weight is not None
        at = y.long().clamp(min=0)
        if self.kind == "classes":
            return self._weight.squeeze(1).gather(1, at)
        return self._weight.unsqueeze(1).expand(*y.shape, 2).gather(3, at.unsqueeze(3)).squeeze(3)


def moments(y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of each target ``[B, T]``; 0 and 1 of none.

    Example:
        >>> moments(torch.tensor([[1.0], [3.0]]))
        (tensor([2.]), tensor([1.]))
    """
    there = known(y)
    centre = y.nanmean(0)
    spread = (y - centre).square().nanmean(0).sqrt()
    filled = torch.where(there, y, torch.inf).amin(0), torch.where(there, y, -torch.inf).amax(0)
    varies = filled[0] < filled[1]  # otherwise the deviation is nothing but rounding
    return centre.nan_to_num(0.0), torch.where(varies, spread, 1.0)


def _balanced(y: Tensor, classes: int) -> Tensor:
    """Return ``B / (classes that are there * members)`` by class of ``[B, T]``: ``[T, C]``."""
    members = torch.stack([(y == c).sum(0) for c in range(classes)], dim=1).double()
    there = members > 0
    even = members.sum(1, keepdim=True) / there.sum(1, keepdim=True).clamp(min=1)
    return torch.where(there, even / members.clamp(min=1), 0.0)
