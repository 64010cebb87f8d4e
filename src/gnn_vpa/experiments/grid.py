"""From what somebody asks for to the cells that are to be run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import product
from numbers import Integral, Real
from pathlib import Path
from typing import NamedTuple

from ..aggregations import aggregation
from ..errors import UsageError
from ..graphs import FeatureKind, GraphSet, load
from ..nn import MODELS
from ..paper import paper_name, resolve_name
from ..training import Protocol, Task
from .baselines import BASELINES
from .cell import Cell


class Grid(NamedTuple):
    """The cells to run, and in words what was asked for and cannot be.

    Example:
        >>> Grid([], ["sgc has no aggregation sum"]).left_out
        ['sgc has no aggregation sum']
    """

    cells: list[Cell]
    left_out: list[str]


def expand(
    datasets: Sequence[str | GraphSet],
    models: Sequence[str] = ("gin",),
    aggrs: Sequence[str] | None = None,
    *,
    variant: str = "released",
    features: FeatureKind = "auto",
    options: Mapping[str, float] | None = None,
    protocol: Protocol | None = None,
    folds: int = 10,
    seeds: Sequence[int] = (0,),
    baselines: Sequence[str] = (),
    data_dir: str | Path | None = None,
) -> Grid:
    """Combine data sets, models, aggregations and seeds.

    An aggregation that a model does not have is left out of that model's rows, and said so.

    Args:
        datasets: Names, paths or functions as `gnn_vpa.graphs.load` takes them, or data sets.
        models: Names of ``gnn_vpa.nn.MODELS``: gin, gcn, sgc, gat and deep.
        aggrs: Of sum, mean, max, vpa (gin, gcn), default, vpa (sgc, gat) and power(p); None for
            all but powers.
        variant: The models `released`, or as `printed` in the paper.
        features: The node features.
        options: What else `build_model` takes: width, depth, dropout, hidden, K.
        protocol: How to train; None for the paper's protocol.
        folds: Number of folds.
        seeds: A seed for each repetition.
        baselines: Of majority and wl.
        data_dir: A folder to look for data in first.

    Raises:
        UsageError: A name is unknown, or no combination is left.

    Example:
        >>> grid = expand(["MUTAG"], ["gin", "sgc"], ["sum", "vpa"])
        >>> [str(cell) for cell in grid.cells]
        ['GIN+sum on MUTAG', 'GIN+vpa on MUTAG', 'SGC+vpa on MUTAG']
        >>> grid.left_out
        ['sgc has no aggregation sum (it has default, vpa)']
    """
    models = [_known("model", name, MODELS) for name in models]
    wanted = None if aggrs is None else [aggregation(name.strip()) for name in aggrs]
    tasks, left_out = [], []
    for model in dict.fromkeys(models):
        its = MODELS[model].aggregations()
        for entry in [aggregation(n) for n in its] if wanted is None else dict.fromkeys(wanted):
            if not MODELS[model].takes(entry):
                has = ", ".join(its)
                left_out.append(f"{model} has no aggregation {entry.name} (it has {has})")
                continue
            tasks.append(Task(model, entry.name, variant, features, _plain(options or {})))
    for task in tasks:
        _check(task)
    fixed = [
        Task(_known("baseline", name, BASELINES), "", "", features)
        for name in dict.fromkeys(baselines)
    ]
    protocol = protocol or Protocol()
    cells = []
    for source, name in {source: dataset_name(source, data_dir) for source in datasets}.items():
        cells += [
            Cell(name, task, protocol, folds, seed, source)
            for seed, task in product(dict.fromkeys(seeds), tasks)
        ]
        cells += [Cell(name, task, None, folds, 0, source) for task in fixed]
    if not cells:
        reasons = "; ".join(left_out) or "name a data set, a model, an aggregation and a seed"
        raise UsageError(f"the grid is empty, nothing can be run: {reasons}")
    return Grid(cells, left_out)


def select(cells: Iterable[Cell], only: Sequence[str]) -> list[Cell]:
    """Keep the cells that are asked for by model, aggregation, method or data set.

    Names of one kind are alternatives; of several kinds, all must hold.

    Example:
        >>> cells = expand(["MUTAG", "PTC"], ["gin", "sgc"]).cells
        >>> [str(cell) for cell in select(cells, ["gin+vpa", "sgc", "mutag"])]
        ['GIN+vpa on MUTAG', 'SGC on MUTAG', 'SGC+vpa on MUTAG']
    """
    cells = list(cells)
    names = [_names(cell) for cell in cells]
    known = [set().union(*of_kind) for of_kind in zip(*names, strict=True)]
    asked = {_known("--only", name, set().union(*known)) for name in only}
    wanted = [asked & of_kind for of_kind in known]
    chosen = [
        cell
        for cell, own in zip(cells, names, strict=True)
        if all(not some or some & mine for some, mine in zip(wanted, own, strict=True))
    ]
    if not chosen:
        raise UsageError(f"the grid is empty: no cell is {' and '.join(only)}")
    return chosen


def dataset_name(source: str | GraphSet, data_dir: str | Path | None = None) -> str:
    """Return what a data set is called in the results, as long as no other is called so.

    Example:
        >>> dataset_name("imdb-binary"), dataset_name("PTC_FM"), dataset_name("mine:graphs")
        ('IMDB-B', 'PTC', 'mine:graphs')
    """
    if isinstance(source, GraphSet):
        archive = source.name
    elif ":" in source:
        return source
    else:
        try:
            archive = resolve_name(source)
        except UsageError:  # one's own, which has its name within
            archive = load(source, data_dir).name
    return paper_name(archive) or archive


def default_folder(cells: Iterable[Cell]) -> Path:
    """Return where results go that nobody named a folder for: by data sets, under `runs/`.

    Example:
        >>> default_folder(expand(["PTC", "MUTAG"]).cells).as_posix()
        'runs/mutag-ptc'
    """
    names = sorted({re.sub(r"\W+", "-", cell.dataset.casefold()) for cell in cells})
    shown = names if len(names) <= 3 else [names[0], f"and-{len(names) - 1}-more"]
    return Path("runs", "-".join(shown))


def _names(cell: Cell) -> tuple[set[str], set[str], set[str]]:
    """List what a cell may be asked for by: its model or method, aggregation and data set."""
    model, aggr, names = cell.task.model, cell.task.aggr, {cell.dataset.casefold()}
    with suppress(UsageError):  # one's own data set has no name in the collection
        names.add(resolve_name(cell.dataset).casefold())
    return {model, f"{model}+{aggr}"}, {aggr}, names


def _known(what: str, name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    if (name := name.strip().casefold()) in known:
        return name
    near = get_close_matches(name, known, n=1)
    advice = f"did you mean {near[0]}?" if near else f"use {', '.join(known)}"
    raise UsageError(f"{what}: {name!r} is unknown: {advice}")


def _plain(options: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return settings as numbers that a file keeps: not NumPy's, nor of a single element."""
    plain: list[tuple[str, float]] = []
    for name, value in sorted(options.items()):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise UsageError(f"{name}: expected a number, got {value!r}")
        plain.append((name, int(value) if isinstance(value, Integral) else float(value)))
    return tuple(plain)


def _check(task: Task) -> None:
    """Let the model itself refuse what it cannot be built with, before anything is trained."""
    import torch

    with torch.device("meta"):
        task.build(in_channels=1, num_classes=2)
