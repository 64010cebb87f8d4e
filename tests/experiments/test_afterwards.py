"""Signals and ceilings: the same rows, whether recorded piece by piece or at the end."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import Cell, Progress, Result, Signal, Store, afterwards, expand, identify
from gnn_vpa.experiments.afterwards import Afterwards
from gnn_vpa.experiments.store import query_tuples
from gnn_vpa.graphs import Ceiling, GraphSet
from gnn_vpa.training import Outcome, Protocol, Task

from .conftest import FakeFit


class Run:
    """A run in which cells are finished by hand, and what was computed for it."""

    def __init__(self, folder: Path, cells: Sequence[Cell]) -> None:
        found = identify(cells)
        self.cells, self.data = found.cells, found.data
        self.store = Store(folder)
        for content, graphs in self.data.items():
            self.store.register(found.names[content], graphs)
        self.session = self.store.begin("cpu", {})
        self.notes: list[str] = []

    def afterwards(self) -> Afterwards:
        notes = self.notes

        class Noting(Progress):
            def note(self, text: str) -> None:
                notes.append(text)

        return Afterwards(self.store, self.cells, self.data, Noting())

    def finish(self, *cells: Cell) -> None:
        score = np.ones(2, np.float32)
        results = [Result(cell, [Outcome.of(0, 0, score, score, score)]) for cell in cells]
        self.store.record(results, session=self.session, seconds=1.0, device="cpu")

    def rows(self) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
        """Return the signals and the ceilings that are recorded, in whatever order they came."""
        columns = ", ".join(Signal._fields)
        return (
            query_tuples(
                self.store.path.parent,
                f"SELECT key, place, {columns} FROM signals JOIN cells ON id = cell ORDER BY 1, 2",
            ),
            query_tuples(self.store.path.parent, "SELECT * FROM ceilings ORDER BY 1, 2"),
        )


class Computed:
    """What was computed, how often; some of it fails."""

    def __init__(self) -> None:
        self.signals: Counter[tuple[str, str]] = Counter()
        self.ceilings: Counter[tuple[str, str]] = Counter()
        self.failing: set[str] = set()  # aggregations, or features

    def signal(self, graphs: GraphSet, task: Task) -> list[Signal]:
        self.signals[graphs.name, task.aggr] += 1
        self._fail(task.aggr)
        return [Signal("convs.0", float(len(graphs.name)), float(len(task.aggr)), 0.5)]

    def ceiling(self, graphs: GraphSet, kind: str, rounds: int) -> list[Ceiling]:
        self.ceilings[graphs.name, kind] += 1
        self._fail(kind)
        return [Ceiling(rounds, 1, 30, graphs.num_graphs)]

    def _fail(self, what: str) -> None:
        if what in self.failing:
            raise GnnVpaError(f"no {what} today")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch, fake_fit: FakeFit) -> Computed:
    computed = Computed()
    monkeypatch.setattr(afterwards, "initial_signals", computed.signal)
    monkeypatch.setattr(afterwards, "ceiling", computed.ceiling)
    return computed


def _cells(seeds: int = 2) -> list[Cell]:
    protocol = Protocol(epochs=2)
    return expand(
        ["MUTAG", "NCI1"], ["gin"], ["sum", "vpa"], protocol=protocol, folds=2, seeds=range(seeds)
    ).cells


def _advance(extra: Afterwards) -> int:
    """Do all that can be done now, and return how many pieces that was."""
    pieces = 0
    while extra.advance():
        pieces += 1
    return pieces


def test_pieces_leave_the_rows_that_the_end_alone_would(computed: Computed, tmp_path: Path) -> None:
    late = Run(tmp_path / "late", _cells())
    extra = late.afterwards()
    late.finish(*late.cells)
    extra.complete()
    run = Run(tmp_path / "pieces", _cells())
    extra = run.afterwards()
    for cell in reversed(run.cells):
        run.finish(cell)
        _advance(extra)
    assert run.rows() == late.rows()
    signals, ceilings = run.rows()
    assert (len(signals), len(ceilings)) == (8, 2)
    extra.complete()
    assert run.rows() == late.rows()


def test_nothing_is_computed_twice(computed: Computed, tmp_path: Path) -> None:
    run = Run(tmp_path, _cells(seeds=3))
    extra = run.afterwards()
    for cell in run.cells:
        run.finish(cell)
        extra.advance()
    extra.complete()
    run.afterwards().complete()  # nor by the next run
    _advance(run.afterwards())
    assert set(computed.signals.values()) == set(computed.ceilings.values()) == {1}
    assert (len(computed.signals), len(computed.ceilings)) == (4, 2)


def test_all_is_computed_meanwhile_and_signals_are_recorded_when_cells_are_finished(
    computed: Computed, tmp_path: Path
) -> None:
    run = Run(tmp_path, _cells())
    extra = run.afterwards()
    assert _advance(extra) == 6
    assert (len(computed.ceilings), len(computed.signals)) == (2, 4)
    first, second, *rest = sorted(run.cells, key=lambda cell: (cell.dataset, cell.task.aggr))
    run.finish(first)
    assert (_advance(extra), run.rows()[0]) == (0, [])  # the method's other cell is not finished
    run.finish(second)
    assert (_advance(extra), len(run.rows()[0])) == (1, 2)
    run.finish(rest[0])
    extra.complete()  # what will never be finished is not waited for
    assert len(run.rows()[0]) == 3


def test_what_another_process_has_recorded_is_not_computed(
    computed: Computed, tmp_path: Path
) -> None:
    run = Run(tmp_path, _cells())
    mine, other = run.afterwards(), run.afterwards()
    run.finish(*run.cells)
    other.complete()
    once = computed.signals.copy(), computed.ceilings.copy()
    _advance(mine)
    mine.complete()
    assert (computed.signals, computed.ceilings) == once


@pytest.mark.parametrize("what", ["vpa", "auto"], ids=["a signal", "a ceiling"])
def test_what_fails_does_not_end_a_run_at_work_and_is_raised_at_its_end(
    computed: Computed, tmp_path: Path, what: str
) -> None:
    run = Run(tmp_path, _cells())
    extra = run.afterwards()
    computed.failing = {what}
    run.finish(*run.cells)
    _advance(extra)
    assert not extra.advance()
    with pytest.raises(GnnVpaError, match=f"no {what} today"):
        extra.complete()
    computed.failing = set()
    run.afterwards().complete()  # the next run has what this one lacks
    signals, ceilings = run.rows()
    assert (len(signals), len(ceilings)) == (8, 2)


def test_of_ones_own_model_it_is_said_once_and_the_rest_goes_on(
    computed: Computed, tmp_path: Path
) -> None:
    run = Run(tmp_path, _cells())
    run.cells = [
        replace(cell, task=replace(cell.task, model="mine:make", source="x"))
        if cell.task.aggr == "sum"
        else cell
        for cell in run.cells
    ]
    computed.failing = {"sum"}
    extra = run.afterwards()
    run.finish(*run.cells)
    _advance(extra)
    extra.complete()
    assert run.notes == ["mine:make: its signal at the start is not recorded: no sum today"]
    assert computed.signals["MUTAG", "sum"] == computed.signals["NCI1", "sum"] == 1
    assert len(run.rows()[0]) == 4
