"""Groups of lanes of a user's own model: one lane as a plain loop, or several side by side."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..graphs import GraphSet
from . import captured
from .batch import EMPTY
from .group import Group
from .own import Adapter, Source
from .own.alone import Alone
from .own.dropout import step_seeds
from .own.modes import NotSideBySide
from .own.padded import Size, cut_padded, size_for
from .own.together import Together
from .seeds import seed
from .task import Protocol, Training

Work = Callable[[], None]
EVALUATED_NODES = 1 << 18  # nodes of all lanes that are evaluated in one go


class Own(NamedTuple):
    """A user's model, the data as it sees them, and how it is called."""

    model: nn.Module
    adapter: Adapter
    source: Source
    outputs: int


class _Graphs(NamedTuple):
    """What the graphs of a step are: all that a loss asks of a batch."""

    y: Tensor  # [L * B]
    real: Tensor  # [L, B]


class LoopGroup(Group):
    """One lane, as a loop over PyG's batches: what all else must equal."""

    def __init__(
        self,
        graphs: GraphSet,
        own: Own,
        protocol: Protocol,
        trainings: Sequence[Training],
        dtype: torch.dtype,
    ) -> None:
        device = own.source.device
        super().__init__(graphs, device, protocol, trainings, deepcopy(own.model), dtype)
        (self._key,), (lane,) = self.keys, self.lanes
        self._source, self._y = own.source, graphs.y.to(device)
        self._alone = Alone(self.model, own.adapter, own.outputs)
        self._parts = [
            [ids.to(device) for ids in part.split(protocol.batch_size)]
            for part in (lane.split.valid, lane.split.test)
        ]
        self._fold = f"fold {lane.fold}"

    def run_epoch(self) -> None:
        """Train on every graph once, then evaluate the weights."""
        blamed = self._alone.adapter.blamed(f"in epoch {self.epoch} of {self._fold}")
        with _seeded(seed(self._key, "global", self.epoch), self.device), blamed:
            self._link()
            self._train()
            self._evaluate()
            self._unlink()
        self.epoch += 1

    def _train(self) -> None:
        order = self._order(self.epoch)[0]
        seeds = step_seeds([seed(self._key, "dropout", self.epoch)], len(order)).to(self.device)
        total = torch.zeros(1, dtype=self.dtype, device=self.device)
        self.model.train()
        for ids, (own,) in zip(order, seeds, strict=True):
            ids = ids[ids != EMPTY].to(self.device)
            self.model.zero_grad()
            batch = _Graphs(self._y[ids], torch.ones(1, len(ids), device=self.device))
            mean = self._losses(self._alone(self._source.cut(ids), own), batch)
            mean.sum().backward()  # type: ignore[no-untyped-call]
            for name, tensor in self.model.named_parameters():
                gradient = tensor.grad
                self.params[name].grad = None if gradient is None else gradient.unsqueeze(0)
            self.optimizer.step()
            total += mean.detach() * len(ids)
        self.curves[0, :, self.epoch] = (total / int((order != EMPTY).sum())).cpu().numpy()

    @torch.no_grad()
    def _evaluate(self) -> None:
        self.model.eval()
        nothing = torch.zeros((), dtype=torch.int32, device=self.device)
        for row, part in enumerate(self._parts):
            hits = [
                (self._alone(self._source.cut(ids), nothing).argmax(1) == self._y[ids]).sum()
                for ids in part
            ]
            share = torch.stack(hits).sum() / sum(map(len, part))
            self.curves[1 + row, :, self.epoch] = share.cpu().numpy()

    def _link(self) -> None:
        """Let the model use the group's memory: steps then change both."""
        for name, tensor in self.model.named_parameters():
            tensor.data = self.params[name].detach()[0]
        for name, tensor in self.model.named_buffers():
            tensor.data = self.buffers[name][0]

    def _unlink(self) -> None:
        """Take over statistics that the model has put in the place of others."""
        for name, tensor in self.model.named_buffers():
            self.buffers[name][0].copy_(tensor)

    def _scores(self, batch: Any, uniform: Tensor | None) -> Tensor:
        raise NotImplementedError


