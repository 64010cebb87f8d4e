"""How long the rest will take, from what is known, and how far to trust it."""

import json
import time
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any

from ..errors import GnnVpaError, UsageError
from ..graphs import GraphSet, load
from ..nn import MODELS
from ..paper import Statistics, published_statistics, resolve_name
from ..training import Protocol, fit
from .cell import Cell
from .devices import resolve_device
from .groups import lanes_of, shares_steps
from .identity import labels
from .store import dataset_names, query_if_any
from .workers import single_thread

# What a step costs on a GPU beyond its nodes, in nodes of each of ten lanes: launches of kernels
# take some fifth of a millisecond, a node of every lane some 15 nanoseconds.
_STEP_IN_NODES = 12_000
# Trainings are timed over so many epochs, which on a GPU pass in milliseconds.
_FEW_EPOCHS, _MANY_EPOCHS = 3, 100

Kind = tuple[str, str, str]
"""A data set, a model and what it is set to (`setting_of`): cells of one kind have one pace."""

# Of what a model can be set to, this takes no time.
_FREE = ("dropout", "start", "branch")


@dataclass(frozen=True)
class Pace:
    """Seconds for an epoch of one fold, as seen once, or as expected.

    Attributes:
        dataset: The data set, and
        model: the model it was seen with.
        seconds: For an epoch of one fold.
        work: Size of the data set, see `size_of`; NaN where it is not known.
        gpu: Whether that was on a GPU.
        setting: What the model was set to, see `setting_of`.
        factor: Within what factor it is right for other cells of its kind.

    Example:
        >>> Pace("MUTAG", "gin", 0.01, 10_000).kind
        ('MUTAG', 'gin', '')
    """

    dataset: str
    model: str
    seconds: float
    work: float
    gpu: bool = False
    setting: str = ""
    factor: float = 1.5

    @property
    def kind(self) -> Kind:
        """The kind of cell it is a pace of."""
        return self.dataset, self.model, self.setting


@dataclass(frozen=True)
class Estimate:
    """An expected time, right within a factor; NaN where nothing is known.

    Example:
        >>> str(Estimate(5400.0, 3.0))
        'about 1 h 30 min (30 min to 4 h 30 min)'
        >>> str(Estimate(float("nan"), 1.0))
        'a time that is not known'
    """

    seconds: float
    factor: float

    @property
    def is_known(self) -> bool:
        """Whether there is anything to go by."""
        return isfinite(self.seconds)

    def __str__(self) -> str:
        if not self.is_known:
            return "a time that is not known"
        low, high = (
            format_duration(self.seconds / self.factor),
            format_duration(self.seconds * self.factor),
        )
        return f"about {format_duration(self.seconds)}" + (
            f" ({low} to {high})" if low != high else ""
        )


def estimate(cells: Iterable[Cell], paces: Sequence[Pace], workers: int = 1) -> Estimate:
    """Expect that time grows with folds, epochs and the data's size, and that workers share it.

    What was seen of the same model, set to the same, on the same data is trusted within a factor of
    1.5 (`Pace.factor`), of the same model otherwise 3, of other models 6. The factor of the sum is
    that of most of its time. Of a model of one's own nothing is known before it was seen.

    Example:
        >>> from gnn_vpa.training import Task
        >>> cells = [Cell("PTC", Task("gin", "vpa"), Protocol(epochs=10), folds=2)]
        >>> estimate(cells, [Pace("MUTAG", "gin", 0.1, epoch_work(cells[0]) / 2)])
        Estimate(seconds=4.0, factor=3.0)
    """
    total: Counter[Kind] = Counter()
    for cell in cells:
        total[kind_of(cell)] += work_of(cell)
    return estimate_work(total, paces, workers)


def kind_of(cell: Cell) -> Kind:
    """Return what a cell's pace is a matter of."""
    batch_size = Protocol.batch_size if cell.protocol is None else cell.protocol.batch_size
    task = cell.task
    setting = setting_of(dict(task.options), batch_size, task.aggr, task.features)
    return cell.dataset, task.model, setting


def setting_of(
    options: Mapping[str, Any], batch_size: int | None, aggr: str = "", features: str = "auto"
) -> str:
    """Return what of a setting takes time: not the learning rate, nor what is dropped.

    Linear aggregations take the same time, and max has kernels of its own.

    Example:
        >>> setting_of({"width": 128, "dropout": 0.1}, 32), setting_of({}, 64, "vpa")
        ('width=128, batch_size=32', '')
        >>> setting_of({}, 64, "max", "degree")
        'max, degree'
    """
    parts = [f"{name}={value}" for name, value in options.items() if name not in _FREE]
    parts += [aggr] * (aggr == "max") + [features] * (features != "auto")
    if batch_size not in (None, Protocol.batch_size):
        parts.append(f"batch_size={batch_size}")
    return ", ".join(parts)


