"""Torch's optimisers without their classes, which take longer than the kernels behind them.

The first use of ``torch.optim`` loads torch's compiler: a second of a process that is to start
quickly. And each step looks every weight up anew.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .task import Protocol

MOMENTUM = 0.9  # of SGD
BETAS, EPS = (0.9, 0.999), 1e-8  # Adam's, as torch has them


class FusedOptimizer:
    """Adam, AdamW or SGD on the CPU, by the kernels of ``torch.optim`` with ``fused=True``.

    A weight without a gradient stays as it is, and so do its moments. Results are those of
    ``torch.optim`` to the bit.

    Example:
        >>> weight = torch.ones(3, requires_grad=True)
        >>> optimizer = FusedOptimizer([weight], Protocol(learning_rate=0.5, optimizer="sgd"))
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight
        tensor([0.5000, 0.5000, 0.5000], requires_grad=True)
    """

    def __init__(self, params: Sequence[Tensor], protocol: Protocol) -> None:
        self._params, self._kind = list(params), protocol.optimizer
        self._start = self._rate = protocol.learning_rate
        self._decay = protocol.weight_decay
        moments = ("first",) if self._kind == "sgd" else ("first", "second")
        self._state = {
            name: [torch.zeros_like(param.detach()) for param in self._params] for name in moments
        }
        self._steps = torch.zeros(len(self._params), dtype=torch.float32)  # of each weight
        self._own_steps = self._steps.unbind()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for param in self._params:
            param.grad = None

    def set_rate(self, factor: float) -> None:
        """Let the learning rate be so much of what it was at the start."""
        self._rate = self._start * factor

    @torch.no_grad()
    def step(self) -> None:
        """Change the weights that have a gradient."""
        found = [(place, p, p.grad) for place, p in enumerate(self._params) if p.grad is not None]
        if not found:
            return
        given, weights, grads = (list(part) for part in zip(*found, strict=True))
        if len(given) == len(self._params):
            self._steps += 1
        else:
            self._steps[given] += 1
        moments = [[own[place] for place in given] for own in self._state.values()]
        if self._kind == "sgd":
            torch._fused_sgd_(
                weights, grads, moments[0], lr=self._rate, momentum=MOMENTUM,
                weight_decay=self._decay, dampening=0.0, nesterov=False, maximize=False,
                is_first_step=False,
            )  # fmt: skip
            return
        kernel = torch._fused_adam_ if self._kind == "adam" else torch._fused_adamw_
        kernel(
            weights, grads, moments[0], moments[1], [], [self._own_steps[place] for place in given],
            lr=self._rate, beta1=BETAS[0], beta2=BETAS[1], eps=EPS, weight_decay=self._decay,
            amsgrad=False, maximize=False,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Return its state."""
        return {"state": self._state, "steps": self._steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._steps.copy_(state["steps"])
        for name, moments in self._state.items():
            for own, kept in zip(moments, state["state"][name], strict=True):
                own.copy_(kept)
