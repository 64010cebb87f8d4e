"""A group of lanes on the CPU, whose steps compute nothing twice that a layer cannot tell apart."""

from collections.abc import Iterator, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from ..graphs import GraphSet
from ..nn import Model
from .batch import Batch
from .group import Group
from .layered import Layered
from .seeds import generator
from .task import Protocol, Training


class LayeredGroup(Group):
    """Lanes whose batches are cut by levels, and evaluated in one go."""

    def __init__(
        self,
        graphs: GraphSet,
        layered: Layered,
        protocol: Protocol,
        trainings: Sequence[Training],
        model: Model,
        dtype: torch.dtype,
    ) -> None:
        device = torch.device("cpu")
        super().__init__(graphs, device, protocol, trainings, deepcopy(model), dtype)
        self.layered = layered
        _install(self.model, self.params | self.buffers)
        # One batch of all validation and test graphs: they have much in common.
        ids, self._parts = self._evaluated_ids()
        self._evaluation_batch = layered.cut(ids, backward=False)

    def run_epoch(self) -> None:
        """Train on every graph once, then evaluate the weights."""
        order, uniform = self._order(self.epoch), self._uniform()
        losses = torch.zeros(len(self.lanes), dtype=self.dtype)
        self.model.train()
        for step, batch in enumerate(self._batches(order)):
            self.optimizer.zero_grad()
            mean = self._losses(self._scores(batch, uniform[step]), batch)
            mean.sum().backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            losses += mean.detach() * batch.real.sum(1)
        self.curves[0, :, self.epoch] = (losses / (order >= 0).sum((1, 2))).numpy()
        self.curves[1:, :, self.epoch] = self._evaluate()
        self.epoch += 1

    def _batches(self, order: Tensor) -> Iterator[Batch]:
        """Yield the batch of every step of an epoch, ``[L, steps, B]``."""
        for steps in torch.split(order.transpose(0, 1), self.layered.at_once(len(self.lanes))):
            yield from self.layered.cut_steps(steps)

    def _scores(self, batch: Batch, uniform: Tensor | None) -> Tensor:
        scores: Tensor = self.model(batch.x, batch.graph, uniform=uniform)
        return scores

    @torch.no_grad()
    def _evaluate(self) -> Tensor:
        """Return the accuracy of each lane in validation and test, ``[2, L]``."""
        self.model.eval()
        batch = self._evaluation_batch
        hit = (self._scores(batch, None).argmax(1) == batch.y).view_as(batch.real)
        right: Tensor = (hit & self._parts).sum(2).to(self.dtype)
        return right / self._parts.sum(2)

    def _uniform(self) -> Tensor:
        """Return the numbers for dropout of this epoch, ``[steps, *model.dropout_shape]``."""
        steps = -(-len(self.lanes[0].split.train) // self.protocol.batch_size)
        shape = (steps, *self.model.dropout_shape(self.protocol.batch_size))
        drawn = [
            torch.rand(shape, generator=generator(key, "dropout", self.epoch), dtype=self.dtype)
            for key in self.keys
        ]
        return torch.cat(drawn, dim=-2)


def _install(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Let a model use these tensors for good: to hand them over at every call takes its time."""
    for name, tensor in state.items():
        path, _, last = name.rpartition(".")
        part = model.get_submodule(path)
        (part._parameters if last in part._parameters else part._buffers)[last] = tensor  # type: ignore[assignment]