def work_of(cell: Cell) -> int:
    """Return how many epochs of one fold a cell is; a baseline takes little, and no epochs."""
    if cell.protocol is None:
        return 0
    epochs = [tried.protocol.epochs for tried in cell.candidates() if tried.protocol is not None]
    return cell.trainings * max(epochs, default=cell.protocol.epochs)


def estimate_work(work: Mapping[Kind, int], paces: Sequence[Pace], workers: int = 1) -> Estimate:
    """Do as `estimate`, for the epochs of one fold that are to be run of each kind of cell."""
    by_factor = {1.5: 0.0, 3.0: 0.0, 6.0: 0.0}
    of_kind: dict[Kind, list[Pace]] = {}
    of_data: dict[tuple[str, str], list[Pace]] = {}
    of_model: dict[str, list[Pace]] = {}
    for pace in paces:
        of_kind.setdefault(pace.kind, []).append(pace)
        of_data.setdefault((pace.dataset, pace.model), []).append(pace)
    # Of data whose size is not known a pace says nothing about others.
    sized = [pace for pace in paces if isfinite(pace.work)]
    for pace in sized:
        of_model.setdefault(pace.model, []).append(pace)
    elsewhere = {model: _Elsewhere(known) for model, known in of_model.items()}
    for (dataset, model, setting), epochs in work.items():
        if epochs == 0:
            continue
        if same := of_kind.get((dataset, model, setting)):
            factor = max(pace.factor for pace in same)
            an_epoch = median(pace.seconds for pace in same)
        elif other := of_data.get((dataset, model)):
            factor, an_epoch = 3.0, median(pace.seconds for pace in other)
        elif model in elsewhere:
            factor, an_epoch = 3.0, elsewhere[model].epoch_of(dataset)
        elif sized and model in MODELS:
            factor, an_epoch = 6.0, median(_scaled(dataset, pace) for pace in sized)
        else:
            return Estimate(float("nan"), 1.0)
        by_factor[factor] += an_epoch * epochs
    total = sum(by_factor.values()) / workers
    return Estimate(total, max(by_factor, key=lambda f: by_factor[f]))


class _Elsewhere:
    """What a model's paces on some data sets say of all others, looked through once."""

    def __init__(self, paces: Sequence[Pace]) -> None:
        self._seconds = median(pace.seconds for pace in paces)
        self._a_size = median(pace.seconds / pace.work for pace in paces)
        self._gpu = paces[0].gpu

    def epoch_of(self, dataset: str) -> float:
        size = size_of(dataset, gpu=self._gpu)
        return self._a_size * size if isfinite(size) else self._seconds


def _scaled(dataset: str, pace: Pace) -> float:
    """Return the seconds of a pace for another data set; as they are if its size is unknown."""
    size = size_of(dataset, gpu=pace.gpu)
    larger = dataset != pace.dataset and isfinite(size)
    return pace.seconds * size / pace.work if larger else pace.seconds


def paces_of_run(out: str | Path, device: str) -> list[Pace]:
    """Return the paces of a run's finished cells, of those that ran on this kind of device.

    There is one for each data set, model and setting, the median of its cells.

    Example:
        >>> paces_of_run("no/such/run", "cpu")
        []
    """
    return Paces(out, device).seen()


