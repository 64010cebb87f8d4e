"""Ray on one machine: what it costs beside processes of our own, and what kills do to a run.

Three nodes with so many slots each are started here. A cell that sleeps takes its time without any
core, so that what is around it counts: the way there and back, and the results file.
"""

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from ray.cluster_utils import Cluster
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from gnn_vpa.experiments import Cell, Group, Progress, expand, read_folds, run_grid
from gnn_vpa.experiments.asked import model_list
from gnn_vpa.experiments.ray_backend import RayCluster, connected
from gnn_vpa.graphs import GraphSet, load
from gnn_vpa.training import Protocol

from ._record import Record
from .grid import tiny

NODES = 3
_SMALL_EPOCHS = 30


class Sleepy(nn.Module):
    """A small network that takes so many seconds for a step of training.

    It sees no edges: layers that do are called a few times more, before they are trained.
    """

    def __init__(self, in_channels: int, out_channels: int, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds
        self.lin = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if self.training:
            time.sleep(self.seconds)
        return global_add_pool(self.lin(x), batch)


def report(cells: int, small: int, kills: int, record: Record) -> None:
    """Measure all three; 0 leaves a part out."""
    if small:
        beside(small, record)
    if cells:
        rate(cells, record)
    if kills:
        killing(kills, record)


def beside(count: int, record: Record) -> None:
    """Seconds of a grid of small cells with and without Ray."""
    columns = {
        "cells": "{}",
        "without Ray": "{:.1f} s",
        "with Ray": "{:.1f} s",
        "of it until the first worker is there": "{:.1f} s",
        "ratio of the rest": "{:.2f}",
    }
    table = record.table("ray", "Small cells, three nodes on one machine", columns)
    seeds = range(-(-count // 4))
    chosen = expand(
        [load("MUTAG")], ["gin"], protocol=Protocol(epochs=_SMALL_EPOCHS), folds=10, seeds=seeds
    ).cells[:count]
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        run_grid(chosen, Path(folder, "here"), device="cpu", workers=2)
        here = time.perf_counter() - begin
        with _nodes(slots=1) as (_, cluster):
            clock = _Started()
            begin = time.perf_counter()
            run_grid(chosen, Path(folder, "there"), device="cpu", cluster=cluster, progress=clock)
            there, start = time.perf_counter() - begin, clock.first - begin
        _same(Path(folder, "here"), Path(folder, "there"))
    table.row(count, here, there, start, (there - start) / here)


def rate(count: int, record: Record) -> None:
    """Cells a second, of cells that sleep for a tenth of one."""
    columns = {
        "cells": "{:,}",
        "a cell alone": "{:.2f} s",
        "slots": "{}",
        "seconds": "{:.1f}",
        "cells a second": "{:.1f}",
    }
    table = record.table("ray rate", "Cells of a tenth of a second", columns)
    with tempfile.TemporaryDirectory() as folder, _nodes(slots=2) as (_, cluster):
        chosen, clock = _sleeping(count, 0.05), _Started()
        begin = time.perf_counter()
        run_grid(chosen[:20], Path(folder, "here"), device="cpu", workers=1)
        alone = (time.perf_counter() - begin) / 20
        run_grid(chosen, Path(folder, "there"), device="cpu", cluster=cluster, progress=clock)
        seconds = clock.last - clock.first
    table.row(count, alone, NODES * 2, seconds, count / seconds)


def killing(times: int, record: Record) -> None:
    """Kill a random node so often, and put another in its place; the rows are those without."""
    columns = {"kills": "{}", "cells": "{}", "groups that went out again": "{}", "same rows": "{}"}
    table = record.table("ray kills", "Random nodes are killed", columns)
    chosen = _sleeping(6 * times, 0.2)
    with tempfile.TemporaryDirectory() as folder, _nodes(slots=1) as (nodes, cluster):
        run_grid(_sleeping(6 * times, 0.0), Path(folder, "here"), device="cpu", workers=1)
        progress = _Killing(nodes, times)
        run_grid(chosen, Path(folder, "there"), device="cpu", cluster=cluster, progress=progress)
        _same(Path(folder, "here"), Path(folder, "there"))
    table.row(progress.killed, len(chosen), progress.again, "yes")


def _sleeping(count: int, seconds: float) -> list[Cell]:
    """Return cells of two folds, each of which sleeps so long in its one step."""
    data = GraphSet.from_pyg(tiny(), name="tiny")
    Sleepy.__init__.__defaults__ = (seconds,)  # no option: that would be another method
    models, protocol = model_list(Sleepy), Protocol(epochs=1)
    return expand([data], models, protocol=protocol, folds=2, seeds=range(count)).cells


@contextmanager
def _nodes(slots: int) -> Iterator[tuple[Cluster, RayCluster]]:
    nodes = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    try:
        for _ in range(NODES):
            nodes.add_node(num_cpus=slots)
        with connected(nodes.address) as cluster:
            yield nodes, cluster
    finally:
        nodes.shutdown()


class _Started(Progress):
    """Takes note of when the first group began and the last cell was finished."""

    first = last = 0.0

    def tell(self, worker: str, group: Group | None, *_: Any, **__: Any) -> None:
        self.first = self.first or time.perf_counter()

    def finish(self, *_: Any) -> None:
        self.last = time.perf_counter()


class _Killing(Progress):
    """Kills a random node after every few cells."""

    def __init__(self, nodes: Cluster, times: int) -> None:
        self._nodes, self._times, self._random = nodes, times, random.Random(0)
        self._finished = self.killed = self.again = 0

    def note(self, text: str) -> None:
        self.again += "goes out again" in text
        print(text, flush=True)

    def finish(self, *_: Any) -> None:
        self._finished += 1
        if self._finished % 5 == 0 and self.killed < self._times:
            workers = [node for node in self._nodes.list_all_nodes() if not node.head]
            self._nodes.remove_node(self._random.choice(workers), allow_graceful=False)
            self._nodes.add_node(num_cpus=1)
            self.killed += 1


def _same(one: Path, other: Path) -> None:
    by = ["model", "aggregation", "seed", "fold"]
    frames = [read_folds(path).sort_values(by).reset_index(drop=True) for path in (one, other)]
    left_out = ["seconds", "source"]
    pd.testing.assert_frame_equal(*(f.drop(columns=left_out, errors="ignore") for f in frames))
