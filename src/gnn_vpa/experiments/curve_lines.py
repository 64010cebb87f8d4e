"""A cell as a line of a picture that grows: what it is called, and its curves at some epochs."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..training.task import Curves
from .cell import Cell
from .progress import Grown

POINTS = 120  # of a curve that are told


def line_of(cell: Cell, folds: Sequence[Grown]) -> dict[str, object]:
    """Describe a cell in training: the mean of its folds' curves."""
    diverged = [grown.fold for grown in folds if not np.isfinite(grown.curves[0, -1:]).all()]
    return {
        **called(cell),
        "diverged": sorted(set(diverged)),
        **thinned([grown.curves for grown in folds]),
    }


def called(cell: Cell) -> dict[str, str]:
    """Return what a cell is called: by itself, and as a line among others in a picture.

    Example:
        >>> from gnn_vpa.training import Task
        >>> names = called(Cell("PTC", Task("gin", "vpa", options=(("width", 32),)), content="35"))
        >>> names["picture"], names["line"]
        ('GIN on PTC', 'vpa (width=32)')
    """
    runs = [(cell.seed, "seed"), (cell.repeat, "repeat")]
    return {
        "key": cell.key,
        "name": str(cell),
        "picture": f"{cell.model} on {cell.data}",
        "aggr": cell.task.aggr,
        "line": f"{cell.task.aggr or cell.model}{cell.settings}"
        + "".join(f", {what} {number}" for number, what in runs if number),
        "metric": cell.metric,
    }


def thinned(curves: Sequence[Curves], points: int = POINTS) -> dict[str, list[Any]]:
    """Return the mean of curves at some epochs, for a program: what is not finite is None.

    Example:
        >>> one, two = np.ones((3, 3), np.float32), np.full((3, 2), 2, np.float32)
        >>> thinned([one, two])["loss"], thinned([one, two], points=2)["epoch"]
        ([1.5, 1.5, 1.0], [1, 3])
    """
    length = max((each.shape[1] for each in curves), default=0)
    chosen = np.unique(np.linspace(0, max(length - 1, 0), min(points, length)).round().astype(int))
    found: dict[str, list[Any]] = {"epoch": (chosen + 1).tolist()}
    for place, name in enumerate(("loss", "valid", "test")):
        total, count = np.zeros(len(chosen)), np.zeros(len(chosen))
        for each in curves:
            there = chosen[chosen < each.shape[1]]
            values = each[place, there].astype(float)
            is_finite = np.isfinite(values)
            total[: len(there)] += np.where(is_finite, values, 0.0)
            count[: len(there)] += is_finite
        means = np.divide(total, count, out=np.full(len(chosen), np.nan), where=count > 0)
        found[name] = [None if math.isnan(mean) else float(f"{mean:.5g}") for mean in means]
    return found
