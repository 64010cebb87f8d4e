"""An epoch of the paper's cells, before and after a change: two source trees, in turns.

``--before`` is the ``src`` of a checkout of another commit. Every turn of a tree is a process that
trains ten folds of each cell and tells what an epoch took, without waiting for the device between
epochs. Without ``--before`` this tree is measured alone.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import gnn_vpa
from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.graphs import load, splits
from gnn_vpa.training import Lane, Protocol, Task, fit

from ._record import Record

_AFTER = Path(__file__).parents[1] / "src"
_WARM = 10  # epochs, or half of them, before they count


class Cell(NamedTuple):
    """Ten folds of methods that share every step."""

    dataset: str
    model: str
    aggrs: tuple[str, ...]


CELLS = (
    Cell("MUTAG", "gin", ("vpa",)),
    Cell("IMDB-BINARY", "gin", ("vpa",)),
    Cell("IMDB-BINARY", "gcn", ("sum", "vpa")),
    Cell("IMDB-BINARY", "gat", ("vpa",)),
    Cell("IMDB-BINARY", "gin", ("max",)),
    Cell("NCI1", "gin", ("vpa",)),
    Cell("REDDIT-BINARY", "gin", ("vpa",)),
    Cell("REDDIT-BINARY", "gcn", ("sum", "vpa")),
    Cell("REDDIT-BINARY", "gat", ("vpa",)),
    Cell("REDDIT-BINARY", "gin", ("max",)),
    Cell("COLLAB", "gin", ("vpa",)),
)


def report(
    device: str,
    datasets: Sequence[str],
    epochs: int,
    rounds: int,
    before: Path | None,
    record: Record,
) -> None:
    """Measure the cells of some data sets; a row has the median over all turns."""
    columns = {"data set": "{}", "tasks": "{}"}
    if before is not None:
        columns |= {"before": "{:.2f} ms"}
    columns |= {"after": "{:.2f} ms"}
    if before is not None:
        columns |= {"after / before": "{:.3f}"}
    table = record.table("epochs", "An epoch of ten folds", columns)
    trees = [_AFTER] if before is None else [before, _AFTER]
    cells = [cell for cell in CELLS if cell.dataset in datasets]
    turns = [[_measured(cells, device, epochs, tree) for tree in trees] for _ in range(rounds)]
    for number, cell in enumerate(cells):
        row = [
            statistics.median(turn[place][number] for turn in turns) for place in range(len(trees))
        ]
        if before is not None:
            row.append(row[1] / row[0])
        table.row(cell.dataset, f"{cell.model.upper()} {', '.join(cell.aggrs)}", *row)


def _measured(cells: Sequence[Cell], device: str, epochs: int, tree: Path) -> list[float]:
    """Return the milliseconds of an epoch of each cell by a source tree, in a process."""
    command = [sys.executable, "-m", __name__, json.dumps([cells, device, epochs])]
    environment = os.environ | {"PYTHONPATH": str(tree.resolve())}
    done = subprocess.run(
        command, cwd=_AFTER.parent, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise GnnVpaError(f"{tree}: its process has failed:\n{done.stderr}")
    told = json.loads(done.stdout.splitlines()[-1])
    if not Path(told["source"]).is_relative_to(tree.resolve()):
        raise UsageError(f"--before: {tree} has no gnn_vpa, expected the src of a checkout.")
    milliseconds: list[float] = told["milliseconds"]
    return milliseconds


def _median(cell: Cell, device: str, epochs: int) -> float:
    """Train a cell; return the median milliseconds between the ends of its epochs."""
    ends: dict[int, float] = {}  # a group of lanes tells when it is done: the last one counts
    graphs = load(cell.dataset)
    fit(
        graphs,
        [Task(cell.model, aggr) for aggr in cell.aggrs],
        Protocol(epochs=epochs),
        [Lane(fold, split) for fold, split in enumerate(splits(graphs.y, 10))],
        device=device,
        progress=lambda done: ends.setdefault(done, time.perf_counter()),
        workers=1,
    )
    taken = [after - before for before, after in pairwise(ends[n] for n in range(1, epochs + 1))]
    return 1e3 * statistics.median(taken[min(_WARM, len(taken) // 2) :])


def _tell(cells: Sequence[Cell], device: str, epochs: int) -> None:
    """Print what each cell takes, and whose code it is."""
    taken = [_median(cell, device, epochs) for cell in cells]
    print(json.dumps({"milliseconds": taken, "source": gnn_vpa.__file__}))


if __name__ == "__main__":
    _cells, _device, _epochs = json.loads(sys.argv[1])
    _tell([Cell(*cell) for cell in _cells], _device, _epochs)
