"""The lanes that share every step: what they minimise, what they came to, and their state."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from ..graphs import GraphSet
from .batch import EMPTY
from .metrics import metric_for
from .objective import Objective
from .record import Record
from .seeds import generator
from .task import Curves, Outcome, Protocol, Training


class Group(ABC):
    """L trainings, step by step together. What computes their scores is a subclass's.

    Attributes:
        epoch: Number of epochs done.
        protocol: How they are trained; lanes may differ in learning rate and weight decay.
        lanes: The lanes.
        keys: What random numbers of each lane depend on.
        objective: What they minimise.
        record: What they have come to.
    """

    def __init__(
        self,
        graphs: GraphSet,
        device: torch.device,
        protocol: Protocol,
        trainings: Sequence[Training],
        dtype: torch.dtype,
        kept: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Start with no epoch done.

        Args:
            graphs: The data set.
            device: Where.
            protocol: How they are trained.
            trainings: The trainings.
            dtype: Type of weights and features.
            kept: The weights ``[L, ...]`` that are to be kept at the best epoch, if any.
        """
        self.device, self.protocol, self.dtype = device, protocol, dtype
        self.lanes = [training.lane for training in trainings]
        self.keys = [
            (graphs.seed_source, task, lane.fold, lane.seed) for task, lane, _ in trainings
        ]
        self.epoch = 0
        outputs = graphs.num_outputs
        self.objective = Objective(graphs.y, trainings, outputs, dtype, device)
        self._graph_weights = None  # of graphs in the loss
        if graphs.weights is not None:
            self._graph_weights = graphs.weights.squeeze(1).to(device, dtype)
        self._kept = kept
        self._evaluated, parts = self._evaluated_ids()
        y = graphs.y[self._evaluated.clamp(min=0)].to(device)
        metric = metric_for(protocol.metric, graphs.kind)
        self.record = Record(
            metric, protocol.patience, protocol.epochs, y, parts.to(device), outputs, dtype, kept
        )

    @abstractmethod
    def run_epoch(self) -> None:
        """Train on every graph once, evaluate the weights, and enter both in the record."""

    @property
    def is_done(self) -> bool:
        """Whether all lanes have ended."""
        ended = self.epoch > 0 and not bool(self.record.state["alive"].any())
        return ended or self.epoch >= self.protocol.epochs

    def enter(self, losses: Tensor, scores: Tensor) -> None:
        """Enter an epoch in the record; ``epoch`` itself is the caller's to raise.

        Args:
            losses: The training loss of each lane, ``[L]``.
            scores: Of the graphs ``self._evaluated`` of each lane: ``[L, B, outputs]``.
        """
        self.record.add(losses, self.objective.outputs(scores), self._kept)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that it takes to go on from here."""
        record = self.record.state_dict()
        return deepcopy({"epoch": self.epoch, "record": record, "own": self._state()})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.record.load_state_dict(state["record"])
        self._load_state(state["own"])
        self.epoch = state["epoch"]

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Return the state of weights and optimiser; it need not be a copy."""

    @abstractmethod
    def _load_state(self, state: dict[str, Any]) -> None:
        """Go on with weights and optimiser."""

    def close(self) -> None:  # noqa: B027 - not every kind of group has something to do
        """Let go of what outlives a call."""

    def outcomes(self) -> list[Outcome]:
        """Return what each lane came to."""
        return self.record.outcomes(self.lanes)

    def curves(self) -> list[Curves]:
        """Return what each lane has come to so far, see `Record.curves`."""
        return self.record.curves()

    def _counts(self, ids: Tensor) -> Tensor:
        """Return how much each graph counts in the loss: nothing in an empty place."""
        there = ids != EMPTY
        if self._graph_weights is None:
            return there
        return self._graph_weights[ids.clamp(min=0)] * there

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
