"""What more processes gain, predicted and measured: a small grid on the CPU.

The times of a grid's cells in one process predict what several take: `experiments.places` simulates
the schedule, as `--plan` does, with the time that a process takes to begin. Processes beyond the
cores share them. On a busy machine cells take another time at every moment; so each run is also
simulated with the times that its own cells took, which checks the schedule alone.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gnn_vpa.experiments import expand, grouped, paces_of_run, run_grid
from gnn_vpa.experiments.places import Places
from gnn_vpa.experiments.schedule import expect, makespan
from gnn_vpa.experiments.store import query
from gnn_vpa.experiments.workers import Order, run_alone
from gnn_vpa.host import Host
from gnn_vpa.training import Protocol

from ._record import Record

PROCESSES = (1, 2, 4)
COLUMNS = {
    "processes": "{}",
    "cores": "{}",
    "start": "{:.1f} s",
    "predicted": "{:.1f} s",
    "simulated": "{:.1f} s",
    "measured": "{:.1f} s",
    "load": "{:.1f}",
}


def report(counts: Sequence[int], epochs: int, record: Record) -> None:
    """Run the grid with one process, predict, and run it with each number of processes."""
    cells = expand(
        ["MUTAG"], ["gin", "gcn", "sgc"], protocol=Protocol(epochs=epochs), folds=10, seeds=(0, 1)
    ).cells
    cores = Host.here().cores
    table = record.table("scale", f"{len(cells)} cells of {epochs} epochs", COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        run_grid(cells, Path(folder, "paces"), device="cpu", workers=1)  # warms up, and is timed
        planned = expect(grouped(cells, "cpu"), paces_of_run(Path(folder, "paces"), "cpu"))
        for count in counts:
            start, load, out = _start(Path(folder)), os.getloadavg()[0], Path(folder, str(count))
            begin = time.perf_counter()
            run_grid(cells, out, device="cpu", workers=count)
            measured = time.perf_counter() - begin
            places = Places("processes", count, slower=max(1.0, count / cores), start=start)
            predicted = places.outlook(planned, count).seconds
            simulated = makespan(_seconds(out), count, start, first=0.0)
            table.row(count, cores, start, predicted, simulated, measured, load)


def _start(folder: Path) -> float:
    """Return the seconds of a process that finds nothing to do."""
    begin = time.perf_counter()
    run_alone(Order([], folder, None, "cpu"))
    return time.perf_counter() - begin


def _seconds(out: Path) -> list[float]:
    """Return the seconds that each cell of a run took."""
    rows = query(out, "SELECT sum(seconds) AS seconds FROM folds GROUP BY cell")
    return [row["seconds"] for row in rows]
