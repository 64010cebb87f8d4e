"""A group of lanes on a GPU: every step is a CUDA graph, replayed without asking Python."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .batch import EMPTY
from .group import Group
from .static import Shape, cut_static

_SIZES = (0.5, 0.9, 1.0)  # quantiles of the steps' needs: a step of each size is captured


class _Step(NamedTuple):
    shape: Shape
    graph: torch.cuda.CUDAGraph


class CapturedGroup(Group):
    """Lanes whose steps and judgements are captured once and replayed for every epoch.

    The orders of all epochs are drawn beforehand, so the room that steps need is known exactly.
    """

    _steps: list[_Step] | None = None
    _done: torch.cuda.Event | None = None

    def run_epoch(self) -> None:
        """Train on every graph once, then judge the weights; all of it on the device."""
        if self._steps is None:
            self._prepare()
        assert self._steps is not None
        order = self._orders[self.epoch].to(self._ids.device, non_blocking=True)
        uniform = self._uniform()
        self._losses_sum.zero_()
        for number, size in enumerate(self._choice[self.epoch]):
            self._ids.copy_(order[:, number])
            self._draws[..., : self.protocol.batch_size, :].copy_(
                _by_lane(uniform[number], len(self.lanes))
            )
            self._steps[size].graph.replay()
        self._judge.replay()
        trained = (order >= 0).sum((1, 2))
        self._device_curves[0, :, self.epoch] = self._losses_sum / trained
        self._device_curves[1:, :, self.epoch] = self._hits / self._judged_counts
        self.epoch += 1
        # The host runs at most an epoch ahead, so that progress is the device's.
        previous, self._done = self._done, torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._done.record()
        if previous is not None:
            previous.synchronize()

    def sync(self) -> None:
        """Bring the curves to the host."""
        if self._steps is not None:
            self.curves[:] = self._device_curves.cpu().numpy()

    def _prepare(self) -> None:
        device, lanes, size = self.data.y.device, len(self.lanes), self.protocol.batch_size
        epochs, now = self.protocol.epochs, self.epoch
        self._orders = []
        for self.epoch in range(epochs):
            self._orders.append(self._order().cpu().pin_memory())
        self.epoch = now
        shapes, self._choice = self._plan(torch.stack(self._orders))
        self._ids = torch.full((lanes, size), EMPTY, device=device)
        shape = list(self.model.dropout_shape(size + 1))
        self._draws = torch.zeros(
            [*shape[:-2], lanes, *shape[-2:]], device=device, dtype=self.dtype
        )
        self._losses_sum = torch.zeros(lanes, device=device, dtype=self.dtype)
        self._hits = torch.zeros(2, lanes, device=device, dtype=self.dtype)
        self._judged_counts = torch.stack(
            [torch.stack([b.real.sum(1) for b in batches]).sum(0) for batches in self._judged]
        )
        self._device_curves = torch.from_numpy(self.curves).to(device)
        pool = torch.cuda.graph_pool_handle()
        with self._untouched():
            self._steps = [_Step(s, _capture(lambda s=s: self._step(s), pool)) for s in shapes]
            self._judge = _capture(self._count_hits, pool)

    def _plan(self, orders: Tensor) -> tuple[list[Shape], list[list[int]]]:
        """Choose the sizes of steps, and the size of each: from the largest needs of its kind."""
        whole = self.data
        nodes = whole.node_ptr.diff().cpu()
        edges = torch.zeros_like(nodes)
        if whole.graph is not None:
            pointer = whole.graph.by_target.rowptr.cpu().long()
            edges = pointer[whole.node_ptr.cpu()].diff()
        real, safe = orders >= 0, orders.clamp(min=0)  # [epochs, L, steps, B]
        slots = (nodes[safe] * real).sum(3).amax(1).numpy()  # [epochs, steps]
        room = (edges[safe] * real).sum((1, 3)).numpy()
        limits = sorted({int(np.quantile(slots, q, method="higher")) for q in _SIZES})
        choice = np.searchsorted(limits, slots)
        # One more slot in each lane, so that the last one never holds a node.
        shapes = [
            Shape(limit + 1, int(room[choice == kind].max(initial=0)) + 1)
            for kind, limit in enumerate(limits)
        ]
        return shapes, choice.tolist()

    def _step(self, shape: Shape) -> None:
        self.model.train()
        self.optimizer.zero_grad()
        batch = cut_static(self.data, self._ids, shape)
        uniform = self._draws.flatten(-3, -2)
        mean = self._losses(self._scores(batch, uniform), batch)
        mean.sum().backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self._losses_sum += mean.detach() * batch.real.sum(1)

    @torch.no_grad()
    def _count_hits(self) -> None:
        self.model.eval()
        self._hits.zero_()
        for total, batches in zip(self._hits, self._judged, strict=True):
            for batch in batches:
                hit = self._scores(batch, None).argmax(1) == batch.y
                total += (hit.view_as(batch.real) & batch.real).sum(1)

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


def _by_lane(uniform: Tensor, lanes: int) -> Tensor:
    """Part the axis of the graphs: ``[..., L * B, C] -> [..., L, B, C]``."""
    *front, graphs, last = uniform.shape
    return uniform.view(*front, lanes, graphs // lanes, last)


def _copied(state: dict[int, dict[str, Any]]) -> dict[int, dict[str, Tensor]]:
    return {n: {k: t.clone() for k, t in own.items()} for n, own in state.items()}


def _capture(work: Any, pool: Any) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        work()
    return graph
