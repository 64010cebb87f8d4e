"""What a cell costs a run does not grow with the number of cells: operations are counted."""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest

import gnn_vpa
from gnn_vpa.cli import _progress
from gnn_vpa.cli._progress import Lines, Terminal
from gnn_vpa.experiments import _sqlite, expand, run_grid
from gnn_vpa.training import Protocol

from .conftest import FakeFit

FEW, MANY = 20, 80
PACKAGE = str(Path(gnn_vpa.__file__).parent)


class Operations(NamedTuple):
    calls: float  # of the package's functions and generators, for each cell
    steps: float  # of SQLite's virtual machine, in hundreds, for each cell


@contextmanager
def counted(counts: list[int], patch: pytest.MonkeyPatch) -> Iterator[None]:
    connect = _sqlite.connect

    def step() -> None:
        counts[1] += 1

    def connect_counted(path: Path, *, create: bool) -> sqlite3.Connection:
        connection = connect(path, create=create)
        connection.set_progress_handler(step, 100)
        return connection

    def call(frame: FrameType, event: str, _: object) -> None:
        counts[0] += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    with patch.context() as patched:
        patched.setattr(_sqlite, "connect", connect_counted)
        sys.setprofile(call)
        try:
            yield
        finally:
            sys.setprofile(None)


@pytest.fixture
def operations(
    fake_fit: FakeFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int, type[Lines]], Operations]:
    """Run so many cells with trainings that cost nothing, and count what that takes."""

    def run(count: int, shown: type[Lines]) -> Operations:
        protocol, out = Protocol(epochs=2), tmp_path / str(count)
        seeds = range(count // 4)
        cells = expand(["MUTAG"], protocol=protocol, folds=2, seeds=seeds).cells
        counts = [0, 0]
        with shown(out, "cpu") as progress, counted(counts, monkeypatch):
            run_grid(cells, out, device="cpu", progress=progress)
        assert len(fake_fit.calls) == count
        fake_fit.calls.clear()
        return Operations(*(number / count for number in counts))

    return run


@pytest.mark.parametrize("shown", [Lines, Terminal])
@pytest.mark.parametrize("each", [10, 10**6], ids=["many cells to a line", "a line for each cell"])
@pytest.mark.sampled(2)
def test_four_times_the_cells_cost_four_times_the_operations(
    operations: Callable[[int, type[Lines]], Operations],
    monkeypatch: pytest.MonkeyPatch,
    each: int,
    shown: type[Lines],
) -> None:
    monkeypatch.setattr(_progress, "_EACH", each, raising=False)
    few, many = operations(FEW, shown), operations(MANY, shown)
    assert many.calls < 1.1 * few.calls
    assert many.steps < 1.5 * few.steps + 10  # a search tree of more rows is deeper
