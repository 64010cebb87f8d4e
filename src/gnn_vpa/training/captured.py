"""A group of lanes on a GPU: every step is a CUDA graph, replayed without asking Python."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from ..graphs import GraphSet
from ..nn import LaneRows, Model
from ..ops import Graph
from ..ops.internal import CSR, weighted_sum
from .batch import Batch
from .fill import batch_of
from .packed import Packed, pack, unpack
from .plan import Plan, StepCapacity, demands, plan
from .seeds import generator
from .stacked_group import StackedGroup
from .tables import Tables
from .task import Protocol, Training

STEP_QUANTILES = (1.0, 0.9, 0.5)  # of the steps' demands: a step of each size is captured, …
MAX_SIZE_RATIO = 0.97  # … if it is at most so large as the next larger one
MIN_ROWS_FOR_SIZES = 1 << 16  # with fewer rows a step takes as long as with half of them
PLANNED_GRAPHS = 1 << 20  # graphs that are planned in one go: some hundred MB
EVALUATED_ROWS = 1 << 20  # rows of all levels that are evaluated in one go: some GB
EPOCHS_AHEAD = 4  # epochs whose random numbers are drawn before they are needed

_Capacities = tuple[StepCapacity, ...]


class _Step(NamedTuple):
    capacities: _Capacities
    inputs: tuple[Tensor, Tensor]  # what a replay reads, packed
    graph: torch.cuda.CUDAGraph


class CapturedGroup(StackedGroup):
    """Lanes whose steps and evaluations are captured once and replayed for every epoch.

    The orders of all epochs are drawn beforehand, so what steps need is known exactly.
    Many steps are planned at once (`plan.py`); a step then copies its plan and replays.
    """

    captures = True
    model: Model
    _steps: list[_Step] | None = None
    _done: torch.cuda.Event | None = None

    def __init__(
        self,
        graphs: GraphSet,
        tables: Tables,
        protocol: Protocol,
        trainings: Sequence[Training],
        model: Model,
        dtype: torch.dtype,
        keep_weights: bool = False,
    ) -> None:
        device = tables.y.device
        super().__init__(graphs, device, protocol, trainings, deepcopy(model), dtype, keep_weights)
        if self.dropout is not None:
            self.model.head.dropout.p = torch.tensor(self.dropout, dtype=dtype, device=device)
        self.tables = tables
        self._row_dtype = torch.bfloat16 if protocol.precision == "bfloat16" else dtype
        aggrs = [task.aggr for task in tables.by_level.tasks]
        self._task_of_lane = torch.tensor(
            [aggrs.index(training.task.aggr) for training in trainings], device=device
        )
        self._evaluation_batches = self._plan_evaluation()
        self._goes_on = torch.ones((), dtype=torch.bool, pin_memory=device.type == "cuda")

    def run_epoch(self) -> None:
        """Train on every graph once, then evaluate the weights; all of it on the device."""
        if self._steps is None:
            self._prepare()
        assert self._steps is not None
        uniform = self._drawn()
        self._set_rate()
        self._sums.zero_()
        for number in range(len(uniform)):
            size, planned = self._next_step(self.epoch * len(uniform) + number)
            step = self._steps[size]
            for static, value in zip(step.inputs, planned, strict=True):
                static.copy_(value)
            self._draws.copy_(uniform[number])
            step.graph.replay()
        self._evaluation.replay()
        self.epoch += 1
        if self.protocol.patience is not None:
            self._goes_on.copy_(self.record.state["alive"].any(), non_blocking=True)
        if self._sums.is_cuda:
            self._keep_pace()

    @property
    def is_done(self) -> bool:
        """Whether all lanes have ended, as far as the host knows: it may be an epoch behind."""
        return self.epoch >= self.protocol.epochs or not bool(self._goes_on)

    def _keep_pace(self) -> None:
        """Let the host run at most an epoch ahead, so that progress is the device's."""
        previous, self._done = self._done, torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._done.record()
        if previous is not None:
            previous.synchronize()

    def close(self) -> None:
        """Stop drawing ahead."""
        if self._steps is not None:
            self._pool.shutdown(cancel_futures=True)

    # Preparing ------------------------------------------------------------------------------

    def _prepare(self) -> None:
        device, lanes, size = self.device, len(self.lanes), self.protocol.batch_size
        self._pool = ThreadPoolExecutor(EPOCHS_AHEAD, thread_name_prefix="gnn-vpa-draws")
        orders = list(self._pool.map(self._order, range(self.protocol.epochs)))
        all_orders = torch.stack(orders).transpose(1, 2).flatten(0, 1).int()
        self._orders = all_orders.to(device)  # [all steps, L, B]
        sizes, self._choice = self._sizes()
        self._chunk: dict[int, tuple[int, tuple[Tensor, Tensor]]] = {}
        shape = list(self.model.dropout_shape(size))
        self._front, self._last = shape[:-2], shape[-1]
        self._draws = torch.zeros(
            *self._front, lanes, size, self._last, device=device, dtype=self.dtype
        )
        # Of an epoch: losses, and how much they are of.
        self._sums = torch.zeros(2, lanes, device=device, dtype=self.dtype)
        self._futures: dict[int, Future[Tensor]] = {}
        every = [*sizes, *(capacities for _, capacities in self._evaluation_batches)]
        largest = max(capacity.rows for capacities in every for capacity in capacities)
        self._number = torch.arange(largest + 1, dtype=torch.int32, device=device)
        pool = torch.cuda.graph_pool_handle()
        with self._untouched(), _tensor_cores():
            self._steps = [self._captured(number, s, pool) for number, s in enumerate(sizes)]
            self._evaluation = _capture(self._evaluate, pool)

    def _captured(self, size: int, capacities: _Capacities, pool: Any) -> _Step:
        packed = self._plan(self._orders[self._choice == size][:1].long(), capacities)
        inputs = packed.step(0)
        planned = unpack(packed.layout, inputs)
        graph = _capture(lambda: self._train_on(planned, capacities), pool)
        return _Step(capacities, inputs, graph)

    def _plan(self, ids: Tensor, capacities: _Capacities) -> Packed:
        return pack(plan(self.tables, self._task_of_lane, ids, capacities), self.dtype)

    def _sizes(self) -> tuple[list[_Capacities], Tensor]:
        """Choose the sizes of steps, and the size of each step: from the largest of its size."""
        levels = demands(self.tables, self._orders)
        total = torch.stack([demand.blocks * demand.size for demand in levels]).sum(0)
        limits: list[int] = []
        for quantile in STEP_QUANTILES:  # from the largest down: a size must be worth its capture
            limit = int(np.quantile(total.cpu(), quantile, method="higher"))
            if not limits or (
                limits[0] >= MIN_ROWS_FOR_SIZES and limit <= MAX_SIZE_RATIO * limits[0]
            ):
                limits.insert(0, limit)
        choice = torch.searchsorted(torch.tensor(limits, device=total.device), total)
        steps_of_size = [choice == size for size in range(len(limits))]
        capacities = [tuple(d.capacity(steps) for d in levels) for steps in steps_of_size]
        return capacities, choice.cpu()

    # Every step -----------------------------------------------------------------------------

    def _next_step(self, number: int) -> tuple[int, tuple[Tensor, Tensor]]:
        """Return the size of a step and its plan, made with those of the steps behind it."""
        if number not in self._chunk:
            self._chunk = {}  # give its memory back first
            self._chunk = self._planned(number)
        return self._chunk.pop(number)

    def _planned(self, first: int) -> dict[int, tuple[int, tuple[Tensor, Tensor]]]:
        assert self._steps is not None
        count = max(1, PLANNED_GRAPHS // self._orders[0].numel())
        choice, ids = (part[first : first + count] for part in (self._choice, self._orders))
        planned: dict[int, tuple[int, tuple[Tensor, Tensor]]] = {}
        for size, step in enumerate(self._steps):
            chosen = (choice == size).nonzero().squeeze(1)
            if len(chosen) > 0:
                some = ids
                if len(chosen) < len(ids):
                    some = ids[chosen.to(ids.device, non_blocking=True)]
                packed = self._plan(some.long(), step.capacities)
                numbers = chosen.tolist()
                planned |= {first + n: (size, packed.step(k)) for k, n in enumerate(numbers)}
        return planned

    def _drawn(self) -> Tensor:
        """Return this epoch's numbers for dropout, and have the next epochs' drawn meanwhile."""
        for epoch in range(self.epoch, min(self.epoch + EPOCHS_AHEAD, self.protocol.epochs)):
            if epoch not in self._futures:
                self._futures[epoch] = self._pool.submit(self._numbers, epoch)
        return self._futures.pop(self.epoch).result().to(self.device, non_blocking=True)

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
        state = (self.params | self._for_rows(batch), self.buffers)
        scores: Tensor = functional_call(
            self.model, state, (batch.x, batch.graph), {"uniform": uniform}
        )
        return scores

    def _for_rows(self, batch: Batch) -> dict[str, Tensor]:
        """Give every block of rows its lane's weights, of the rows' type."""
        levels = [batch.graph.rows, *(hop.rows for hop in batch.graph.hops)]
        looked_up = not batch.x.is_floating_point() and batch.x.dim() == 2
        weights: dict[str, Tensor] = {}
        for name, level in self.model.row_parameters(batch.graph, looked_up).items():
            weight = self.params[name]
            if not name.endswith("bias"):  # what is added to rows keeps its digits
                weight = weight.to(self._row_dtype)
            if level is None:  # looked up by lane: nothing but the input may meet it
                assert weight.shape[-1] == self.model.in_channels
            else:
                rows = levels[level]
                assert isinstance(rows, LaneRows)
                weight = _repeated(weight, rows, self._number)
            weights[name] = weight
        return weights

    def _train_on(self, inputs: Plan, capacities: _Capacities) -> None:
        self.model.train()
        batch = batch_of(self.tables, self._task_of_lane, inputs, capacities, self._number)
        loss, weight = self._step(batch, self._draws.flatten(-3, -2))
        self._sums[0] += loss
        self._sums[1] += weight

    @torch.no_grad()
    def _evaluate(self) -> None:
        """Enter the epoch: its losses, and the scores of validation and test graphs."""
        self.model.eval()
        scores = []
        for inputs, capacities in self._evaluation_batches:
            batch = batch_of(self.tables, self._task_of_lane, inputs, capacities, self._number)
            scores.append(self._scores(batch, None).view(*batch.real.shape, -1))
        self.enter(self._sums[0] / self._sums[1], torch.cat(scores, 1))

    def _plan_evaluation(self) -> list[tuple[Plan, _Capacities]]:
        """Plan the batches of validation and test graphs, which stay the same."""
        levels = self.tables.levels
        mean = max(1, sum(len(level.multiplicity) for level in levels) // len(self.tables.y))
        ids = self._evaluated.to(self.device)
        size = min(ids.shape[1], max(1, EVALUATED_ROWS // (mean * len(self.lanes))))
        planned = []
        for batch in torch.split(ids, size, 1):
            step = batch.unsqueeze(0)
            capacities = tuple(d.capacity(slice(None)) for d in demands(self.tables, step))
            packed = self._plan(step, capacities)
            planned.append((unpack(packed.layout, packed.step(0)), capacities))
        return planned


def _repeated(weight: Tensor, rows: LaneRows, number: Tensor) -> Tensor:
    """Return a lane's weight for each of its blocks: sums over one, from lanes to blocks."""
    assert rows.lane is not None
    assert rows.ptr is not None
    lanes, count = len(rows.ptr) - 1, len(rows.lane)
    graph = Graph.from_csr(
        CSR(number[: count + 1], rows.lane, None, 1),
        CSR(rows.ptr, number[:count], None, rows.most),
        (lanes, count),
    )
    return weighted_sum(weight.flatten(1), graph).view(count, *weight.shape[1:])


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