class LanesGroup(Group):
    """Lanes side by side: one call of the model serves all, and on a GPU it is captured."""

    _ready = False

    def __init__(
        self,
        graphs: GraphSet,
        own: Own,
        protocol: Protocol,
        trainings: Sequence[Training],
        dtype: torch.dtype,
    ) -> None:
        device = own.source.device
        super().__init__(graphs, device, protocol, trainings, deepcopy(own.model), dtype)
        self._source, self._y = own.source, graphs.y.to(device)
        # Two, because a model that is evaluated may ask for other values than one that is trained.
        self._training, self._evaluating = (
            Together(self.model, own.adapter, own.outputs, device) for _ in range(2)
        )

    def run_epoch(self) -> None:
        """Train on every graph once, then evaluate the weights; all of it on the device."""
        with _seeded(0, self.device):  # whoever draws is not side by side
            if not self._ready:
                self._prepare()
            self._total.zero_()
            order = self._orders[self.epoch]
            seeds = step_seeds(
                [seed(key, "dropout", self.epoch) for key in self.keys], len(order)
            ).to(self.device)
            self.model.train()
            for ids, own in zip(order, seeds, strict=True):
                self._ids.copy_(ids)
                self._seeds.copy_(own)
                self._step()
            self.model.eval()
            self._hits.zero_()
            for ids, part in zip(self._evaluated, self._parts, strict=True):
                self._judged.copy_(ids)
                self._part.copy_(part)
                self._judge()
        if not bool(self._training.mode.ok & self._evaluating.mode.ok):
            raise NotSideBySide("a value that it asks for differs between folds or steps")
        self.curves[0, :, self.epoch] = (self._total / self._trained).cpu().numpy()
        self.curves[1:, :, self.epoch] = (self._hits / self._counts).cpu().numpy()
        self.epoch += 1

    def _prepare(self) -> None:
        """Draw the orders of all epochs, so that every step has one shape; capture the steps."""
        device, lanes = self.device, len(self.lanes)
        orders = [self._order(epoch) for epoch in range(self.protocol.epochs)]
        self._orders = torch.stack(orders).transpose(1, 2).to(device)  # [epochs, steps, L, B]
        self._size = size_for(self._source, self._orders)
        self._trained = torch.tensor([len(lane.split.train) for lane in self.lanes], device=device)
        ids, parts = (part.to(device) for part in self._evaluated_ids())
        self._counts = parts.sum(2)
        each = self._source.node_ptr[-1].item() / max(1, len(self._y))
        at_once = max(1, min(ids.shape[1], int(EVALUATED_NODES / (each * lanes))))
        full = -(-ids.shape[1] // at_once) * at_once
        ids = nn.functional.pad(ids, (0, full - ids.shape[1]), value=EMPTY)
        parts = nn.functional.pad(parts, (0, full - parts.shape[2]))
        self._evaluated, self._parts = ids.split(at_once, 1), parts.split(at_once, 2)
        self._judged_size = size_for(self._source, torch.stack(self._evaluated))
        self._ids, self._judged = self._orders[0, 0].clone(), self._evaluated[0].clone()
        self._part = self._parts[0].clone()
        self._seeds = torch.zeros(lanes, dtype=torch.int32, device=device)
        self._total = torch.zeros(lanes, dtype=self.dtype, device=device)
        self._hits = torch.zeros(2, lanes, dtype=self.dtype, device=device)
        with self._untouched():
            pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
            self._step = self._learned(self._train_on, self._training, pool)
            self._judge = self._learned(self._evaluate, self._evaluating, pool)
        self._ready = True

    def _learned(self, work: Work, together: Together, pool: Any) -> Work:
        """Return what does the same again, now that the answers to the model's questions are known."""
        self.model.train(together is self._training)
        together.mode.learn()
        work()
        together.mode.learned()
        return captured._capture(work, pool).replay if self.device.type == "cuda" else work

    def _train_on(self) -> None:
        self.optimizer.zero_grad()
        real = self._ids != EMPTY
        batch = _Graphs(self._y[self._ids.clamp(min=0)].flatten(), real.to(self.dtype))
        scores = self._called(self._training, self._ids, self._size)
        mean = self._losses(scores.flatten(0, 1), batch)
        mean.sum().backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self._total += mean.detach() * real.sum(1)

    @torch.no_grad()
    def _evaluate(self) -> None:
        scores = self._called(self._evaluating, self._judged, self._judged_size)
        hit = scores.argmax(2) == self._y[self._judged.clamp(min=0)]
        self._hits += (hit & self._part).sum(2)

    def _called(self, together: Together, ids: Tensor, size: Size) -> Tensor:
        batch = cut_padded(self._source, ids, size)
        return together(self.params, self.buffers, batch, self._seeds)

    def _scores(self, batch: Any, uniform: Tensor | None) -> Tensor:
        raise NotImplementedError


@contextmanager
def _seeded(own: int, device: torch.device) -> Iterator[None]:
    """Let all that draws from a global generator draw the same, whatever ran before."""
    devices = [device] if device.type == "cuda" else []
    mine, theirs = random.getstate(), np.random.get_state()  # noqa: NPY002 - models may use it
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(own)
        random.seed(own)
        np.random.seed(own % (1 << 32))  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(mine)
            np.random.set_state(theirs)  # noqa: NPY002
