"""What is expected of trainings that nothing was seen of."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.experiments import Cell, Store, estimate, expand, identify, preset
from gnn_vpa.experiments.estimate import kind_of, paces_of_run, work_of
from gnn_vpa.experiments.typical import (
    Counts,
    completed,
    known_paces,
    slower,
    typical_of_run,
    typical_paces,
)
from gnn_vpa.graphs import load
from gnn_vpa.training import Protocol, Task

PAPER = preset("paper")
TYPICAL = typical_paces(PAPER, {})


def test_small_data_sets_that_were_seen_do_not_make_large_ones_long() -> None:
    """The host compiles for ten seconds, whatever there is to train."""
    small = [pace for pace in TYPICAL if pace.dataset in ("MUTAG", "PTC")]
    seen = [replace(pace, seconds=pace.seconds + 10 / 2000, factor=1.5) for pace in small]
    large = [cell for cell in PAPER if cell.dataset == "RDT-M5K"]
    usual, now = (estimate(large, paces).seconds for paces in (TYPICAL, completed(seen, TYPICAL)))
    assert now < 20 * usual
    assert estimate(large, seen).seconds > 60 * usual  # by their size alone


@given(st.floats(0.2, 50.0))
def test_where_large_ones_were_seen_all_are_as_much_slower(times: float) -> None:
    large = [pace for pace in TYPICAL if pace.dataset.startswith("RDT")]
    seen = [replace(pace, seconds=pace.seconds * times, factor=1.5) for pace in large]
    assert slower(seen, TYPICAL) == pytest.approx(times, rel=0.1)
    paces = completed(seen, TYPICAL)
    assert paces[: len(seen)] == seen
    assert {pace.kind for pace in paces} == {pace.kind for pace in TYPICAL}


def test_what_is_typical_is_trusted_less_than_what_was_seen() -> None:
    cells = expand(["NCI1"], ["gin"], ["vpa"]).cells
    (typical,) = typical_paces(cells, {})
    assert estimate(cells, [typical]).factor == 3.0
    seen = replace(typical, factor=1.5)
    assert estimate(cells, completed([seen], [typical])).factor == 1.5


def test_a_kinds_host_time_is_shared_by_its_seeds() -> None:
    one, many = (
        expand(["MUTAG"], ["gin"], ["vpa"], seeds=range(count)).cells for count in (1, 100)
    )
    first, all_ = (estimate(cells, typical_paces(cells, {})).seconds for cells in (one, many))
    assert first > 1.0
    assert all_ < 20 * first


def test_of_ones_own_data_a_run_knows_the_size(tmp_path: Path) -> None:
    kind = kind_of(Cell("mine", Task("gin", "vpa")))
    assert typical_of_run(tmp_path, {kind: 2000}, "cuda") == []
    mutag = load("MUTAG")
    with Store(tmp_path) as store:
        store.register("mine", replace(mutag, y=mutag.y.flip(0)))
    (pace,) = typical_of_run(tmp_path, {kind: 2000}, "cuda")
    assert pace.work == 3371 + 74.42
    cell = Cell("mine", Task("gin", "vpa"), content="c0ffee")
    assert typical_paces([cell], {"c0ffee": Counts(3371, 7442)}) == [pace]


def test_on_the_cpu_nothing_is_typical(tmp_path: Path) -> None:
    cells = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=1)).cells
    assert typical_of_run(tmp_path, {kind_of(cells[0]): work_of(cells[0])}, "cpu") == []
    assert known_paces(tmp_path, cells, "cpu", {}) == paces_of_run(tmp_path, "cpu") == []
    assert len(known_paces(tmp_path, identify(cells).cells, "cuda", {})) == 1
