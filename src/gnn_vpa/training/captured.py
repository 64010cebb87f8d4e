"""A group of lanes on a GPU: every step is a CUDA graph, replayed without asking Python."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from ..graphs import GraphSet
from ..nn import Blocks
from ..nn._layers import Layers
from ..nn._model import Model
from ..ops import Graph
from ..ops._aggregate import weighted_sum
from ..ops._csr import CSR
from .batch import Batch
from .fill import batch_of
from .group import Group, stacked
from .packed import Packed, pack, unpack
from .plan import Plan, Room, needs, plan
from .seeds import generator
from .tables import Tables
from .task import Protocol, Training

_SIZES = (1.0, 0.9, 0.5)  # quantiles of the steps' needs: a step of each size is captured,
_WORTHWHILE = 0.93  # if it saves so much of the next larger one
_MANY = 1 << 16  # rows below which a step takes as long with fewer
_PLANNED = 1 << 20  # graphs that are planned in one go
_JUDGED = 1 << 20  # rows of all levels that are judged in one go
_AHEAD = 4  # epochs whose random numbers are drawn before they are needed

_Rooms = tuple[Room, ...]


class _Step(NamedTuple):
    rooms: _Rooms
    inputs: tuple[Tensor, Tensor]  # what a replay reads, packed
    graph: torch.cuda.CUDAGraph


class CapturedGroup(Group):
    """Lanes whose steps and judgements are captured once and replayed for every epoch.

    The orders of all epochs are drawn beforehand, so the room that steps need is known exactly.
    Many steps are planned at once (`plan.py`); a step then copies its plan and replays.
    """

    _steps: list[_Step] | None = None
    _done: torch.cuda.Event | None = None

    def __init__(
        self,
        graphs: GraphSet,
        known: Tables,
        protocol: Protocol,
        trainings: Sequence[Training],
        model: Model,
        dtype: torch.dtype,
    ) -> None:
        device = known.y.device
        self._known = known
        self._kind = torch.tensor([known.tasks.index(task) for task, _ in trainings], device=device)
        super().__init__(graphs, known, protocol, trainings, model, dtype)

    def run_epoch(self) -> None:
        """Train on every graph once, then judge the weights; all of it on the device."""
        if self._steps is None:
            self._prepare()
        assert self._steps is not None
        uniform = self._drawn()
        self._losses_sum.zero_()
        for number in range(len(uniform)):
            size, planned = self._next_step(self.epoch * len(uniform) + number)
            step = self._steps[size]
            for static, value in zip(step.inputs, planned, strict=True):
                static.copy_(value)
            self._draws.copy_(uniform[number])
            step.graph.replay()
        self._judge.replay()
        self._device_curves[0, :, self.epoch] = self._losses_sum / self._trained
        self._device_curves[1:, :, self.epoch] = self._hits / self._judged_counts
        self.epoch += 1
        if self._losses_sum.is_cuda:
            self._keep_pace()

    def _keep_pace(self) -> None:
        """Let the host run at most an epoch ahead, so that progress is the device's."""
        previous, self._done = self._done, torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._done.record()
        if previous is not None:
            previous.synchronize()

    def sync(self) -> None:
        """Bring the curves to the host."""
        if self._steps is not None:
            self.curves[:] = self._device_curves.cpu().numpy()

    def close(self) -> None:
        """Stop drawing ahead."""
        if self._steps is not None:
            self._pool.shutdown(cancel_futures=True)

    # Preparing ------------------------------------------------------------------------------

    def _prepare(self) -> None:
        device, lanes, size = self.data.y.device, len(self.lanes), self.protocol.batch_size
        self._pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="gnn-vpa-draws")
        orders = list(self._pool.map(self._order, range(self.protocol.epochs)))
        all_orders = torch.stack(orders).transpose(1, 2).flatten(0, 1).int()
        self._orders = all_orders.to(device)  # [all steps, L, B]
        self._trained = torch.tensor([len(lane.split.train) for lane in self.lanes], device=device)
        sizes, self._choice = self._sizes()
        self._chunk: dict[int, tuple[int, tuple[Tensor, Tensor]]] = {}
        shape = list(self.model.dropout_shape(size))
        self._front, self._last = shape[:-2], shape[-1]
        self._draws = torch.zeros(
            *self._front, lanes, size, self._last, device=device, dtype=self.dtype
        )
        self._losses_sum = torch.zeros(lanes, device=device, dtype=self.dtype)
        self._hits = torch.zeros(2, lanes, device=device, dtype=self.dtype)
        self._device_curves = torch.from_numpy(self.curves).to(device)
        self._futures: dict[int, Future[Tensor]] = {}
        every = [*sizes, *(rooms for _, rooms, _ in self._judged)]
        largest = max(room.rows for rooms in every for room in rooms)
        self._number = torch.arange(largest + 1, dtype=torch.int32, device=device)
        pool = torch.cuda.graph_pool_handle()
        with self._untouched(), _tensor_cores():
            self._steps = [self._captured(number, s, pool) for number, s in enumerate(sizes)]
            self._judge = _capture(self._count_hits, pool)

    def _captured(self, kind: int, rooms: _Rooms, pool: Any) -> _Step:
        packed = self._plan(self._orders[self._choice == kind][:1].long(), rooms)
        inputs = packed.step(0)
        planned = unpack(packed.layout, inputs)
        return _Step(rooms, inputs, _capture(lambda: self._train_on(planned, rooms), pool))

    def _plan(self, ids: Tensor, rooms: _Rooms) -> Packed:
        return pack(plan(self._known, self._kind, ids, rooms), self.dtype)

    def _sizes(self) -> tuple[list[_Rooms], Tensor]:
        """Choose the sizes of steps, and the size of each: from the largest needs of its kind."""
        found = needs(self._known, self._orders)
        total = torch.stack([need.blocks * need.size for need in found]).sum(0)
        limits: list[int] = []
        for quantile in _SIZES:  # from the largest down: a size must be worth its capture
            limit = int(np.quantile(total.cpu(), quantile, method="higher"))
            if not limits or (limits[0] >= _MANY and limit <= _WORTHWHILE * limits[0]):
                limits.insert(0, limit)
        choice = torch.searchsorted(torch.tensor(limits, device=total.device), total)
        own = [choice == kind for kind in range(len(limits))]
        return [tuple(need.room(kind) for need in found) for kind in own], choice.cpu()

    # Every step -----------------------------------------------------------------------------

    def _next_step(self, number: int) -> tuple[int, tuple[Tensor, Tensor]]:
        """Return the size of a step and its plan, made with those of the steps behind it."""
        if number not in self._chunk:
            self._chunk = {}  # give its memory back first
            self._chunk = self._planned(number)
        return self._chunk.pop(number)

    def _planned(self, first: int) -> dict[int, tuple[int, tuple[Tensor, Tensor]]]:
        assert self._steps is not None
        count = max(1, _PLANNED // self._orders[0].numel())
        choice, ids = (part[first : first + count] for part in (self._choice, self._orders))
        found: dict[int, tuple[int, tuple[Tensor, Tensor]]] = {}
        for kind, step in enumerate(self._steps):
            own = (choice == kind).nonzero().squeeze(1)
            if len(own) > 0:
                some = ids[own.to(ids.device, non_blocking=True)] if len(own) < len(ids) else ids
                several = self._plan(some.long(), step.rooms)
                found |= {first + n: (kind, several.step(k)) for k, n in enumerate(own.tolist())}
        return found

    def _drawn(self) -> Tensor:
        """Return this epoch's numbers for dropout, and have the next epochs' drawn meanwhile."""
        for epoch in range(self.epoch, min(self.epoch + _AHEAD, self.protocol.epochs)):
            if epoch not in self._futures:
                self._futures[epoch] = self._pool.submit(self._numbers, epoch)
        return self._futures.pop(self.epoch).result().to(self.data.y.device, non_blocking=True)

    def _numbers(self, epoch: int) -> Tensor:
        """Return the numbers for dropout of an epoch, ``[steps, ..., L, B, C]``."""
        size, front = self.protocol.batch_size, self._front
        steps = len(self._orders) // self.protocol.epochs
        out = torch.zeros(
            steps, *front, len(self.keys), size, self._last,
            dtype=self.dtype, pin_memory=self._draws.is_cuda,
        )  # fmt: skip
        shape = (steps, *front, size, self._last)
        for lane, key in enumerate(self.keys):
            draw = generator(key, "dropout", epoch)
            out.select(-3, lane).copy_(torch.rand(shape, generator=draw, dtype=self.dtype))
        return out

    def _scores(self, batch: Batch, uniform: Tensor | None) -> Tensor:
        arguments = (batch.x, batch.graph, batch.readout, batch.nodes, uniform)
        own = self.params | self._by_block(batch)
        scores: Tensor = functional_call(self.model, (own, self.buffers), arguments)
        return scores

    def _by_block(self, batch: Batch) -> dict[str, Tensor]:
        """Give every block of rows its lane's weights."""
        graph, known = batch.graph, self._known
        assert graph is None or isinstance(graph, Layers)
        # For the maximum, models write codes out.
        codes = not batch.x.is_floating_point() and (known.form != "max" or known.sets)
        levels = [batch.nodes] if graph is None else [batch.nodes, *(h.nodes for h in graph.hops)]
        found: dict[str, Tensor] = {}
        for name, level in self.model.row_parameters(graph, codes).items():
            own = levels[level]
            assert isinstance(own, Blocks)
            found[name] = _repeated(self.params[name], own, self._number)
        return found

    def _train_on(self, inputs: Plan, rooms: _Rooms) -> None:
        self.model.train()
        self.optimizer.zero_grad()
        batch = batch_of(self._known, self._kind, inputs, rooms, self._number)
        mean = self._losses(self._scores(batch, self._draws.flatten(-3, -2)), batch)
        mean.sum().backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self._losses_sum += mean.detach() * batch.real.sum(1)

    @torch.no_grad()
    def _count_hits(self) -> None:
        self.model.eval()
        self._hits.zero_()
        for inputs, rooms, parts in self._judged:
            batch = batch_of(self._known, self._kind, inputs, rooms, self._number)
            hit = (self._scores(batch, None).argmax(1) == batch.y).view_as(batch.real)
            self._hits += (hit & parts).sum(2)

    def _fixed(self) -> list[tuple[Plan, _Rooms, Tensor]]:
        """Plan the batches of validation and test graphs, which stay the same.

        Returns:
            Plans, their rooms, and which graphs are for validation and test: ``[2, L, B]``.
        """
        device, lanes = self.data.y.device, len(self.lanes)
        ids = [torch.cat([lane.split.valid, lane.split.test]) for lane in self.lanes]
        mean = max(1, sum(len(level.times) for level in self._known.levels) // len(self.data.y))
        size = min(max(map(len, ids)), max(1, _JUDGED // (mean * lanes)))
        batches = stacked(ids, size).transpose(0, 1)  # [batches, L, size]
        valid = torch.tensor([len(lane.split.valid) for lane in self.lanes]).unsqueeze(1)
        found = []
        for number, batch in enumerate(batches):
            step = batch.unsqueeze(0).to(device)
            rooms = tuple(need.room(slice(None)) for need in needs(self._known, step))
            packed = self._plan(step, rooms)
            inputs = unpack(packed.layout, packed.step(0))
            place = torch.arange(number * size, (number + 1) * size)
            parts = torch.stack([place < valid, place >= valid]) & (batch >= 0)
            found.append((inputs, rooms, parts.to(device)))
        self._judged_counts = torch.stack([parts.sum(2) for *_, parts in found]).sum(0)
        return found

    @contextmanager
    def _untouched(self) -> Iterator[None]:
        """Put weights, statistics and Adam's moments back afterwards: warming up changes them."""
        kept = {n: t.detach().clone() for n, t in (self.params | self.buffers).items()}
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


def _repeated(weight: Tensor, own: Blocks, number: Tensor) -> Tensor:
    """Return a lane's weight for each of its blocks: sums over one, from lanes to blocks."""
    lanes, count = len(own.ptr) - 1, len(own.lane)
    graph = Graph.of(
        CSR(number[: count + 1], own.lane, None, 1),
        CSR(own.ptr, number[:count], None, own.most),
        (lanes, count),
    )
    return weighted_sum(weight.flatten(1), graph).view(count, *weight.shape[1:])


def _copied(state: dict[int, dict[str, Any]]) -> dict[int, dict[str, Tensor]]:
    return {n: {k: t.clone() for k, t in own.items()} for n, own in state.items()}


@contextmanager
def _tensor_cores() -> Iterator[None]:
    """Let products of float32 matrices round to TF32, as the paper's code does."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _capture(work: Callable[[], None], pool: Any) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()  # whatever is made on first use is made outside the capture
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        work()
    return graph
