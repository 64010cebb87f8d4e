"""The lanes that share every step, and their state between epochs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import stack_module_state
from torch.nn.functional import cross_entropy

from ..graphs import GraphSet
from ..nn import Model
from .batch import EMPTY, Batch
from .initial import initial_model
from .seeds import generator
from .task import Outcome, Protocol, Training

_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class Group(ABC):
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
        device: torch.device,
        protocol: Protocol,
        trainings: Sequence[Training],
        model: Model,
        dtype: torch.dtype,
    ) -> None:
        self.device, self.protocol, self.model = device, protocol, model
        self.lanes = [training.lane for training in trainings]
        self.keys = [(graphs.name, task, lane.fold, lane.seed) for task, lane, _ in trainings]
        models = [initial_model(graphs, training, dtype).to(device) for training in trainings]
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

    @abstractmethod
    def run_epoch(self) -> None:
        """Train on every graph once, then evaluate the weights."""

    def state_dict(self) -> dict[str, Any]:
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

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        with torch.no_grad():
            for own, kept in ((self.params, state["params"]), (self.buffers, state["buffers"])):
                for name, tensor in own.items():
                    tensor.copy_(kept[name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.curves[:] = state["curves"].numpy()
        self.epoch = state["epoch"]

    def sync(self) -> None:  # noqa: B027 - not every kind of group has something to do
        """Make sure that ``curves`` are up to date."""

    def close(self) -> None:  # noqa: B027
        """Let go of what outlives a call."""

    def outcomes(self) -> list[Outcome]:
        """Return what each lane came to."""
        self.sync()
        return [
            Outcome.of(lane.fold, lane.seed, *(self.curves[:, row]))
            for row, lane in enumerate(self.lanes)
        ]

    @abstractmethod
    def _scores(self, batch: Batch, uniform: Tensor | None) -> Tensor:
        """Return the scores of all lanes' graphs, ``[L * B, classes]``."""

    def _losses(self, scores: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy of each lane, ``[L]``."""
        each = cross_entropy(scores, batch.y, reduction="none").view_as(batch.real)
        return (each * batch.real).sum(1) / batch.real.sum(1)

    def _order(self, epoch: int) -> Tensor:
        """Return the graphs of every step of an epoch, ``[L, steps, batch_size]``."""
        shuffled = []
        for key, lane in zip(self.keys, self.lanes, strict=True):
            draw = generator(key, "order", epoch)
            ids = lane.split.train
            shuffled.append(ids[torch.randperm(len(ids), generator=draw)])
        return stacked(shuffled, self.protocol.batch_size)

    def _evaluated_ids(self) -> tuple[Tensor, Tensor]:
        """Return each lane's graphs for validation and test, ``[L, B]``, and which they are.

        Of the parts ``[2, L, B]``, validation is the first and test the second.
        """
        ids = [torch.cat([lane.split.valid, lane.split.test]) for lane in self.lanes]
        (all_ids,) = stacked(ids, max(map(len, ids))).unbind(1)
        valid = torch.tensor([len(lane.split.valid) for lane in self.lanes]).unsqueeze(1)
        is_valid = torch.arange(all_ids.shape[1]) < valid
        return all_ids, torch.stack([is_valid, ~is_valid]) & (all_ids >= 0)


def stacked(ids: Sequence[Tensor], size: int) -> Tensor:
    """Cut each lane's graphs into steps of ``size``: ``[L, steps, size]``, filled with EMPTY."""
    longest = max(len(own) for own in ids)
    steps = -(-longest // size)
    out = torch.full((len(ids), steps * size), EMPTY)
    for row, own in zip(out, ids, strict=True):
        row[: len(own)] = own
    return out.view(len(ids), steps, size)
