"""Groups of lanes of a user's own model: one lane as a plain loop, or several side by side."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...errors import GnnVpaError
from ...graphs import GraphSet
from ...pyg.internal import sum_by_kernels
from ...random_state import seeded
from .. import captured
from ..batch import EMPTY
from ..seeds import seed
from ..stacked_group import StackedGroup
from ..task import Protocol, Task, Training
from .adapter import Adapter, shortened
from .alone import Alone
from .batches import Source
from .build import own_model
from .dropout import step_seeds
from .modes import NotSideBySide
from .padded import cut_padded, edges_of, size_for
from .together import Together

_log = logging.getLogger("gnn_vpa")
Work = Callable[[], None]
JUDGED = 128  # graphs that a loop evaluates in one go: a cache's fill
EVALUATED_NODES = 1 << 18  # nodes of all lanes that are evaluated in one go


class Own(NamedTuple):
    """A user's model, the data as it sees them, and how it is called."""

    model: nn.Module
    adapter: Adapter
    source: Source
    outputs: int
    by_kernels: bool = False  # whether a loop lets our kernels compute its sums


class _Graphs(NamedTuple):
    """The graphs of a step."""

    ids: Tensor  # [L, B], EMPTY behind a lane's last
    y: Tensor  # [L * B], or [L * B, T]
    real: Tensor  # [L, B], how much each counts in the loss


class LoopGroup(StackedGroup):
    """One lane, as a loop over PyG's batches: what all else must equal."""

    captures = False

    def __init__(
        self,
        graphs: GraphSet,
        own: Own,
        protocol: Protocol,
        trainings: Sequence[Training],
        dtype: torch.dtype,
        keep_weights: bool = False,
    ) -> None:
        device = own.source.device
        model = _fresh(graphs, trainings[0].task).to(device, dtype)
        if own.by_kernels:
            sum_by_kernels(model)
        super().__init__(graphs, device, protocol, trainings, model, dtype, keep_weights)
        (self._key,), (lane,) = self.keys, self.lanes
        self._source, self._y = own.source, graphs.y.to(device)
        self._alone = Alone(self.model, own.adapter, own.outputs)
        self._weights = list(self.model.named_parameters())
        parts = (lane.split.valid, lane.split.test)
        self._judged = [
            own.source.cut(ids) for part in parts for ids in torch.split(part.to(device), JUDGED)
        ]
        self._fold = f"fold {lane.fold}"

    def run_epoch(self) -> None:
        """Train on every graph once, then evaluate the weights."""
        blamed = self._alone.adapter.blamed(f"in epoch {self.epoch} of {self._fold}")
        with seeded(seed(self._key, "global", self.epoch)), blamed:
            self._link()
            losses, scores = self._train(), self._evaluate()
            self._unlink()
        self.enter(losses, scores.unsqueeze(0))
        self.epoch += 1

    def _train(self) -> Tensor:
        """Return the mean loss."""
        order = self._order(self.epoch)[0]
        seeds = step_seeds([seed(self._key, "dropout", self.epoch)], len(order)).to(self.device)
        losses, weights = torch.zeros(2, 1, dtype=self.dtype, device=self.device)
        self._set_rate()
        self.model.train()
        for ids, (own,) in zip(order, seeds, strict=True):
            ids = ids[ids != EMPTY].to(self.device)
            batch = _Graphs(ids, self._y[ids], self._counts(ids)[None])
            loss, weight = self._step(batch, own)
            losses += loss
            weights += weight
        mean: Tensor = losses / weights
        return mean

    def _scores(self, batch: Any, uniform: Tensor | None) -> Tensor:
        scores: Tensor = self._alone(self._source.cut(batch.ids), uniform)
        return scores

    def _backward(self, loss: Tensor) -> None:
        for _, tensor in self._weights:
            tensor.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        for name, tensor in self._weights:
            gradient = tensor.grad
            self.params[name].grad = None if gradient is None else gradient.unsqueeze(0)

    @torch.no_grad()
    def _evaluate(self) -> Tensor:
        """Return the scores of validation and test graphs, ``[B, outputs]``."""
        self.model.eval()
        return torch.cat([self._alone(inputs) for inputs in self._judged])

    def _link(self) -> None:
        """Let the model use the group's memory: steps then change both."""
        for name, tensor in self._weights:
            tensor.data = self.params[name].detach()[0]
        for name, statistic in self.model.named_buffers():
            statistic.data = self.buffers[name][0]

    def _unlink(self) -> None:
        """Take over statistics that the model has put in the place of others."""
        for name, tensor in self.model.named_buffers():
            if name not in self.buffers:
                raise GnnVpaError(
                    f"{self._alone.adapter.name}: its model makes the buffer {name!r} while it "
                    "runs: make it in __init__, so that a checkpoint can hold it."
                )
            self.buffers[name][0].copy_(tensor)


