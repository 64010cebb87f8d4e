"""The time left, asked for again and again."""

import time
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.experiments import Cell, Forecast, Pace, epoch_work, estimate, expand, run_grid
from gnn_vpa.experiments.estimate import Paces
from gnn_vpa.training import Protocol, Task

# By its whole name: the room's name for it is that of its function.
estimating = import_module("gnn_vpa.experiments.estimate")
CELLS = st.builds(
    Cell,
    st.sampled_from(["MUTAG", "PTC", "NCI1", "mine"]),
    st.sampled_from([Task("gin", "vpa"), Task("gcn", "sum"), Task("sgc", "vpa")]),
    st.sampled_from([Protocol(epochs=3), Protocol(epochs=50), None]),
    st.integers(2, 10),
    st.integers(0, 5),
)
SEEN = st.lists(
    st.builds(
        Pace,
        st.sampled_from(["MUTAG", "PTC", "mine"]),
        st.sampled_from(["gin", "gcn"]),
        st.floats(0.001, 10.0),
        st.just(epoch_work(Cell("MUTAG", Task("gin", "vpa")))),
    ),
    min_size=1,
    unique_by=lambda pace: (pace.dataset, pace.model),
)


@given(st.lists(CELLS, min_size=1, max_size=20), st.integers(0, 20), SEEN)
def test_what_is_summed_up_is_what_all_cells_add_up_to(
    cells: list[Cell], done: int, paces: list[Pace]
) -> None:
    now = 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now)
        patch.setattr(Paces, "seen", lambda _: paces)
        forecast = Forecast("runs/none", "cpu")
        forecast.plan(cells)
        behind = estimate(cells[:done], paces).seconds
        now = behind  # one process, and nothing but trainings
        for cell in cells[:done]:
            forecast.finish(cell)
        left = forecast.left()
    expected = estimate(cells[done:], paces)
    if expected.seconds == 0:
        assert left is None
    else:
        assert left is not None
        assert left.seconds == pytest.approx(expected.seconds)
        assert left.factor == expected.factor


def test_of_many_small_cells_the_time_around_trainings_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(Paces, "seen", lambda _: [Pace("MUTAG", "gin", 0.1, 3445.0)])
    cells = [Cell("MUTAG", Task("gin", "vpa"), Protocol(epochs=1), 10, seed) for seed in range(100)]
    forecast = Forecast(tmp_path, "cpu")
    forecast.plan(cells)
    for cell in cells[:50]:
        now += 3.0  # of which the training takes one
        forecast.finish(cell)
    left = forecast.left()
    assert left is not None
    assert left.seconds == pytest.approx(150.0)
    assert forecast.a_minute() == pytest.approx(20.0)


def test_a_pace_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = expand(["MUTAG"], ["sgc"], protocol=Protocol(epochs=1), folds=2, seeds=range(3)).cells
    read, query = [], estimating.query
    monkeypatch.setattr(
        estimating, "query", lambda *asked: (rows := query(*asked), read.extend(rows))[0]
    )
    paces = Paces(tmp_path, "cpu")
    assert paces.seen() == []
    for number, cell in enumerate(cells, 1):
        run_grid([cell], tmp_path, device="cpu")
        (pace,) = paces.seen()
        assert (pace.dataset, pace.model) == ("MUTAG", "sgc")
        assert len(read) == number
    assert [pace.seconds for pace in paces.seen()] == [sorted(row["pace"] for row in read)[2]]
