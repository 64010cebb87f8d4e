"""Trainings of a user's own model: which of them run side by side, and why not."""

import logging
from collections.abc import Generator, Sequence
from itertools import groupby, pairwise
from typing import Any

import torch
from torch.func import stack_module_state

from ...graphs import GraphSet
from ...random_state import seeded
from ..group import Group, stacked
from ..initial import initial_model
from ..room import usable_memory
from ..task import Protocol, Task, Training
from ..trainer import Family, cut_evenly
from ..workers import Job, Report
from . import kernels
from .batches import Source
from .build import check, own_model
from .dropout import step_seeds
from .factories import elsewhere
from .groups import LanesGroup, LoopGroup, Own
from .modes import NotSideBySide
from .together import Together, check_together

_log = logging.getLogger("gnn_vpa")
PROVED = 3  # lanes that are compared with lanes alone before any are trained


class OwnFamily(Family):
    """Trainings of one model of a user's, with one set of options."""

    def __init__(
        self,
        graphs: GraphSet,
        tasks: Sequence[Task],
        protocol: Protocol,
        device: torch.device,
        dtype: torch.dtype,
        keep_weights: bool = False,
    ) -> None:
        self.graphs, self.protocol, self.device, self.dtype = graphs, protocol, device, dtype
        self.keep_weights = keep_weights
        self._task = tasks[0]
        self._adapter = check(graphs, self._task)
        self._own: Own | None = None
        self._alone = True  # until lanes have been proved to run side by side
        self._by_kernels = False  # until sums by our kernels have been proved to be the same

    def __getstate__(self) -> dict[str, Any]:
        # Another process makes the model and its view of the data by itself.
        return vars(self) | {"_own": None}

    @property
    def own(self) -> Own:
        """The model and the data as it sees them; made on first need."""
        if self._own is None:
            with seeded():
                model = own_model(self._task, self.graphs).to(self.device, self.dtype)
            source = Source(self.graphs, self._task.features, self.device, self.dtype)
            outputs = self.graphs.num_outputs
            self._own = Own(model, self._adapter, source, outputs, self._by_kernels)
        return self._own

    def processes(self, workers: int | None) -> int:
        """Return how many processes can share the lanes: a model of a notebook stays here."""
        return 1 if workers is None or elsewhere(self._task.model) else workers

    def groups(self, trainings: Sequence[Training]) -> list[list[Training]]:
        """Divide trainings into those that run side by side; on the CPU each is by itself."""
        singles = [[training] for training in trainings]
        if self.device.type == "cpu" and kernels.serve(
            self.graphs, trainings[0], self._adapter, self.own.source
        ):
            self._by_kernels, self._own = True, self.own._replace(by_kernels=True)
        if not shares_steps(self.device):
            why = elsewhere(self._task.model)
            where = (
                f"in this process: {why}" if why else "on the CPU, in as many processes as asked"
            )
            sums = "; our kernels compute their sums over neighbours, the same in float64"
            self._say(f"one after the other, {where}{sums if self._by_kernels else ''}")
            return singles
        try:
            room = self._prove(trainings)
        except NotSideBySide as error:
            self._say(f"one after the other: side by side they cannot run ({error})")
            return singles
        self._say("side by side, which gives the same numbers as one after the other")
        self._alone = False
        groups: list[list[Training]] = []
        for _, alike in groupby(trainings, self._steps):
            side = list(alike)
            groups += [side[a:b] for a, b in pairwise(cut_evenly(len(side), room, 1))]
        return groups

    def _say(self, how: str) -> None:
        _log.info("%s on %s: folds are trained %s", self._task.model, self.graphs.name, how)

    def _prove(self, trainings: Sequence[Training]) -> int:
        """Compare some lanes with the same lanes alone; return how many the memory holds.

        Raises:
            NotSideBySide: They differ, or cannot be called so.
        """
        some = list(trainings[:PROVED])
        models = [initial_model(self.graphs, t, self.dtype).to(self.device) for t in some]
        params, buffers = stack_module_state(models)
        ids = [t.lane.split.train[-self.protocol.batch_size :] for t in some]
        ids = [own[: max(1, len(own) - number)] for number, own in enumerate(ids)]  # not all full
        (step,) = stacked(ids, max(map(len, ids))).unbind(1)
        source = Source(self.graphs, self._task.features, self.device, torch.float64)
        is_cuda = self.device.type == "cuda"
        if is_cuda:
            torch.cuda.reset_peak_memory_stats(self.device)
            before = torch.cuda.memory_allocated(self.device)
        together = Together(self.own.model, self._adapter, self.own.outputs, self.device)
        seeds = step_seeds(range(len(some)), 1)[0].to(self.device)
        check_together(together, params, buffers, source, step.to(self.device), seeds)
        if not is_cuda:
            return len(trainings)
        # In float64, and with what autograd keeps: about twice of what a lane takes.
        each = (torch.cuda.max_memory_allocated(self.device) - before) / len(some)
        return max(1, int(usable_memory(self.device) / max(each, 1)))

    def train(self, job: Job) -> Generator[Report, bool | None]:
        """Train a group to its end; lanes that turn out to differ start anew, one by one."""
        if not self._alone:
            try:
                yield from super().train(job)
                return
            except NotSideBySide as error:
                self._say(f"one after the other from now on: side by side they differ ({error})")
            self._alone = True
            job = job._replace(state=None)
        if len(job.trainings) == 1:
            yield from super().train(job)
            return
        for number, training in enumerate(job.trainings):
            place = job.place + number
            yield from super().train(job._replace(place=place, trainings=[training], state=None))

    def _group(self, trainings: Sequence[Training]) -> Group:
        kind = LoopGroup if self._alone else LanesGroup
        settings = (self.protocol, trainings, self.dtype, self.keep_weights)
        return kind(self.graphs, self.own, *settings)


def shares_steps(device: torch.device) -> bool:
    """Say whether lanes run side by side there: the cores of a CPU are better used by processes."""
    return device.type == "cuda"
