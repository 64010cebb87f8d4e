"""A group of lanes on a GPU: every step is a CUDA graph, replayed without asking Python."""

import math
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
from ..nn._model import Model
from ..ops import Graph
from ..ops._aggregate import weighted_sum
from ..ops._csr import CSR
from .batch import Batch
from .group import Group, stacked
from .plan import Plan, Shape, Tables, batch_of, blocks, plan
from .seeds import generator
from .task import Protocol, Training

_SIZES = (1.0, 0.9, 0.5)  # quantiles of the steps' needs: a step of each size is captured,
_WORTHWHILE = 0.93  # if it saves so much of the next larger one
_PLANNED = 1 << 25  # slots and edges that are planned in one go
_JUDGED = 1 << 20  # slots of the graphs that are judged in one go
_AHEAD = 4  # epochs whose random numbers are drawn before they are needed


class _Step(NamedTuple):
    shape: Shape
    inputs: Plan  # what a replay reads
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
        self._known = known
        super().__init__(graphs, known.data, protocol, trainings, model, dtype)

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
                if static is not None and value is not None:
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
        self._orders = torch.stack(orders).transpose(1, 2).flatten(0, 1).int()  # [all steps, L, B]
        self._trained = torch.tensor([len(lane.split.train) for lane in self.lanes], device=device)
        # For the maximum, models write codes out.
        codes = not self._known.x.is_floating_point() and self._known.form != "max"
        self._row_names = self.model.row_parameters(codes)
        shapes, self._choice = self._shapes()
        self._chunk: dict[int, tuple[int, Plan]] = {}
        shape = list(self.model.dropout_shape(size))
        self._front, self._last = shape[:-2], shape[-1]
        self._draws = torch.zeros(
            *self._front, lanes, size, self._last, device=device, dtype=self.dtype
        )
        self._losses_sum = torch.zeros(lanes, device=device, dtype=self.dtype)
        self._hits = torch.zeros(2, lanes, device=device, dtype=self.dtype)
        self._device_curves = torch.from_numpy(self.curves).to(device)
        self._futures: dict[int, Future[Tensor]] = {}
        pool = torch.cuda.graph_pool_handle()
        with self._untouched(), _tensor_cores():
            self._steps = [self._captured(number, s, pool) for number, s in enumerate(shapes)]
            self._judge = _capture(self._count_hits, pool)

    def _captured(self, kind: int, shape: Shape, pool: Any) -> _Step:
        example = self._sent(np.flatnonzero(self._choice == kind)[:1])
        inputs = plan(self._known, example, shape).step(0)
        return _Step(shape, inputs, _capture(lambda: self._train_on(inputs, shape.most), pool))

    def _shapes(self) -> tuple[list[Shape], np.ndarray[Any, np.dtype[np.int64]]]:
        """Choose the sizes of steps, and the size of each: from the largest needs of its kind."""
        nodes, edges = self._needs()
        size = _block_size(nodes, self.protocol.batch_size)
        need, most, room = (part.numpy() for part in _needed(self._orders, nodes, edges, size))
        limits: list[int] = []
        for quantile in _SIZES:  # from the largest down: a size must be worth its capture
            limit = int(np.quantile(need, quantile, method="higher"))
            if not limits or limit <= _WORTHWHILE * limits[0]:
                limits.insert(0, limit)
        choice = np.searchsorted(limits, need)
        own = [choice == kind for kind in range(len(limits))]
        shapes = [
            Shape(limit, size, int(most[k].max()), int(room[k].max()) + 1)
            for limit, k in zip(limits, own, strict=True)
        ]
        return shapes, choice

    def _needs(self) -> tuple[Tensor, Tensor]:
        """Return the nodes and edges of each graph."""
        begin = self.data.node_ptr.cpu()
        edges = torch.zeros(len(begin) - 1, dtype=torch.int64)
        if self._known.graph is not None:
            edges = self._known.graph.by_target.rowptr.cpu().long()[begin].diff()
        return begin.diff(), edges

    # Every step -----------------------------------------------------------------------------

    def _next_step(self, number: int) -> tuple[int, Plan]:
        """Return the size of a step and its plan, made with those of the steps behind it."""
        if number not in self._chunk:
            self._chunk = {}  # give its memory back first
            self._chunk = self._planned(number)
        return self._chunk.pop(number)

    def _planned(self, first: int) -> dict[int, tuple[int, Plan]]:
        assert self._steps is not None
        largest = self._steps[-1].shape
        count = max(1, _PLANNED // (largest.rows + largest.edges))
        chunk = np.arange(first, min(first + count, len(self._orders)))
        found: dict[int, tuple[int, Plan]] = {}
        for kind, step in enumerate(self._steps):
            own = chunk[self._choice[chunk] == kind]
            if len(own) > 0:
                several = plan(self._known, self._sent(own), step.shape)
                found |= {int(n): (kind, several.step(k)) for k, n in enumerate(own)}
        return found

    def _sent(self, steps: np.ndarray[Any, np.dtype[np.int64]]) -> Tensor:
        """Send the graphs of some steps to the device, ``[K, L, B]``, without waiting for it."""
        ids = self._orders[torch.from_numpy(steps)]
        ids = ids.pin_memory() if self._draws.is_cuda else ids
        return ids.to(self._draws.device, non_blocking=True).long()

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
        own = self.params | _by_block(self.params, self._row_names, batch.nodes)
        scores: Tensor = functional_call(self.model, (own, self.buffers), arguments)
        return scores

    def _train_on(self, inputs: Plan, most: int) -> None:
        self.model.train()
        self.optimizer.zero_grad()
        batch = batch_of(self._known, inputs, most)
        mean = self._losses(self._scores(batch, self._draws.flatten(-3, -2)), batch)
        mean.sum().backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self._losses_sum += mean.detach() * batch.real.sum(1)

    @torch.no_grad()
    def _count_hits(self) -> None:
        self.model.eval()
        self._hits.zero_()
        for inputs, most, parts in self._judged:
            batch = batch_of(self._known, inputs, most)
            hit = (self._scores(batch, None).argmax(1) == batch.y).view_as(batch.real)
            self._hits += (hit & parts).sum(2)

    def _fixed(self) -> list[tuple[Plan, int, Tensor]]:
        """Plan the batches of validation and test graphs, which stay the same.

        Returns:
            Plans, blocks of a lane, and which graphs are for validation and test: ``[2, L, B]``.
        """
        device, lanes = self.data.y.device, len(self.lanes)
        ids = [torch.cat([lane.split.valid, lane.split.test]) for lane in self.lanes]
        nodes, edges = self._needs()
        mean = max(1, int(nodes.float().mean()) * lanes)
        size = min(max(map(len, ids)), max(1, _JUDGED // mean))
        batches = stacked(ids, size).transpose(0, 1)  # [batches, L, size]
        valid = torch.tensor([len(lane.split.valid) for lane in self.lanes]).unsqueeze(1)
        found = []
        for number, batch in enumerate(batches):
            block = _block_size(nodes, size)
            need, most, room = (
                int(part) for part in _needed(batch.unsqueeze(0), nodes, edges, block)
            )
            shape = Shape(need, block, most, room + 1)
            inputs = plan(self._known, batch.unsqueeze(0).to(device), shape).step(0)
            place = torch.arange(number * size, (number + 1) * size)
            parts = torch.stack([place < valid, place >= valid]) & (batch >= 0)
            found.append((inputs, most, parts.to(device)))
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


def _block_size(nodes: Tensor, batch_size: int) -> int:
    """Return a power of 2 so that a lane has some ten blocks: little is left over in the last."""
    rows = float(nodes.float().mean()) * batch_size
    return int(min(max(2 ** round(math.log2(max(rows, 1) / 10)), 64), 1024))


def _needed(ids: Tensor, nodes: Tensor, edges: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the blocks of each step, the most that a lane of it has, and its edges: ``[K]``."""
    real, safe = ids >= 0, ids.clamp(min=0).long()  # [K, L, B]
    own = blocks((nodes[safe] * real).sum(2), size)
    # One block is left over, so that the last row never holds a node.
    return own.sum(1) + 1, own.amax(1), (edges[safe] * real).sum((1, 2))


def _by_block(
    params: dict[str, Tensor], names: Sequence[str], blocks: Tensor | Blocks
) -> dict[str, Tensor]:
    """Give every block of rows its lane's weights: sums over one, on a graph of lanes to blocks."""
    assert isinstance(blocks, Blocks)
    lanes, count = len(blocks.ptr) - 1, len(blocks.lane)
    number = torch.arange(count + 1, dtype=torch.int32, device=blocks.lane.device)
    graph = Graph.of(
        CSR(number, blocks.lane, None, 1),
        CSR(blocks.ptr, number[:-1], None, blocks.most),
        (lanes, count),
    )
    return {
        name: weighted_sum(params[name].flatten(1), graph).view(count, *params[name].shape[1:])
        for name in names
    }


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
