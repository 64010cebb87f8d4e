"""Lanes of models of one form: their weights are stacked, and one optimiser serves all."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import stack_module_state

from ..graphs import GraphSet
from ..nn import Model
from .group import Group
from .initial import initial_model
from .lane_optimizer import clip_by_lane
from .optimizers import optimizer_for, rate_factor
from .task import Protocol, Training


class StackedGroup(Group):
    """L trainings of models of one form.

    Attributes:
        model: What the lanes' weights take turns in.
        params: Stacked weights, by name: ``[L, ...]``.
        buffers: Stacked running statistics, by name.
        optimizer: On ``params``.
        dropout: The probability of each lane, of models of ours.
    """

    captures: ClassVar[bool]  # whether steps are captured

    def __init__(
        self,
        graphs: GraphSet,
        device: torch.device,
        protocol: Protocol,
        trainings: Sequence[Training],
        model: nn.Module,
        dtype: torch.dtype,
        keep_weights: bool = False,
    ) -> None:
        models = [initial_model(graphs, training, dtype).to(device) for training in trainings]
        self.model = model
        self.dropout = [own.head.dropout.p for own in models if isinstance(own, Model)]
        self.params, self.buffers = stack_module_state(models)
        kept = self.params | self.buffers if keep_weights else None
        super().__init__(graphs, device, protocol, trainings, dtype, kept)
        protocols = [training.protocol for training in trainings]
        self._decays = any(own.weight_decay > 0 for own in protocols)
        self.optimizer = optimizer_for(list(self.params.values()), protocols, self.captures)

    @abstractmethod
    def _scores(self, batch: Any, uniform: Tensor | None) -> Tensor:
        """Return the scores of all lanes' graphs, ``[L * B, outputs]``."""

    def _set_rate(self) -> None:
        """Set the learning rate of the epoch that begins."""
        if self.protocol.schedule != "constant":
            self.optimizer.set_rate(rate_factor(self.protocol, self.epoch))

    def _backward(self, loss: Tensor) -> None:
        """Give the weights their gradients."""
        loss.backward()  # type: ignore[no-untyped-call]

    def _step(self, batch: Any, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Train on a batch, which has ``y`` and ``real``.

        Returns:
            The sum of losses over each lane, and how much it is of.
        """
        self.optimizer.zero_grad()
        mean, weight = self.objective.losses(self._scores(batch, uniform), batch.y, batch.real)
        self._backward(mean.sum())
        if self._decays:
            # A bias that a norm takes out again has no gradient here, and one of 0 in a plain
            # loop: it decays as other weights do.
            for param in self.params.values():
                param.grad = torch.zeros_like(param) if param.grad is None else param.grad
        if self.protocol.clip is not None:
            clip_by_lane(list(self.params.values()), self.protocol.clip)
        self.optimizer.step()
        return mean.detach() * weight, weight

    @contextmanager
    def _untouched(self) -> Iterator[None]:
        """Put weights, moments and the record back afterwards: warming up changes them."""
        kept = {n: t.detach().clone() for n, t in (self.params | self.buffers).items()}
        record = self.record.state_dict()
        moments = _copied(self.optimizer.state_dict()["state"])
        yield
        with torch.no_grad():
            for name, tensor in (self.params | self.buffers).items():
                tensor.copy_(kept[name])
            for number, state in self.optimizer.state_dict()["state"].items():
                for name, tensor in state.items():
                    if number in moments:
                        tensor.copy_(moments[number][name])
                    else:
                        tensor.zero_()
        self.record.load_state_dict(record)

    def _state(self) -> dict[str, Any]:
        return {
            "params": self.params,
            "buffers": self.buffers,
            "optimizer": self.optimizer.state_dict(),
        }

    def _load_state(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            for own, kept in ((self.params, state["params"]), (self.buffers, state["buffers"])):
                for name, tensor in own.items():
                    tensor.copy_(kept[name])
        self.optimizer.load_state_dict(state["optimizer"])


def _copied(state: dict[int, dict[str, Any]]) -> dict[int, dict[str, Tensor]]:
    return {n: {k: t.clone() for k, t in own.items()} for n, own in state.items()}
