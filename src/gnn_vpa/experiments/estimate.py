"""How long the rest will take, from what is known, and how far to trust it."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from statistics import median

from ..errors import GnnVpaError, UsageError
from ..graphs import GraphSet, load
from ..paper import Statistics, published_statistics, resolve_name
from ..training import Protocol, fit
from ._workers import single_thread
from .cell import Cell
from .groups import Group, shares_steps
from .identity import labels
from .runner import resolve_device
from .store import FILE, dataset_names, query

# What a step costs on a GPU beyond its nodes, in nodes of each of ten lanes: launches of kernels
# take some half of a millisecond, a node of every lane some 0.1 microseconds.
_STEP_IN_NODES = 4000
# Trainings are timed over so many epochs, which on a GPU pass in milliseconds.
_FEW_EPOCHS, _MANY_EPOCHS = 3, 100


@dataclass(frozen=True)
class Pace:
    """Seconds for an epoch of one fold, as seen once.

    Attributes:
        dataset: The data set, and
        model: the model it was seen with.
        seconds: For an epoch of one fold.
        work: Size of the data set, see `size`.
        gpu: Whether that was on a GPU.

    Example:
        >>> Pace("MUTAG", "gin", 0.01, 10_000).seconds
        0.01
    """

    dataset: str
    model: str
    seconds: float
    work: float
    gpu: bool = False


@dataclass(frozen=True)
class Estimate:
    """An expected time, right within a factor.

    Example:
        >>> str(Estimate(5400.0, 3.0))
        'about 1 h 30 min (30 min to 4 h 30 min)'
    """

    seconds: float
    factor: float

    def __str__(self) -> str:
        low, high = duration(self.seconds / self.factor), duration(self.seconds * self.factor)
        return f"about {duration(self.seconds)}" + (f" ({low} to {high})" if low != high else "")


def estimate(cells: Iterable[Cell], paces: Sequence[Pace], workers: int = 1) -> Estimate:
    """Expect that time grows with folds, epochs and the data's size, and that workers share it.

    What was seen of the same model and data set is trusted within a factor of 1.5, of the same
    model on other data 3, of other models 6. The factor of the sum is that of most of its time.

    Example:
        >>> from gnn_vpa.training import Task
        >>> cells = [Cell("PTC", Task("gin", "vpa"), Protocol(epochs=10), folds=2)]
        >>> estimate(cells, [Pace("MUTAG", "gin", 0.1, size(cells[0]) / 2)])
        Estimate(seconds=4.0, factor=3.0)
    """
    by_factor = {1.5: 0.0, 3.0: 0.0, 6.0: 0.0}
    for cell in cells:
        if cell.protocol is None:  # a baseline takes little, and no epochs
            continue
        of_model = [pace for pace in paces if pace.model == cell.task.model]
        same = [pace for pace in of_model if pace.dataset == cell.dataset]
        known = same or of_model or paces
        factor = 1.5 if same else 3.0 if of_model else 6.0
        an_epoch = median(pace.seconds * _times_larger(cell, pace) for pace in known)
        by_factor[factor] += an_epoch * cell.folds * cell.protocol.epochs
    total = sum(by_factor.values()) / workers
    return Estimate(total, max(by_factor, key=lambda f: by_factor[f]))


def _times_larger(cell: Cell, pace: Pace) -> float:
    """Return how many times the data that a pace was seen with a cell's data are; 1 if unknown."""
    own = size(cell, gpu=pace.gpu)
    return own / pace.work if cell.dataset != pace.dataset and isfinite(own) else 1.0


