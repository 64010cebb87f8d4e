"""The time left, asked for again and again."""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.experiments import (
    Cell,
    Forecast,
    Group,
    Pace,
    epoch_work,
    estimate,
    expand,
    grouped,
    preset,
    run_grid,
)
from gnn_vpa.experiments.estimate import Paces, kind_of, work_of
from gnn_vpa.experiments.journal import Journal
from gnn_vpa.experiments.journal_files import Entry
from gnn_vpa.experiments.mps import gain
from gnn_vpa.experiments.schedule import Planned, expect, longest_first, short_first
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
    read, query = [], estimating.query_if_any
    monkeypatch.setattr(
        estimating, "query_if_any", lambda *asked: (rows := query(*asked), read.extend(rows))[0]
    )
    paces = Paces(tmp_path, "cpu")
    assert paces.seen() == []
    for number, cell in enumerate(cells, 1):
        run_grid([cell], tmp_path, device="cpu")
        (pace,) = paces.seen()
        assert (pace.dataset, pace.model) == ("MUTAG", "sgc")
        assert len(read) == number
    assert [pace.seconds for pace in paces.seen()] == [sorted(row["pace"] for row in read)[2]]


class _Trained(NamedTuple):
    """A group of a run, when it was begun, when its first epoch was, and when it was finished."""

    group: Group
    begun: float
    first: float
    finished: float

    def entry(self, now: float, device: str) -> Entry:
        """Return what the journal of its process says."""
        assert self.group.protocol is not None
        epochs = self.group.protocol.epochs
        done = (now - self.first) / (self.finished - self.first)
        at = {
            "device": device,
            "cells": [cell.key for cell in self.group.cells],
            "since": self.begun,
            "first": 0,
            "epoch": int(epochs * min(max(done, 0.0), 1.0)),
            "epochs": epochs,
        }
        return Entry("host", 1, True, now, [at])


class _Told(NamedTuple):
    """What is told; a quarter of a minute does not matter."""

    true: float
    seconds: float
    factor: float

    @property
    def off(self) -> float:
        """By what factor it is wrong."""
        return max((self.seconds + 15) / (self.true + 15), (self.true + 15) / (self.seconds + 15))

    @property
    def is_inside(self) -> bool:
        return self.seconds / self.factor - 15 <= self.true <= self.seconds * self.factor + 15


def _replayed(
    run: Sequence[_Trained], device: str, monkeypatch: pytest.MonkeyPatch, speed: float | None
) -> list[_Told]:
    """Return what is told at first, and after each group."""
    now, seen = 0.0, dict[tuple[str, str, str], Pace]()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(Paces, "seen", lambda _: list(seen.values()))
    monkeypatch.setattr(
        import_module("gnn_vpa.experiments.forecast"),
        "journals",
        lambda _: [each.entry(now, device) for each in run if each.begun <= now < each.finished],
        raising=False,
    )
    forecast = Forecast("runs/none", device, *([] if speed is None else [speed]))
    forecast.plan([cell for each in run for cell in each.group.cells])
    end, told = max(each.finished for each in run), []
    for group, begun, _, now in [(None, 0.0, 0.0, 0.0), *sorted(run, key=lambda e: e.finished)]:
        if group is not None:
            cell, several = group.cells[0], len(group.cells)
            seconds = (now - begun) / work_of(cell) / several
            size = epoch_work(cell, gpu=device != "cpu")
            kind = kind_of(cell)
            seen[kind] = Pace(*kind[:2], seconds, size, device != "cpu", kind[2])
            for cell in group.cells:
                forecast.finish(cell)
        if (left := forecast.left()) is not None:
            told.append(_Told(end - now, left.seconds, left.factor))
    return told


