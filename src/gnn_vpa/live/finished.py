"""The finished cells of a run, each read once, and their learning curves where they are shown."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from ..experiments import Cell, dataset_names
from ..experiments.curve_lines import called, thinned
from ..experiments.identity import labels
from ..experiments.store import FILE, query
from ..training import METRICS

_CURVES = ("curve_train_loss", "curve_val", "curve_test")
_KEPT = 200  # cells whose curves are kept


@dataclass(frozen=True)
class Done:
    """A finished cell.

    Attributes:
        number: Its place among those of the run.
        names: What it is called, see `gnn_vpa.experiments.curve_lines.called`.
        score: Mean and standard deviation of its folds, in words.
        diverged: Folds that have diverged, and in which epoch, from 0.
        is_trained: Whether it has learning curves: a baseline has none.
    """

    number: int
    names: dict[str, str]
    score: str
    diverged: tuple[tuple[int, int], ...]
    is_trained: bool


class Finished:
    """The finished cells of a run's folder, which need not be there yet.

    Args:
        folder: The run's folder.

    Example:
        >>> Finished(Path("no/such/run")).read()
        []
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cells: list[Done] = []
        self._curves: dict[str, dict[str, list[Any]]] = {}

    def read(self) -> list[Done]:
        """Return all cells that are finished, in the order in which they were recorded."""
        if not (self._folder / FILE).exists():
            self._cells = []
            return []
        last = self._cells[-1].number if self._cells else 0
        rows = query(
            self._folder,
            "SELECT cells.*, fold, test_score, status, diverged_epoch "
            f"FROM cells JOIN folds ON cell = cells.id WHERE cells.id > {last} "
            "ORDER BY cells.id, fold",
        )
        if rows:
            names = labels(dataset_names(self._folder))
            by_cell: dict[int, list[dict[str, Any]]] = {}
            for row in rows:
                by_cell.setdefault(row["id"], []).append(row)
            self._cells += [_done(folds, names) for folds in by_cell.values()]
        return self._cells

    def curves(self, cells: Collection[Done]) -> dict[str, dict[str, list[Any]]]:
        """Return the mean curves of some cells by their keys."""
        missing = [done for done in cells if done.names["key"] not in self._curves]
        if missing:
            rows = query(
                self._folder,
                f"SELECT cell, {', '.join(_CURVES)} FROM folds "
                f"WHERE cell IN ({', '.join(str(done.number) for done in missing)})",
            )
            for done in missing:
                own = [row for row in rows if row["cell"] == done.number]
                self._curves[done.names["key"]] = thinned([_matrix(row) for row in own])
        wanted = {done.names["key"] for done in cells}
        for key in [key for key in self._curves if key not in wanted][:-_KEPT]:
            del self._curves[key]
        return {key: self._curves[key] for key in wanted}


def _matrix(row: dict[str, Any]) -> np.ndarray:
    return np.stack([np.frombuffer(row[name], "<f4") for name in _CURVES])


def _done(folds: Sequence[dict[str, Any]], names: dict[str, str]) -> Done:
    row = folds[0] | {"dataset": names.get(folds[0]["content"], "?")}
    cell = Cell.of_row(row)
    named = called(cell) | {"key": row["key"]}
    if row["selection"] is not None:
        chosen = f" (chosen from {len(json.loads(row['selection'])['candidates'])})"
        named |= {name: named[name] + chosen for name in ("name", "line")}
    scores = [fold["test_score"] for fold in folds if fold["status"] == "done"]
    diverged = [
        (fold["fold"], fold["diverged_epoch"]) for fold in folds if fold["status"] == "diverged"
    ]
    is_trained = row["protocol"] is not None
    return Done(row["id"], named, in_words(scores, row["metric"]), tuple(diverged), is_trained)


def in_words(scores: Sequence[float], metric: str) -> str:
    """Return the mean and the standard deviation of the folds' scores.

    Example:
        >>> in_words([0.8, 0.9], "accuracy"), in_words([0.5], "rmse"), in_words([], "rmse")
        ('85.0 ± 7.1 %', '0.5', 'diverged')
    """
    if not scores:
        return "diverged"
    share = METRICS[metric].is_share
    shown = [100 * score if share else score for score in scores]
    digits = ".1f" if share else ".3g"
    spread = f" ± {stdev(shown):{digits}}" if len(shown) > 1 else ""
    return f"{fmean(shown):{digits}}{spread}{' %' if share else ''}"