class LanesGroup(StackedGroup):
    """Lanes side by side: one call of the model serves all, and on a GPU it is captured."""

    captures = True
    _ready = False

    def __init__(
        self,
        graphs: GraphSet,
        own: Own,
        protocol: Protocol,
        trainings: Sequence[Training],
        dtype: torch.dtype,
        keep_weights: bool = False,
    ) -> None:
        device = own.source.device
        model = _fresh(graphs, trainings[0].task).to(device, dtype)
        super().__init__(graphs, device, protocol, trainings, model, dtype, keep_weights)
        self._source, self._y = own.source, graphs.y.to(device)
        # Two, because a model that is evaluated may ask for other values than one that is trained.
        self._training, self._evaluating = (
            Together(self.model, own.adapter, own.outputs, device) for _ in range(2)
        )

    def run_epoch(self) -> None:
        """Train on every graph once, then evaluate the weights; all of it on the device.

        Raises:
            NotSideBySide: A loop must do it, and says what is wrong if it cannot either.
        """
        try:
            losses, scores = self._run()
        except (NotSideBySide, GnnVpaError, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:
            raise NotSideBySide(f"{type(error).__name__}: {shortened(error)}") from error
        self.enter(losses, scores)
        self.epoch += 1

    def _run(self) -> tuple[Tensor, Tensor]:
        if not self._ready:
            self._prepare()
        order = self._orders[self.epoch]
        lanes = [seed(key, "dropout", self.epoch) for key in self.keys]
        self._set_rate()
        self._sums.zero_()
        self.model.train()
        for ids, own in zip(order, step_seeds(lanes, len(order)).to(self.device), strict=True):
            self._ids.copy_(ids)
            self._seeds.copy_(own)
            self._train_step()
        self.model.eval()
        scores = []
        for ids in self._judged_ids:
            self._judged.copy_(ids)
            self._judge()
            scores.append(self._said.clone())
        if not bool(self._training.mode.ok & self._evaluating.mode.ok):
            raise NotSideBySide("a value that it asks for differs between folds or steps")
        return self._sums[0] / self._sums[1], torch.cat(scores, 1)[:, : self._evaluated.shape[1]]

    def _prepare(self) -> None:
        """Draw the orders of all epochs, so that every step has one shape; capture the steps."""
        device, lanes = self.device, len(self.lanes)
        orders = [self._order(epoch) for epoch in range(self.protocol.epochs)]
        self._orders = torch.stack(orders).transpose(1, 2).to(device)  # [epochs, steps, L, B]
        if int(edges_of(self._source, self._orders).min()) == 0:
            # Rows of edges and self-loops could not be told from rows of nodes: see `dropout.py`.
            raise NotSideBySide("there are batches without an edge")
        self._size = size_for(self._source, self._orders)
        ids = self._evaluated.to(device)
        each = self._source.node_ptr[-1].item() / len(self._y)
        at_once = max(1, min(ids.shape[1], int(EVALUATED_NODES / (each * lanes))))
        full = -(-ids.shape[1] // at_once) * at_once
        ids = nn.functional.pad(ids, (0, full - ids.shape[1]), value=EMPTY)
        self._judged_ids = torch.split(ids, at_once, 1)
        self._judged_size = size_for(self._source, torch.stack(self._judged_ids))
        self._ids, self._judged = self._orders[0, 0].clone(), self._judged_ids[0].clone()
        self._seeds = torch.zeros(lanes, dtype=torch.int32, device=device)
        self._sums = torch.zeros(2, lanes, dtype=self.dtype, device=device)
        outputs = self._training.outputs
        self._said = torch.zeros(lanes, at_once, outputs, dtype=self.dtype, device=device)
        with self._untouched():
            pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
            self._train_step = self._learned(self._train_on, self._training, pool)
            self._judge = self._learned(self._evaluate, self._evaluating, pool)
        self._ready = True

    def _learned(self, work: Work, together: Together, pool: Any) -> Work:
        """Return what does the same again, now that answers to the model's questions are known."""
        self.model.train(together is self._training)
        together.mode.learn()
        work()
        together.mode.learned()
        if self.device.type != "cuda":
            return work
        try:
            replay: Work = captured._capture(work, pool).replay
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            _log.info(
                "%s: its steps cannot be captured, and are asked of Python one by one (%s)",
                together.adapter.name, shortened(error),
            )  # fmt: skip
            return work
        return replay

    def _train_on(self) -> None:
        y = self._y[self._ids.clamp(min=0)].flatten(0, 1)
        batch = _Graphs(self._ids, y, self._counts(self._ids))
        loss, weight = self._step(batch, self._seeds)
        self._sums[0] += loss
        self._sums[1] += weight

    def _scores(self, batch: Any, uniform: Tensor | None) -> Tensor:
        assert uniform is not None
        padded = cut_padded(self._source, batch.ids, self._size)
        return self._training(self.params, self.buffers, padded, uniform).flatten(0, 1)

    def _backward(self, loss: Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]  # what a model does not use stays as it is

    @torch.no_grad()
    def _evaluate(self) -> None:
        padded = cut_padded(self._source, self._judged, self._judged_size)
        self._said.copy_(self._evaluating(self.params, self.buffers, padded, self._seeds))


def _fresh(graphs: GraphSet, task: Task) -> nn.Module:
    """Make a model whose weights do not matter."""
    with seeded():
        return own_model(task, graphs)
