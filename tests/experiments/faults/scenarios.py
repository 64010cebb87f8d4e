"""What store, checkpoint, files and a whole run leave behind on a disk that fails.

`python scenarios.py FOLDER`, with `shim.c` preloaded; prints each scenario's number of faults.
"""

import gc
import logging
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from disk import End, Fault, at_every_moment  # type: ignore[import-not-found]
from torch_geometric.data import Data

from gnn_vpa.experiments import (
    Cell,
    Result,
    Store,
    afterwards,
    finished,
    identity,
    run_grid,
    train_group,
)
from gnn_vpa.experiments import store as store_module
from gnn_vpa.experiments.store import query
from gnn_vpa.files import write_whole
from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.training import Lane, Outcome, Protocol, Task
from gnn_vpa.training.checkpoint import Checkpoint
from gnn_vpa.training.workers import Report

PROTOCOL = Protocol(epochs=3)
LINE = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
TOY = GraphSet.from_pyg([Data(edge_index=LINE, num_nodes=3, y=i % 2) for i in range(20)], "toy")
FIRST = Cell("toy", Task("gin", "vpa"), PROTOCOL, folds=2, content=TOY.checksum())
SECOND = replace(FIRST, seed=1)
LANES = [Lane(fold, split) for fold, split in enumerate(splits(TOY.y, 2))]


def outcome(lane: Lane) -> Outcome:
    loss = np.linspace(1.0, 0.5, PROTOCOL.epochs, dtype=np.float32) + lane.fold + lane.seed
    return Outcome.of(lane.fold, lane.seed, loss, loss / 4, loss / 8)


def record(folder: Path, cell: Cell) -> None:
    with Store(folder) as store:
        store.register("toy", TOY)
        session = store.begin("cpu", {})
        outcomes = [outcome(lane._replace(seed=cell.seed)) for lane in LANES]
        store.record([Result(cell, outcomes)], session=session, seconds=1.0, device="cpu")
        store.end(session)


def rows(folder: Path, cell: Cell) -> list[dict[str, object]]:
    """All that a cell's results are, but for when they were made."""
    found = query(
        folder,
        f"SELECT * FROM folds JOIN cells ON id = cell WHERE key = '{cell.key}' ORDER BY fold",
    )
    circumstances = {"id", "cell", "session", "seconds"}
    return [{name: row[name] for name in row.keys() - circumstances} for row in found]


def start(folder: Path) -> int:
    """A store that is made, or not; the next one completes it."""

    def operate(path: Path) -> None:
        Store(path).__exit__(None, None, None)

    def check(path: Path, end: End) -> None:
        assert finished(path) == set()  # also before anybody has written again
        record(path, FIRST)
        assert finished(path) == {FIRST.key}
        assert len(rows(path, FIRST)) == 2

    return at_every_moment(folder, lambda path: None, operate, check)


def recording(folder: Path) -> int:
    """A cell that is recorded whole or not at all, beside one that was there before."""
    before, after = folder / "before", folder / "after"
    record(before, FIRST)
    shutil.copytree(before, after)
    record(after, SECOND)
    first, second = rows(before, FIRST), rows(after, SECOND)
    assert len(first) == len(second) == 2

    def operate(path: Path) -> None:
        record(path, SECOND)

    def check(path: Path, end: End) -> None:
        found = finished(path)
        assert {FIRST.key} <= found
        assert rows(path, FIRST) == first
        assert rows(path, SECOND) == (second if SECOND.key in found else [])
        if end is End.PASSED:
            assert SECOND.key in found
        if SECOND.key not in found:
            record(path, SECOND)
        assert rows(path, SECOND) == second

    return at_every_moment(folder, partial(shutil.copytree, before), operate, check)


