"""Large grids: what a cell costs among thousands, and the memory of a process beside its estimate.

Cells are one epoch of two folds of a tiny data set, so that all that is around a training counts:
claims, the results file, the time left, lines of progress; then the table and the report.
"""

import contextlib
import io
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch_geometric.data import Data

from gnn_vpa import Results
from gnn_vpa.cli._experiment import print_results
from gnn_vpa.cli._progress import Lines
from gnn_vpa.experiments import expand, run_grid
from gnn_vpa.experiments.memory import DataSize, memory_of_process
from gnn_vpa.graphs import load
from gnn_vpa.training import Protocol

from ._memory import peak_of
from ._record import Record

CELLS = (100, 500, 2000, 5000)
DATASETS = ("REDDIT-MULTI-5K", "COLLAB", "REDDIT-BINARY", "NCI1", "MUTAG")
_WARM = 20


def report(counts: Sequence[int], datasets: Sequence[str], record: Record) -> None:
    """Measure both; an empty list leaves its part out."""
    if counts:
        cells(counts, record)
    if datasets:
        memory(datasets, record)


def cells(counts: Sequence[int], record: Record) -> None:
    """Seconds for each cell of grids of several sizes, in one process."""
    columns = {
        "cells": "{:,}",
        "a cell": "{:.1f} ms",
        "of the first row's": "{:.2f}",
        "table and report": "{:.1f} s",
    }
    table = record.table("grid", "A cell of one epoch among many", columns)
    _run(_WARM)
    first = None
    for count in counts:
        seconds, reported = _run(count)
        each = seconds / count
        first = first or each
        table.row(count, each * 1e3, each / first, reported)


def memory(datasets: Sequence[str], record: Record) -> None:
    """Peak memory of a process that trains GIN+vpa for an epoch, beside what is expected of it."""
    columns = {
        "data set": "{}",
        "expected": "{:.2f} GB",
        "measured": "{:.2f} GB",
        "ratio": "{:.2f}",
    }
    table = record.table("grid memory", "Memory of a process", columns)
    for name in datasets:
        (cell, *_) = expand([name], ["gin"], ["vpa"]).cells
        expected = memory_of_process([cell], {cell.dataset: DataSize.of(load(name))})
        measured = peak_of("ours", name, "cpu", 2, 0).peak
        table.row(name, expected / 1e9, measured / 1e9, expected / measured)


def tiny() -> list[Data]:
    """Return paths and triangles, twenty of each."""
    path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    triangle = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    return [
        Data(edge_index=edges, num_nodes=3, y=y) for y, edges in enumerate((path, triangle))
    ] * 20


def _run(count: int) -> tuple[float, float]:
    """Return the seconds of so many cells, and those of their table and report."""
    source, protocol = f"{__name__}:tiny", Protocol(epochs=1)
    seeds = range(-(-count // 2))
    chosen = expand([source], ["sgc"], protocol=protocol, folds=2, seeds=seeds).cells[:count]
    silent = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        with contextlib.redirect_stderr(silent), Lines(folder, "cpu") as progress:
            run_grid(chosen, folder, device="cpu", progress=progress, workers=1)
        ran = time.perf_counter()
        with contextlib.redirect_stdout(silent):
            results = Results(folder)
            print_results(results)
            for ending in ("html", "md", "tex", "csv"):
                results.report(Path(folder, f"report.{ending}"))
        return ran - begin, time.perf_counter() - ran
