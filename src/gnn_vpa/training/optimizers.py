"""The optimisers of lanes: torch's own where all lanes have the same settings, or one by lane."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from . import task
from .fused_optimizer import MOMENTUM, FusedOptimizer
from .lane_optimizer import LaneOptimizer

_STEP_EPOCHS = 50  # after which the schedule "step" halves the rate


class Optimizer(Protocol):
    """What a group needs of an optimiser."""

    def zero_grad(self) -> None:
        """Forget the gradients."""

    def step(self) -> None:
        """Change the weights."""

    def set_rate(self, factor: float) -> None:
        """Let the learning rate be so much of what it was at the start."""

    def state_dict(self) -> dict[str, Any]:
        """Return its state."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""


def rate_factor(protocol: task.Protocol, epoch: int) -> float:
    """Return how much of the learning rate is left in an epoch.

    Example:
        >>> [rate_factor(task.Protocol(schedule="step"), epoch) for epoch in (0, 49, 50, 100)]
        [1.0, 1.0, 0.5, 0.25]
    """
    if protocol.schedule == "step":
        return float(0.5 ** (epoch // _STEP_EPOCHS))
    if protocol.schedule == "cosine":
        return (1 + math.cos(math.pi * epoch / protocol.epochs)) / 2
    return 1.0


def optimizer_for(
    params: Sequence[Tensor], protocols: Sequence[task.Protocol], captured: bool
) -> Optimizer:
    """Return the optimiser of lanes' stacked weights ``[L, ...]``.

    Args:
        params: The weights.
        protocols: How each lane is trained; they differ in learning rate and weight decay at most.
        captured: Whether its steps are captured, so that a rate that changes must be a tensor.
    """
    first = protocols[0]
    alike = len({(own.learning_rate, own.weight_decay) for own in protocols}) == 1
    usual = first.optimizer == "adam" and first.schedule == "constant"
    if alike and not captured and all(param.is_cpu for param in params):
        return FusedOptimizer(params, first)
    if alike and (usual or not captured):
        return _TorchOptimizer(params, first)
    return LaneOptimizer(params, protocols)


class _TorchOptimizer:
    """Torch's own on a GPU: it treats every number by itself, so lanes do not meet."""

    def __init__(self, params: Sequence[Tensor], protocol: task.Protocol) -> None:
        made: dict[str, Any] = {
            "params": list(params),
            "lr": protocol.learning_rate,
            "weight_decay": protocol.weight_decay,
            "fused": True,
        }
        if protocol.optimizer == "sgd":
            self._own: torch.optim.Optimizer = torch.optim.SGD(momentum=MOMENTUM, **made)
        else:
            kind = torch.optim.Adam if protocol.optimizer == "adam" else torch.optim.AdamW
            self._own = kind(capturable=made["params"][0].is_cuda, **made)
        self._rate = protocol.learning_rate
        self.zero_grad, self.step = self._own.zero_grad, self._own.step
        self.state_dict, self.load_state_dict = self._own.state_dict, self._own.load_state_dict

    def set_rate(self, factor: float) -> None:
        """Let the learning rate be so much of what it was at the start."""
        for group in self._own.param_groups:
            group["lr"] = self._rate * factor