class Warnings(logging.Handler):
    """Counts warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1


def checkpoint(folder: Path) -> int:
    """A checkpoint with a new state, or with the one before: never none, never a damaged one."""
    warnings = Warnings()
    logging.getLogger("gnn_vpa").addHandler(warnings)

    def opened(path: Path) -> Checkpoint:
        return Checkpoint(path / "state.pt", TOY, [FIRST.task], [PROTOCOL], LANES, ())

    def keep(path: Path, epoch: int) -> None:
        weights = torch.full((10_000,), float(epoch))  # more than what a file buffers
        opened(path).keep(Report(range(2), epoch, {"epoch": epoch, "weights": weights}))

    def operate(path: Path) -> None:
        keep(path, 2)
        if warnings.count:
            raise OSError(0, "it was said", "state.pt")

    def check(path: Path, end: End) -> None:
        state: Any = opened(path).job(0, [None, None]).state  # type: ignore[list-item]
        assert state is not None
        assert warnings.count == 0
        assert state["epoch"] in ((2,) if end in (End.PASSED, End.UNHARMED) else (1, 2))
        assert (state["weights"] == state["epoch"]).all()
        keep(path, 3)
        assert opened(path).job(0, [None, None]).state["epoch"] == 3  # type: ignore[list-item]

    return at_every_moment(folder, partial(keep, epoch=1), operate, check)


def exported(folder: Path) -> int:
    """A file with its old content or its new one, and no other beside it unless by a kill."""
    old, new = b"old" * 10_000, b"new" * 20_000

    def operate(path: Path) -> None:
        write_whole(path / "report.html", new)

    def check(path: Path, end: End) -> None:
        content = (path / "report.html").read_bytes()
        assert content in ((new,) if end in (End.PASSED, End.UNHARMED) else (old, new))
        if end is End.EXPLAINED and content == new:
            raise AssertionError("it is there, and was said not to be")

    return at_every_moment(
        folder, lambda path: write_whole(path / "report.html", old), operate, check
    )


def run(folder: Path) -> int:
    """A run that loses nothing it has finished, and gives the same rows in the end."""

    def fit(
        graphs: GraphSet, tasks: Any, protocol: Any, lanes: Sequence[Lane], **_: Any
    ) -> list[Outcome]:
        return [outcome(lane) for _ in tasks for lane in lanes]

    train_group.fit = fit  # type: ignore[assignment, attr-defined]
    identity.load = lambda *_: TOY  # type: ignore[attr-defined]
    afterwards.initial_signals = lambda *_, **__: []  # type: ignore[attr-defined]
    before, whole = folder / "before", folder / "whole"
    run_grid([FIRST], before, device="cpu", workers=1)
    shutil.copytree(before, whole)

    def operate(path: Path) -> None:
        run_grid([FIRST, SECOND], path, device="cpu", workers=1)

    operate(whole)
    expected = {cell: rows(whole, cell) for cell in (FIRST, SECOND)}

    def check(path: Path, end: End) -> None:
        recorded = query(path, "SELECT key, session FROM cells")
        assert FIRST.key in {row["key"] for row in recorded}
        operate(path)
        now = query(path, "SELECT key, session FROM cells")
        assert all(row in now for row in recorded)  # what was finished was not run again
        assert {cell: rows(path, cell) for cell in (FIRST, SECOND)} == expected
        # A journal that could not be removed is SQLite's to deal with, and no longer in force.
        left = {each.name for each in path.iterdir()} - {"results.sqlite-journal"}
        assert left == {"results.sqlite"}

    # The store meets the other kinds above; here it is their sequence that matters.
    kinds = (Fault.FULL_FROM_THEN_ON, Fault.KILLED_AFTER)
    return at_every_moment(folder, partial(shutil.copytree, before), operate, check, kinds)


if __name__ == "__main__":
    gc.freeze()  # forks copy what a search for garbage writes to
    torch.set_num_threads(1)
    store_module.commit = lambda: None  # type: ignore[attr-defined]  # it would ask git each time
    for scenario in (start, recording, checkpoint, exported, run):
        folder = Path(sys.argv[1], scenario.__name__)
        folder.mkdir()
        print(scenario.__name__, scenario(folder), flush=True)
