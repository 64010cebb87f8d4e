"""An optimiser with settings for each lane, and gradients that are clipped by lane."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .fused_optimizer import BETAS, EPS, MOMENTUM
from .task import Protocol


class LaneOptimizer:
    """Adam, AdamW or SGD with a learning rate and a weight decay for each lane.

    All weights of a lane are one long row, so that a step is a dozen kernels however many weights
    there are. The formulas are torch's, whose results these equal.

    Example:
        >>> weight = torch.ones(2, 3, requires_grad=True)
        >>> rates = [Protocol(learning_rate=rate, optimizer="sgd") for rate in (0.1, 0.5)]
        >>> optimizer = LaneOptimizer([weight], rates)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight[:, 0]
        tensor([0.9000, 0.5000], grad_fn=<SelectBackward0>)
    """

    def __init__(self, params: Sequence[Tensor], protocols: Sequence[Protocol]) -> None:
        self._params, self._kind = list(params), protocols[0].optimizer
        self._shapes = [param.shape for param in self._params]
        self._sizes = [param[0].numel() for param in self._params]
        some = self._params[0].detach()
        self._start = some.new_tensor([[protocol.learning_rate] for protocol in protocols])
        self._rate = self._start.clone()  # [L, 1]
        self._decay = some.new_tensor([[protocol.weight_decay] for protocol in protocols])
        moments = ("first",) if self._kind == "sgd" else ("first", "second")
        self._state = {name: some.new_zeros(len(some), sum(self._sizes)) for name in moments}
        self._state["step"] = some.new_zeros(1)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for param in self._params:
            param.grad = None

    def set_rate(self, factor: float) -> None:
        """Let the learning rates be so much of what they were at the start."""
        torch.mul(self._start, factor, out=self._rate)

    @torch.no_grad()
    def step(self) -> None:
        """Change the weights that have a gradient."""
        given = [
            torch.zeros_like(param) if param.grad is None else param.grad for param in self._params
        ]
        gradient, weight = (torch.cat([_row(p) for p in of], 1) for of in (given, self._params))
        rate, first = self._rate, self._state["first"]
        self._state["step"] += 1
        if self._kind == "adamw":
            weight = weight * (1 - rate * self._decay)
        else:
            gradient = gradient + self._decay * weight
        if self._kind == "sgd":
            first.mul_(MOMENTUM).add_(gradient)
            weight = weight - rate * first
        else:
            weight = weight - rate * self._direction(gradient, first, self._state["second"])
        parts = torch.split(weight, self._sizes, 1)
        pairs = [
            (param, part.view(shape))
            for param, part, shape in zip(self._params, parts, self._shapes, strict=True)
            if param.grad is not None
        ]
        torch._foreach_copy_([param for param, _ in pairs], [part for _, part in pairs])

    def _direction(self, gradient: Tensor, first: Tensor, second: Tensor) -> Tensor:
        (beta, gamma), step = BETAS, self._state["step"]
        first.lerp_(gradient, 1 - beta)
        second.mul_(gamma).addcmul_(gradient, gradient, value=1 - gamma)
        scale = second.sqrt() / (1 - gamma**step).sqrt() + EPS
        out: Tensor = first / (1 - beta**step) / scale
        return out

    def state_dict(self) -> dict[str, Any]:
        """Return its state, as torch's optimisers have it."""
        return {"state": {0: dict(self._state)}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name, tensor in self._state.items():
            tensor.copy_(state["state"][0][name])


@torch.no_grad()
def clip_by_lane(params: Sequence[Tensor], largest: float) -> None:
    """Scale each lane's gradients down where their norm, over all its weights, is larger.

    Example:
        >>> weight = torch.zeros(2, 2, requires_grad=True)
        >>> weight.grad = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
        >>> clip_by_lane([weight], 1.0)
        >>> weight.grad
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    given = [param.grad for param in params if param.grad is not None]
    norm = torch.stack([_row(own).square().sum(1) for own in given]).sum(0).sqrt()
    factor = (largest / (norm + 1e-6)).clamp(max=1)  # as torch.nn.utils.clip_grad_norm_
    for own in given:
        own.mul_(factor.view(-1, *[1] * (own.dim() - 1)))


def _row(tensor: Tensor) -> Tensor:
    """Return the numbers of each lane as a row."""
    return tensor.reshape(len(tensor), -1)
