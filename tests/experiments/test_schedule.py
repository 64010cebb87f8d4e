"""Longest first: never far from the best schedule, and groups are divided where that helps."""

from dataclasses import replace
from itertools import product
from math import inf, isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnn_vpa.experiments import Cell, Group, Pace, expand, grouped, preset
from gnn_vpa.experiments.memory import DataSize
from gnn_vpa.experiments.schedule import (
    Planned,
    divided,
    doublings,
    expect,
    longest_first,
    makespan,
    outlook,
    part_numbers,
    short_first,
    short_slots,
)
from gnn_vpa.training import Protocol, Task

_TIMES = st.lists(st.floats(0.1, 1000.0) | st.floats(0.1, 9.0), min_size=1, max_size=7)


@given(_TIMES, st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_longest_first_is_within_a_third_of_the_best_schedule(
    seconds: list[float], slots: int
) -> None:
    # Graham (1969): at most 4/3 - 1/(3m) times as long as the best.
    best = min(
        max(
            sum(s for s, slot in zip(seconds, where, strict=True) if slot == k)
            for k in range(slots)
        )
        for where in product(range(slots), repeat=len(seconds))
    )
    length = makespan(seconds, slots)
    assert best <= length * (1 + 1e-9)
    assert length <= best * (4 / 3 - 1 / (3 * slots)) * (1 + 1e-9)


@given(_TIMES, st.integers(1, 9), st.floats(0, 100))
@settings(max_examples=60, deadline=None)
def test_no_schedule_beats_the_work_and_the_longest(
    seconds: list[float], slots: int, start: float
) -> None:
    length = makespan(seconds, slots, start)
    assert length >= start + max(*seconds, sum(seconds) / slots) * (1 - 1e-9)
    assert length <= start + sum(seconds) * (1 + 1e-9)
    assert isclose(makespan(seconds, 1, start, first=0.0), sum(seconds))


@given(_TIMES, st.integers(1, 5), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_slots_for_short_groups_take_what_is_left_like_all_others(
    seconds: list[float], slots: int, short: int
) -> None:
    short = min(short, slots)
    down = [*enumerate(sorted(seconds, reverse=True))]
    up, free = [down[n] for n in short_first([s for _, s in down])], [0.0] * slots
    assert sorted(up) == down
    while down:
        slot = free.index(min(free))
        group = (up if slot >= slots - short else down)[0]
        free[slot] += group[1]
        up.remove(group)
        down.remove(group)
    assert makespan(seconds, slots, short=short) == max(free)


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_the_papers_tables_end_as_evenly_where_one_process_takes_short_groups_first(
    gpus: int,
) -> None:
    seconds = [each.seconds for each in expect(grouped(preset("paper"), "cuda"))]
    slots = 6 * gpus
    assert makespan(seconds, slots, short=short_slots(gpus, 6)) <= 1.04 * makespan(seconds, slots)


def _planned(seeds: int, *aggrs: str) -> list[Planned]:
    protocol = Protocol(epochs=10)
    cells = expand(["NCI1"], ["gin", "gcn"], aggrs, protocol=protocol, seeds=range(seeds)).cells
    known = [replace(cell, content="c0ffee") for cell in cells]
    return expect(grouped(known, "cuda"))


@given(st.integers(1, 12), st.integers(1, 40))
@settings(max_examples=15, deadline=None)
def test_parts_have_every_cell_once_and_are_groups_again(seeds: int, slots: int) -> None:
    planned = _planned(seeds, "sum", "mean", "max", "vpa")
    short = slots // 3
    parts = divided(planned, slots, short)
    cells = [cell for part in parts for cell in part.group.cells]
    assert sorted(map(str, cells)) == sorted(str(c) for p in planned for c in p.group.cells)
    again = grouped(cells, "cuda", part_numbers(parts))
    assert {frozenset(g.cells) for g in again} == {frozenset(p.group.cells) for p in parts}
    for group in again:  # as many runs of each method
        assert len(group.cells) == len(group.methods) * len(group.runs)
    assert makespan([p.seconds for p in parts], slots, short=short) <= makespan(
        [p.seconds for p in planned], slots, short=short
    ) * (1 + 1e-9)


def test_a_group_of_many_seeds_is_divided_by_seeds_and_then_by_methods() -> None:
    (gin, _) = _planned(6, "sum", "vpa")
    assert [len(part.group.cells) for part in divided([gin], 2)] == [6, 6]
    one = divided([gin], 2)[0].group
    assert (len(one.runs), len(one.methods)) == (3, 2)
    finest = divided([gin], 12)
    assert {len(part.group.cells) for part in finest} == {1}


def test_groups_that_fit_stay_whole() -> None:
    planned = expect(grouped(preset("paper"), "cuda"))
    for slots in (1, 2, 3, 4, 6, 8):
        assert divided(planned, slots) == planned
        assert divided(planned, slots, short=1) == planned


def test_what_is_not_known_goes_first_and_is_never_divided() -> None:
    unknown = Planned(Group((Cell("mine", Task("net:make", "", source="x")),)), inf)
    known = _planned(40, "sum", "vpa")
    assert longest_first([*known, unknown])[0] is unknown
    assert unknown in divided([unknown, *known], 8)
    assert outlook([unknown], 4, start=10.0).limit == "nothing that takes time"


def test_what_was_seen_counts_more_than_what_is_typical() -> None:
    cells = [Cell("MUTAG", Task("sgc", "vpa")), Cell("NCI1", Task("gin", "vpa"))]
    groups = [Group((cell,)) for cell in cells]
    assert longest_first(expect(groups))[0].group is groups[1]
    seen = [Pace("MUTAG", "sgc", 9.0, 1.0, gpu=True), Pace("NCI1", "gin", 1.0, 1.0, gpu=True)]
    assert longest_first(expect(groups, seen))[0].group is groups[0]


def test_data_of_ones_own_are_known_by_their_size() -> None:
    small, large = (
        Cell(name, Task("gin", "vpa"), content=name) for name in ("small.zip", "large.zip")
    )
    sizes = {"small.zip": DataSize(100, 400, 1), "large.zip": DataSize(10**6, 4 * 10**6, 1)}
    groups = [Group((small,)), Group((large,))]
    assert str(longest_first(expect(groups, sizes=sizes))[0].group) == "GIN+vpa on large.zip"


@pytest.mark.parametrize(
    ("count", "seconds", "slots", "limit"),
    [
        (40, 100.0, 4, "the work itself"),
        (4, 1.0, 4, "the start of processes"),
        (5, 100.0, 4, "that 5 groups do not divide evenly"),
        (2, 100.0, 4, "the longest group, GIN+sum on NCI1"),
    ],
)
def test_what_limits_a_run_is_said(count: int, seconds: float, slots: int, limit: str) -> None:
    planned = [Planned(Group((Cell("NCI1", Task("gin", "sum")),)), seconds)] * count
    assert outlook(planned, slots, start=10.0).limit == limit


def test_a_division_that_costs_is_named() -> None:
    limit = outlook(_planned(40, "sum", "vpa"), 32).limit
    assert limit == "that 32 smaller groups take 33% more work"


def test_doublings() -> None:
    assert doublings(256) == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert doublings(3) == [1, 2, 3]
