"""The lanes that share every step, and their state between epochs."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state
from torch.nn.functional import cross_entropy

from ..graphs import GraphSet
from ..nn._model import Model
from .batch import EMPTY, Batch, cut
from .resident import model_for
from .seeds import generator, seed
from .task import Outcome, Protocol, Training

_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class Group:
    """L trainings, step by step together.

    Attributes:
        epoch: Number of epochs done.
        params: Stacked weights, by name: ``[L, ...]``.
        buffers: Stacked running statistics, by name.
        optimizer: Adam on ``params``: it treats every number by itself, so lanes do not meet.
        curves: Training loss, validation and test accuracy: ``[3, L, epochs]``, NaN yet to come.
    """

    def __init__(
        self,
        graphs: GraphSet,
        data: Any,
        protocol: Protocol,
        trainings: Sequence[Training],
        model: Model,
        dtype: torch.dtype,
    ) -> None:
        self.data = data  # a Resident, or what another kind of group cuts its batches from
        self.protocol, self.model = protocol, model
        self.lanes = [lane for _, lane in trainings]
        self.keys = [(graphs.name, task, lane.fold, lane.seed) for task, lane in trainings]
        device = data.x.device
        models = []
        for key in self.keys:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed(key, "initial weights"))
                models.append(model_for(key[1], graphs).to(device, dtype))
        self.params, self.buffers = stack_module_state(models)
        self.optimizer = torch.optim.Adam(
            list(self.params.values()),
            lr=protocol.learning_rate,
            fused=True,
            capturable=device.type == "cuda",
        )
        self.epoch = 0
        self.curves = np.full((3, len(trainings), protocol.epochs), np.nan, dtype=_NUMPY[dtype])
        self.dtype = dtype
        self._judged: list[Any] = self._fixed()

    def run_epoch(self) -> None:
        """Train on every graph once, then judge the weights."""
        order, uniform = self._order(self.epoch).to(self.data.y.device), self._uniform()
        losses = torch.zeros(len(self.lanes), device=order.device, dtype=self.dtype)
        self.model.train()
        for step, batch in enumerate(self._batches(order)):
            self.optimizer.zero_grad()
            mean = self._losses(self._scores(batch, uniform[step]), batch)
            mean.sum().backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            losses += mean.detach() * batch.real.sum(1)
        self.curves[0, :, self.epoch] = (losses / (order >= 0).sum((1, 2))).cpu().numpy()
        self.curves[1:, :, self.epoch] = self._accuracies()
        self.epoch += 1

    def state(self) -> dict[str, Any]:
        """Return a copy of all that it takes to go on from here."""
        self.sync()
        return deepcopy(
            {
                "params": self.params,
                "buffers": self.buffers,
                "optimizer": self.optimizer.state_dict(),
                "curves": torch.from_numpy(self.curves),
                "epoch": self.epoch,
            }
        )

    def go_on(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        with torch.no_grad():
            for own, kept in ((self.params, state["params"]), (self.buffers, state["buffers"])):
                for name, tensor in own.items():
                    tensor.copy_(kept[name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.curves[:] = state["curves"].numpy()
        self.epoch = state["epoch"]

    def sync(self) -> None:
        """Make sure that ``curves`` are up to date."""

    def close(self) -> None:
        """Let go of what outlives a call."""

    def outcomes(self) -> list[Outcome]:
        """Return what each lane came to."""
        self.sync()
        return [
            Outcome.of(lane.fold, lane.seed, *(self.curves[:, row]))
            for row, lane in enumerate(self.lanes)
        ]

    def _scores(self, batch: Batch, uniform: Tensor | None) -> Tensor:
        arguments = (batch.x, batch.graph, batch.readout, batch.nodes, uniform)
        scores: Tensor = functional_call(self.model, (self.params, self.buffers), arguments)
        return scores

    def _losses(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of each lane, ``[L]``."""
        each = cross_entropy(scores, batch.y, reduction="none").view_as(batch.real)
        return (each * batch.real).sum(1) / batch.real.sum(1)

    def _accuracies(self) -> Tensor:
        """Return the accuracy of each lane in validation and test, ``[2, L]``."""
        return torch.stack([self._accuracy(batches) for batches in self._judged])

    @torch.no_grad()
    def _accuracy(self, batches: list[Batch]) -> Tensor:
        """Return the share of graphs that each lane classifies rightly, ``[L]``."""
        self.model.eval()
        right = torch.zeros(len(self.lanes), device=self.data.y.device, dtype=self.dtype)
        total = torch.zeros_like(right)
        for batch in batches:
            hit = self._scores(batch, None).argmax(1) == batch.y
            right += (hit.view_as(batch.real) & batch.real).sum(1)
            total += batch.real.sum(1)
        return (right / total).cpu()

    def _order(self, epoch: int) -> Tensor:
        """Return the graphs of every step of an epoch, ``[L, steps, batch_size]``."""
        shuffled = []
        for key, lane in zip(self.keys, self.lanes, strict=True):
            draw = generator(key, "order", epoch)
            ids = lane.split.train
            shuffled.append(ids[torch.randperm(len(ids), generator=draw)])
        return stacked(shuffled, self.protocol.batch_size)

    def _uniform(self) -> Tensor:
        """Return the numbers for dropout of this epoch, ``[steps, *model.dropout_shape]``."""
        steps = -(-len(self.lanes[0].split.train) // self.protocol.batch_size)
        shape = (steps, *self.model.dropout_shape(self.protocol.batch_size))
        drawn = [
            torch.rand(shape, generator=generator(key, "dropout", self.epoch), dtype=self.dtype)
            for key in self.keys
        ]
        return torch.cat(drawn, dim=-2).to(self.data.y.device)

    def _fixed(self) -> list[Any]:
        """Cut the batches of validation and of test graphs, which stay the same."""
        return [
            self._cut_all([lane.split.valid for lane in self.lanes]),
            self._cut_all([lane.split.test for lane in self.lanes]),
        ]

    def _cut_all(self, ids: Sequence[Tensor]) -> list[Batch]:
        size, device = 2 * self.protocol.batch_size, self.data.y.device
        return [self._cut(step) for step in stacked(ids, size).to(device).unbind(1)]

    def _batches(self, order: Tensor) -> Iterator[Batch]:
        """Yield the batch of every step of an epoch, ``[L, steps, B]``."""
        return map(self._cut, order.unbind(1))

    def _cut(self, ids: Tensor) -> Batch:
        """Cut a batch of each lane's graphs, ``[L, B]``."""
        return cut(self.data, ids)


def stacked(ids: Sequence[Tensor], size: int) -> Tensor:
    """Cut each lane's graphs into steps of ``size``: ``[L, steps, size]``, filled with EMPTY."""
    longest = max(len(own) for own in ids)
    steps = -(-longest // size)
    out = torch.full((len(ids), steps * size), EMPTY)
    for row, own in zip(out, ids, strict=True):
        row[: len(own)] = own
    return out.view(len(ids), steps, size)
