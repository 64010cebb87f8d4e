"""A group of lanes on the CPU, whose steps compute nothing twice that a layer cannot tell apart."""

from collections.abc import Iterator, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from ..graphs import GraphSet
from ..nn._model import Model
from .batch import Batch
from .group import Group, stacked
from .layered import Layered
from .task import Protocol, Training


class LayeredGroup(Group):
    """Lanes whose batches are cut by levels, and judged in one go."""

    def __init__(
        self,
        graphs: GraphSet,
        layered: Layered,
        protocol: Protocol,
        trainings: Sequence[Training],
        model: Model,
        dtype: torch.dtype,
    ) -> None:
        super().__init__(graphs, layered, protocol, trainings, deepcopy(model), dtype)
        _install(self.model, self.params | self.buffers)

    def _batches(self, order: Tensor) -> Iterator[Batch]:
        for steps in torch.split(order.transpose(0, 1), self.data.at_once(len(self.lanes))):
            yield from self.data.cut_steps(steps)

    def _scores(self, batch: Batch, uniform: Tensor | None) -> Tensor:
        scores: Tensor = self.model(batch.x, batch.graph, batch.readout, batch.nodes, uniform)
        return scores

    def _fixed(self) -> list[Batch]:
        """Cut one batch of all validation and test graphs: they have much in common."""
        ids = [torch.cat([lane.split.valid, lane.split.test]) for lane in self.lanes]
        valid = torch.tensor([len(lane.split.valid) for lane in self.lanes]).unsqueeze(1)
        (all_ids,) = stacked(ids, max(map(len, ids))).unbind(1)
        is_valid = torch.arange(all_ids.shape[1]) < valid
        self._parts = torch.stack([is_valid, ~is_valid]) & (all_ids >= 0)  # [2, L, B]
        return [self.data.cut(all_ids, backward=False)]

    @torch.no_grad()
    def _accuracies(self) -> Tensor:
        self.model.eval()
        (batch,) = self._judged
        hit = (self._scores(batch, None).argmax(1) == batch.y).view_as(batch.real)
        right: Tensor = (hit & self._parts).sum(2).to(self.dtype)
        return right / self._parts.sum(2)


def _install(model: nn.Module, state: dict[str, Tensor]) -> None:
    """Let a model use these tensors for good: to hand them over at every call takes its time."""
    for name, tensor in state.items():
        path, _, own = name.rpartition(".")
        part = model.get_submodule(path)
        (part._parameters if own in part._parameters else part._buffers)[own] = tensor  # type: ignore[assignment]
