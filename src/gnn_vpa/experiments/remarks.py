"""What is worth saying about cells and their data before anything is trained."""

from collections.abc import Iterable, Mapping

from ..graphs import GraphSet
from ..training import Task, own
from .cell import Cell


def remarks(cells: Iterable[Cell], data: Mapping[str, GraphSet]) -> list[str]:
    """Say once which models do not use the edge features of which data, and what is converted.

    Example:
        >>> remarks([], {})
        []
    """
    seen: dict[tuple[str, str], tuple[Cell, Task]] = {}
    cells = list(cells)
    for cell in cells:
        if cell.protocol is not None and cell.content in data:
            seen.setdefault((cell.content, cell.task.model), (cell, cell.task))
    unused: dict[str, list[str]] = {}
    for (content, model), (cell, task) in seen.items():
        if own.unused_edge_features(data[content], task) is not None:
            unused.setdefault(cell.dataset, []).append(model)
    by_models: dict[tuple[str, ...], list[str]] = {}
    for dataset, models in unused.items():
        by_models.setdefault(tuple(models), []).append(dataset)
    return _conversions(cells) + [
        f"{_listed(datasets)} {'have' if len(datasets) > 1 else 'has'} edge features, which "
        f"{_listed(models)} {'do' if len(models) > 1 else 'does'} not use."
        for models, datasets in by_models.items()
    ]


def _conversions(cells: Iterable[Cell]) -> list[str]:
    """Say of each model of one's own what an aggregation has changed in it."""
    tasks = {(cell.task.model, cell.task.aggr): cell.task for cell in cells if cell.task.source}
    return [
        f"{model} with {aggr}: {said.splitlines()[0]}"
        for (model, aggr), task in tasks.items()
        if (said := own.conversion(task))
    ]


def _listed(names: Iterable[str]) -> str:
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last
