"""From what somebody asks for to the cells that are to be run."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ..baselines import BASELINES
from ..errors import UsageError
from ..graphs import Division, FeatureKind, FixedDivision, GraphSet, SplitsAsked, load
from ..paper import paper_name, resolve_name
from ..training import Protocol, Task
from .cell import Cell, Target
from .methods import known, tasks_of
from .selection import Selection, Setting


class Grid(NamedTuple):
    """The cells to run, in words what was asked for and cannot be, and what else is worth a line.

    Example:
        >>> Grid([], ["sgc has no aggregation sum"]).left_out
        ['sgc has no aggregation sum']
    """

    cells: list[Cell]
    left_out: list[str]
    remarks: Sequence[str] = ()


def expand(
    datasets: Sequence[str | GraphSet],
    models: Sequence[str | Callable[..., Any]] = ("gin",),
    aggrs: Sequence[str] | None = None,
    *,
    variant: str = "released",
    features: FeatureKind = "auto",
    options: Mapping[str, object] | None = None,
    protocol: Protocol | Sequence[Protocol] | None = None,
    folds: int | None = None,
    seeds: Sequence[int] = (0,),
    repeats: int = 1,
    division: Division | None = None,
    target: Target | None = None,
    final_runs: int | None = None,
    baselines: Sequence[str] = (),
    data_dir: str | Path | None = None,
    arguments: Sequence[str] = (),
) -> Grid:
    """Combine data sets, models, aggregations, settings, repeats and seeds.

    An aggregation that a model does not have is left out of that model's rows, and said so; the
    same holds for an option that only other models have.

    Args:
        datasets: Names, paths or functions as `gnn_vpa.graphs.load` takes them, or data sets.
        models: Names of ``gnn_vpa.nn.MODELS``, such as gin; or models of one's own, as
            `module:function` or as functions.
        aggrs: Of sum, mean, max, vpa (gin, gcn), default, vpa (sgc, gat) and power(p); None for
            all but powers.
        variant: The models `released`, or as `printed` in the paper.
        features: The node features.
        options: What else a model takes, ours width, depth, dropout, hidden, K; a list has values
            to try.
        protocol: How to train, one way or several; None for the paper's protocol.
        folds: Number of folds; None: 10, or as many as `division` has.
        seeds: A seed for each repetition.
        repeats: How often graphs are divided into folds, each time otherwise.
        division: How graphs are divided into folds; None: as in the paper.
        target: What of the data is learned; None: their `y`.
        final_runs: Where it is given, the best setting by validation is chosen for each fold, and
            trained so often anew.
        baselines: Of majority, no_edges, no_features and wl.
        data_dir: A folder to look for data in first.
        arguments: What else the caller takes by name: an option that no model has may be meant so.

    Raises:
        UsageError: A name is unknown, or no combination is left.

    Example:
        >>> grid = expand(["MUTAG"], ["gin", "sgc"], ["sum", "vpa"])
        >>> [str(cell) for cell in grid.cells]
        ['GIN+sum on MUTAG', 'GIN+vpa on MUTAG', 'SGC+vpa on MUTAG']
        >>> grid.left_out
        ['sgc has no aggregation sum (it has default, vpa)']
        >>> [str(cell) for cell in expand(["PTC"], aggrs=["vpa"], options={"width": [8, 9]}).cells]
        ['GIN+vpa (width=8) on PTC', 'GIN+vpa (width=9) on PTC']
    """
    division, target = division or Division(), target or Target()
    _check_division(division, folds, repeats)
    protocols = [protocol or Protocol()] if isinstance(protocol, Protocol | None) else protocol
    methods, left_out = tasks_of(models, aggrs, variant, features, options or {}, arguments)
    fixed = [
        Task(known("baseline", name, BASELINES), "", "", features)
        for name in dict.fromkeys(baselines)
    ]
    cells: list[Cell] = []
    for source, name in {source: dataset_name(source, data_dir) for source in datasets}.items():
        # Data in memory have the target that they came with.
        its = Target() if isinstance(source, GraphSet) else target
        base = Cell(
            its.name_of(name),
            Task("none", ""),
            None,
            folds=division.folds or folds or Cell.folds,
            source=source,
            division=division,
            target=its,
        )
        for seed, repeat in product(dict.fromkeys(seeds), range(repeats)):
            run = replace(base, seed=seed, repeat=repeat)
            for tasks in methods:
                tried = [
                    replace(run, task=task, protocol=protocol)
                    for task, protocol in product(tasks, protocols)
                ]
                cells += tried
                if final_runs is not None:
                    cells.append(selecting(tried, final_runs))
        cells += [
            replace(base, task=task, repeat=repeat, metric=protocols[0].metric)
            for repeat, task in product(range(repeats if seeds else 0), fixed)
        ]
    if not cells:
        reasons = "; ".join(left_out) or "name a data set, a model, an aggregation and a seed"
        raise UsageError(f"the grid is empty, nothing can be run: {reasons}")
    most = max((len(tasks) * len(protocols) for tasks in methods), default=0)
    return Grid(cells, left_out, _remarks(most) if final_runs is None else ())


def _remarks(settings: int) -> list[str]:
    """Warn somebody who is about to choose a setting by what it comes to in the test."""
    if settings <= 1:
        return []
    return [
        f"{settings} settings of a method are rows of their own. To pick one by its test score "
        "flatters it: --select picks by validation, for each fold."
    ]


def final_runs_of(select: bool, final_runs: int | None = None) -> int | None:
    """Return how often a chosen setting is trained anew; None where none is to be chosen.

    Example:
        >>> final_runs_of(True), final_runs_of(True, 5), final_runs_of(False)
        (3, 5, None)
    """
    if not select and final_runs is not None:
        raise UsageError("final_runs: they are for what select has chosen, and select is not on")
    return (final_runs or Selection.final_runs) if select else None


def selecting(tried: Sequence[Cell], final_runs: int = 3) -> Cell:
    """Return the cell that chooses one of these settings of a method for each fold.

    Example:
        >>> cells = expand(["MUTAG"], aggrs=["vpa"], options={"width": [8, 16], "depth": 2}).cells
        >>> str(selecting(cells))
        'GIN+vpa (depth=2, chosen from 2) on MUTAG'
    """
    settings = [Setting(cell.task.options, cell.protocol) for cell in tried if cell.protocol]
    selection = Selection(tuple(dict.fromkeys(settings)), final_runs)
    common = selection.common()
    options = tuple(option for option in tried[0].task.options if option[0] in common)
    return replace(tried[0], task=replace(tried[0].task, options=options), selection=selection)


def _check_division(division: Division, folds: int | None, repeats: int) -> None:
    if not isinstance(division, SplitsAsked | FixedDivision):
        return
    if folds is not None:
        raise UsageError("folds and splits: give one of them, the splits say how many folds")
    if repeats > 1:
        raise UsageError(
            "repeats and splits: splits have one division into folds; for more trainings of the "
            "same folds give several seeds"
        )


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
    by_kind = [set().union(*of_kind) for of_kind in zip(*names, strict=True)]
    asked = {known("--only", name, set().union(*by_kind)) for name in only}
    wanted = [asked & of_kind for of_kind in by_kind]
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
