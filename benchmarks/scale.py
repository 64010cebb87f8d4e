"""What more processes gain, predicted and measured: a small grid on the CPU.

The times of a grid's cells in one process predict what several take: `experiments.places` simulates
the schedule, as `--plan` does, with the time that a process takes to begin. Processes beyond the
cores share them.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gnn_vpa.experiments import expand, grouped, paces_of_run, run_grid
from gnn_vpa.experiments.places import Places
from gnn_vpa.experiments.schedule import expect
from gnn_vpa.experiments.workers import Order, run_alone
from gnn_vpa.host import Host
from gnn_vpa.training import Protocol

from ._record import Record

PROCESSES = (1, 2, 4)
COLUMNS = {
    "processes": "{}",
    "start of a process": "{:.1f} s",
    "predicted": "{:.1f} s",
    "measured": "{:.1f} s",
    "measured / predicted": "{:.2f}",
    "load before": "{:.1f}",
}


def report(counts: Sequence[int], epochs: int, record: Record) -> None:
    """Run the grid with one process, predict, and run it with each number of processes."""
    cells = expand(
        ["MUTAG"], ["gin", "gcn", "sgc"], protocol=Protocol(epochs=epochs), folds=10, seeds=(0, 1)
    ).cells
    cores = Host.here().cores
    table = record.table("scale", f"{len(cells)} cells of {epochs} epochs, {cores} cores", COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        run_grid(cells, Path(folder, "paces"), device="cpu", workers=1)  # warms up, and is timed
        paces = paces_of_run(Path(folder, "paces"), "cpu")
        for count in counts:
            begin = time.perf_counter()
            run_alone(Order([], Path(folder), None, "cpu"))  # a process that finds nothing to do
            start = time.perf_counter() - begin
            load, begin = os.getloadavg()[0], time.perf_counter()
            run_grid(cells, Path(folder, str(count)), device="cpu", workers=count)
            measured = time.perf_counter() - begin
            places = Places("processes", count, slower=max(1.0, count / cores), start=start)
            ahead = places.outlook(expect(grouped(cells, "cpu"), paces, gpu=False), count)
            table.row(count, start, ahead.seconds, measured, measured / ahead.seconds, load)
