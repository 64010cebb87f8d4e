"""A group of lanes on the CPU, whose steps compute nothing twice that a layer cannot tell apart."""

from collections.abc import Iterator, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from ..graphs import GraphSet
from ..nn import Model
from .batch import Batch
from .layered import Layered
from .seeds import generator
from .stacked_group import StackedGroup
from .task import Protocol, Training


class LayeredGroup(StackedGroup):
    """Lanes whose batches are cut by levels, and evaluated in one go."""

    captures = False
    model: Model

    def __init__(
        self,
        graphs: GraphSet,
        layered: Layered,
        protocol: Protocol,
        trainings: Sequence[Training],
        model: Model,
        dtype: torch.dtype,
        keep_weights: bool = False,
    ) -> None:
        cpu, own = torch.device("cpu"), deepcopy(model)
        super().__init__(graphs, cpu, protocol, trainings, own, dtype, keep_weights)
        self.layered = layered
        _install(self.model, self.params | self.buffers)
        # One batch of all validation and test graphs: they have much in common.
        self._evaluation_batch = layered.cut(self._evaluated, backward=False)

    def run_epoch(self) -> None:
        """Train on every graph once, then evaluate the weights."""
        order, uniform = self._order(self.epoch), self._uniform()
        losses, weights = torch.zeros(2, len(self.lanes), dtype=self.dtype)
        self._set_rate()
        self.model.train()
        for step, batch in enumerate(self._batches(order)):
            loss, weight = self._step(batch, uniform[step])
            losses += loss
            weights += weight
        self.enter(losses / weights, self._evaluate())
        self.epoch += 1

    def _batches(self, order: Tensor) -> Iterator[Batch]:
        """Yield the batch of every step of an epoch, ``[L, steps, B]``."""
        for steps in torch.split(order.transpose(0, 1), self.layered.at_once(len(self.lanes))):
            for ids, batch in zip(steps, self.layered.cut_steps(steps), strict=True):
                yield (
                    batch if self._graph_weights is None else batch._replace(real=self._counts(ids))
                )

    def _scores(self, batch: Batch, uniform: Tensor | None) -> Tensor:
        scores: Tensor = self.model(batch.x, batch.graph, uniform=uniform)
        return scores

    @torch.no_grad()
    def _evaluate(self) -> Tensor:
        """Return the scores of validation and test graphs, ``[L, B, outputs]``."""
        self.model.eval()
        batch = self._evaluation_batch
        return self._scores(batch, None).view(*batch.real.shape, -1)

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