class Paces:
    """The paces of a run's finished cells, read while it goes on: each cell once.

    Args:
        out: The run's folder.
        device: Cells that ran on this kind of device count.

    Example:
        >>> Paces("no/such/run", "cpu").seen()
        []
    """

    def __init__(self, out: str | Path, device: str) -> None:
        self._out, self._is_cpu = Path(out), device == "cpu"
        self._last = 0  # number of the last cell that was read
        self._sorted: dict[Kind, list[float]] = {}
        self._work: dict[str, float] = {}

    def seen(self) -> list[Pace]:
        """Read the cells that were finished since, and return the median of each kind."""
        rows = self._rows()
        called = labels(dataset_names(self._out)) if rows else {}
        for row in rows:
            self._last = max(self._last, row["id"])
            is_cpu = row["device"] == "cpu"
            if is_cpu == self._is_cpu:
                dataset = called[row["content"]]
                if dataset not in self._work:
                    size = row["nodes"], row["edges"]
                    self._work[dataset] = _size(dataset, *size, gpu=not is_cpu)
                setting = setting_of(
                    json.loads(row["options"]),
                    row["batch_size"],
                    row["aggregation"],
                    row["features"],
                )
                kind = dataset, row["model"], setting
                insort(self._sorted.setdefault(kind, []), row["pace"])
        return [
            # Of an even number of paces the lower one of the middle: no need to go through them.
            Pace(
                *(dataset, model, paces[(len(paces) - 1) // 2], self._work[dataset]),
                gpu=not self._is_cpu,
                setting=setting,
            )
            for (dataset, model, setting), paces in self._sorted.items()
        ]

    def _rows(self) -> list[dict[str, Any]]:
        return query_if_any(
            self._out,
            "SELECT cells.id, content, model, aggregation, features, options, batch_size, "
            "sum(seconds) / num_folds / epochs AS pace, nodes, edges, device "
            "FROM cells JOIN folds ON cell = cells.id JOIN datasets USING (content) "
            # What has chosen in each fold was trained in several ways: no pace comes of that.
            f"WHERE cells.id > {self._last} AND cells.protocol IS NOT NULL AND selection IS NULL "
            "GROUP BY cells.id",
        )


def time_models(
    cells: Iterable[Cell], *, data_dir: str | Path | None = None, device: str = "auto"
) -> list[Pace]:
    """Train each model for a few epochs on the smallest of its data sets that is here.

    Example:
        >>> time_models([])
        []
    """
    paces = []
    smallest: dict[str, Cell] = {}
    for cell in cells:
        if cell.protocol is not None:
            least = smallest.setdefault(cell.task.model, cell)
            if epoch_work(cell) < epoch_work(least):
                smallest[cell.task.model] = cell
    device = resolve_device(device)
    gpu = shares_steps(device)
    for model, cell in smallest.items():
        target = cell.target
        try:
            graphs = load(cell.source or cell.dataset, data_dir, target.column, target.kind)
        except GnnVpaError:
            continue
        with single_thread(device):
            pace = _epoch(cell, graphs, _MANY_EPOCHS if gpu else _FEW_EPOCHS, device) / cell.folds
        work = _size(cell.dataset, graphs.num_nodes, graphs.num_edges, gpu=gpu)
        paces.append(Pace(cell.dataset, model, pace, work, gpu, kind_of(cell)[2]))
    return paces


def _epoch(cell: Cell, graphs: GraphSet, epochs: int, device: str) -> float:
    """Return the seconds of an epoch, by so many of them behind the first, which warms up."""
    ends = {0: time.perf_counter()}

    def tell(done: int) -> None:
        ends.setdefault(done, time.perf_counter())

    assert cell.protocol is not None
    protocol = replace(cell.protocol, epochs=1 + epochs, patience=None)
    fit(graphs, cell.task, protocol, lanes_of(cell, graphs), device=device, progress=tell)
    last = max(ends)  # earlier, where every fold has diverged
    first = min(1, last - 1)
    return (ends[last] - ends[first]) / (last - first)


def epoch_work(cell: Cell, *, gpu: bool = False) -> float:
    """Return what an epoch's time grows with, of a data set as published; infinity for one's own.

    That is its nodes, and a little its edges: a node goes through products of 64 x 64 matrices; an
    edge costs one addition of 64 numbers, a hundredth of that. On a GPU a step costs something
    whatever is in it, and every 64 graphs are a step.

    Example:
        >>> from gnn_vpa.training import Task
        >>> round(epoch_work(Cell("MUTAG", Task("gin", "vpa"))))
        3445
    """
    return size_of(cell.dataset, gpu=gpu)


def size_of(dataset: str, counted: tuple[int, int] | None = None, *, gpu: bool) -> float:
    """Return what `epoch_work` does, for a data set by its name or its nodes and directed edges.

    Example:
        >>> round(size_of("MUTAG", gpu=False)), size_of("mine", (900, 3000), gpu=False)
        (3445, 930.0)
    """
    known = _published(dataset)
    if counted is not None:
        return _size(dataset, *counted, gpu=gpu)
    if known is None:
        return float("inf")
    nodes, edges = known.graphs * known.nodes, known.graphs * 2 * known.edges
    return _size(dataset, nodes, edges, gpu=gpu)


def _size(dataset: str, nodes: float, edges: float, *, gpu: bool) -> float:
    known = _published(dataset)
    steps = known.graphs / Protocol.batch_size if gpu and known else 0.0
    return nodes + edges / 100 + steps * _STEP_IN_NODES


@cache
def _published(dataset: str) -> Statistics | None:
    try:
        return published_statistics(resolve_name(dataset))
    except UsageError:
        return None


def format_duration(seconds: float) -> str:
    """Return a time as people say it.

    Example:
        >>> format_duration(0.4), format_duration(75), format_duration(5400), format_duration(7200)
        ('1 s', '1 min 15 s', '1 h 30 min', '2 h')
    """
    whole = max(1, round(seconds))
    if whole >= 600:
        whole = round(whole / 60) * 60  # seconds do not matter any more
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""]
    return " ".join(filter(None, [*parts, f"{rest} s" if rest else ""]))