def _trained(
    planned: Sequence[Planned], ways: Iterable[Sequence[int]], slower: float, host: float
) -> list[_Trained]:
    """Let processes take groups, each in its way; the host compiles before the first epoch.

    Groups take up to twice as long as is expected, or half as long.
    """
    drawn = random.Random(0)
    seconds = [each.seconds * slower * 2 ** drawn.uniform(-1, 1) for each in planned]
    orders, found = list(ways), dict[int, _Trained]()
    free = [5.0] * len(orders)
    while len(found) < len(planned):
        slot = free.index(min(free))
        number = next(n for n in orders[slot] if n not in found)
        begun = free[slot]
        free[slot] = begun + host + seconds[number]
        found[number] = _Trained(planned[number].group, begun, begun + host, free[slot])
    return list(found.values())


def _paper() -> list[Planned]:
    cells = [replace(cell, content=cell.dataset) for cell in preset("paper")]
    return longest_first(expect(grouped(cells, "cuda")))


def _shared(slower: float = 1.0, gpus: int = 1) -> list[_Trained]:
    """Six processes on each GPU, one of which takes short groups first."""
    planned = _paper()
    up = short_first([each.seconds for each in planned])
    ways = ([range(len(planned))] * 5 + [up]) * gpus
    return _trained(planned, ways, slower * 6 / gain(6), host=4.0)


def _alone(order: Callable[[int], Iterable[int]], slower: float = 1.0) -> list[_Trained]:
    planned = _paper()
    return _trained(planned, [list(order(len(planned)))], slower, host=2.0)


@pytest.mark.parametrize(
    ("run", "speed"),
    [
        pytest.param(_shared, None, id="six processes on an H200"),
        pytest.param(lambda: _shared(3.0), None, id="on a slower GPU"),
        pytest.param(lambda: _shared(gpus=4), 4 * gain(6), id="on each of four"),
        pytest.param(lambda: _alone(range), None, id="one process"),
        pytest.param(lambda: _alone(lambda n: reversed(range(n))), None, id="small ones first"),
    ],
)
def test_on_gpus_the_time_left_is_honest_from_the_first_line_on(
    run: Callable[[], list[_Trained]], speed: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _replayed(run(), "cuda", monkeypatch, speed)
    assert max(each.off for each in told) < 3
    assert sum(each.off > 2 for each in told) <= 5
    assert all(each.is_inside for each in told)
    assert len(told) == 98  # of as many groups all but the last, and before the first


def test_on_cores_cells_in_training_count(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = expand(["PTC"], ["gin"], ["vpa"], seeds=range(40)).cells
    planned = [Planned(Group((replace(cell, content="c"),)), 60.0) for cell in cells]
    run = _trained(planned, [range(40)] * 4, slower=1.0, host=0.0)
    told = _replayed(run, "cpu", monkeypatch, None)
    assert len(told) == 39  # all but the last; at first nothing is known
    assert max(each.off for each in told) < 2
    assert sum(each.is_inside for each in told) >= 35


def test_what_other_processes_have_trained_is_read_from_their_journals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    (group,) = grouped([replace(c, content="c") for c in expand(["NCI1"], ["gat"]).cells], "cuda")
    forecast = Forecast(tmp_path, "cuda")
    forecast.plan(group.cells)
    whole = forecast.left()
    with Journal(tmp_path, "cuda") as journal:
        journal.tell("another host", group, 150)
        journal.write()
        now += 1e-9
        assert forecast.left() == whole  # as seldom as they are written
        now += 1.0
        rest = forecast.left()
    assert whole is not None
    assert rest is not None
    assert rest.seconds == pytest.approx(whole.seconds / 4)


def test_the_end_is_not_before_that_of_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = _paper()[:5]
    run = [_Trained(planned[0].group, 0.0, 5.0, 1000.0)]
    run += [_Trained(each.group, 0.0, 5.0, 200.0 + n) for n, each in enumerate(planned[1:])]
    told = _replayed(run, "cuda", monkeypatch, None)
    assert told[-1].true == 797.0
    assert told[-1].is_inside