def seen(out: str | Path, device: str) -> list[Pace]:
    """Return the paces of a run's finished cells, of those that ran on this kind of device.

    Example:
        >>> seen("no/such/run", "cpu")
        []
    """
    if not (Path(out) / FILE).exists():
        return []
    rows = query(
        out,
        "SELECT content, model, sum(seconds) / num_folds / epochs AS pace, nodes, edges, device "
        "FROM folds JOIN cells ON cells.id = cell JOIN datasets USING (content) "
        "WHERE epochs IS NOT NULL GROUP BY cell",
    )
    called = labels(dataset_names(out))
    return [
        Pace(
            *(called[row["content"]], row["model"], row["pace"]),
            _size(called[row["content"]], row["nodes"], row["edges"], gpu=row["device"] != "cpu"),
            gpu=row["device"] != "cpu",
        )
        for row in rows
        if (row["device"] == "cpu") == (device == "cpu")
    ]


def calibrate(
    cells: Iterable[Cell], *, data_dir: str | Path | None = None, device: str = "auto"
) -> list[Pace]:
    """Train each model for a few epochs on the smallest of its data sets that is here.

    Example:
        >>> calibrate([])
        []
    """
    paces = []
    smallest: dict[str, Cell] = {}
    for cell in cells:
        if cell.protocol is not None:
            least = smallest.setdefault(cell.task.model, cell)
            if size(cell) < size(least):
                smallest[cell.task.model] = cell
    device = resolve_device(device)
    gpu = shares_steps(device)
    for model, cell in smallest.items():
        try:
            graphs = load(cell.source or cell.dataset, data_dir)
        except GnnVpaError:
            continue
        # The first time of all warms up; the difference leaves out what each training prepares.
        more = _MANY_EPOCHS if gpu else _FEW_EPOCHS
        with single_thread(device):
            _, short, long = (_time(cell, graphs, n, device) for n in (1, 1, 1 + more))
        pace = max(long - short, 1e-6) / more / cell.folds
        work = _size(cell.dataset, graphs.num_nodes, graphs.num_edges, gpu=gpu)
        paces.append(Pace(cell.dataset, model, pace, work, gpu))
    return paces


def _time(cell: Cell, graphs: GraphSet, epochs: int, device: str) -> float:
    started = time.perf_counter()
    lanes = Group((cell,)).lanes(graphs)
    fit(graphs, cell.task, Protocol(epochs=epochs), lanes, device=device)
    return time.perf_counter() - started


def size(cell: Cell, *, gpu: bool = False) -> float:
    """Return what an epoch's time grows with, of a data set as published; infinity for one's own.

    That is its nodes, and a little its edges: a node goes through products of 64 x 64 matrices; an
    edge costs one addition of 64 numbers, a hundredth of that. On a GPU a step costs something
    whatever is in it, and every 64 graphs are a step.

    Example:
        >>> from gnn_vpa.training import Task
        >>> round(size(Cell("MUTAG", Task("gin", "vpa"))))
        3445
    """
    known = _published(cell.dataset)
    if known is None:
        return float("inf")
    nodes, edges = known.graphs * known.nodes, known.graphs * 2 * known.edges
    return _size(cell.dataset, nodes, edges, gpu=gpu)


def _size(dataset: str, nodes: float, edges: float, *, gpu: bool) -> float:
    known = _published(dataset)
    steps = known.graphs / Protocol.batch_size if gpu and known else 0.0
    return nodes + edges / 100 + steps * _STEP_IN_NODES


def _published(dataset: str) -> Statistics | None:
    try:
        return published_statistics(resolve_name(dataset))
    except UsageError:
        return None


def duration(seconds: float) -> str:
    """Return a time as people say it.

    Example:
        >>> duration(0.4), duration(75), duration(5400), duration(7200)
        ('1 s', '1 min 15 s', '1 h 30 min', '2 h')
    """
    whole = max(1, round(seconds))
    if whole >= 600:
        whole = round(whole / 60) * 60  # seconds do not matter any more
    hours, minutes, rest = whole // 3600, whole % 3600 // 60, whole % 60
    parts = [f"{hours} h" if hours else "", f"{minutes} min" if minutes else ""]
    return " ".join(filter(None, [*parts, f"{rest} s" if rest else ""]))
