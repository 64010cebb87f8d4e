"""Filled batches: every graph's rows and edges are where the plan put them."""

from typing import Any

import pytest
import torch
from torch import Tensor

from gnn_vpa.graphs import GraphSet
from gnn_vpa.ops import use_backend
from gnn_vpa.training import Task
from gnn_vpa.training.batch import EMPTY
from gnn_vpa.training.fill import FilledLinks, FilledRows, fill_links, fill_rows
from gnn_vpa.training.level_tables import level_tables, model_for
from gnn_vpa.training.packed import pack, unpack
from gnn_vpa.training.plan import LevelSlots, StepCapacity, demands, plan
from gnn_vpa.training.tables import Links, tables

FAMILIES = [
    [Task("gin", aggr, features="degree") for aggr in ("sum", "mean", "vpa")],
    [Task("gcn", aggr, features="labels") for aggr in ("vpa", "sum")],
    [Task("gin", "max", features="degree")],
    [Task("gat", aggr, features="labels") for aggr in ("default", "vpa")],
]
# Tables and plan have links, or None, by level: which of them is known here, and not to types.
Planned = tuple[Any, Tensor, tuple[StepCapacity, ...], Any]
IDS = torch.tensor([[3, 17, 4, 80, EMPTY], [5, 6, EMPTY, EMPTY, EMPTY], [9, EMPTY, 2, 8, 8]])


def planned(graphs: GraphSet, tasks: list[Task], device: str = "cpu") -> Planned:
    """Plan a batch with more capacity than it needs."""
    model, place = model_for(tasks[0], graphs), torch.device(device)
    known = tables(
        level_tables(
            graphs, tasks, model, place, torch.float64, per_graph=True, max_dense_columns=64
        )
    )
    ids = IDS.unsqueeze(0).to(device)
    rooms = tuple(demand.capacity(slice(None)) for demand in demands(known, ids))
    rooms = tuple(r._replace(edges=r.edges + 700, blocks=r.blocks + 9) for r in rooms)
    kind = torch.tensor([0, len(tasks) - 1, 0], device=device)
    packed = pack(plan(known, kind, ids, rooms), torch.float64)
    return known, kind, rooms, unpack(packed.layout, packed.step(0))


def filled(
    known: Any, kind: Tensor, rooms: tuple[StepCapacity, ...], step: Any
) -> tuple[list[FilledRows], list[FilledLinks]]:
    """Fill all levels: rows, and the links of each."""
    rows = [
        fill_rows(level, slots, room)
        for level, slots, room in zip(known.levels, step.levels, rooms, strict=True)
    ]
    links = []
    for n in range(1, len(rooms)):
        level, slots, room = known.levels[n], step.levels[n], rooms[n]
        ends = step.levels[n - 1 : n + 1], (rows[n - 1], rows[n]), kind
        links.append(fill_links(level.hop, slots.hop, *ends, room.edges))
        if level.parent is not None:
            links.append(fill_links(level.parent, slots.parent, *ends, room.rows))
    return rows, links


@pytest.mark.parametrize("tasks", FAMILIES, ids=lambda tasks: f"{tasks[0].model}-{tasks[0].aggr}")
def test_every_row_and_edge_is_that_of_its_graph(toy: GraphSet, tasks: list[Task]) -> None:
    known, kind, rooms, step = planned(toy, tasks)
    rows, _ = filled(known, kind, rooms, step)
    for n, (level, slots, room, own) in enumerate(
        zip(known.levels, step.levels, rooms, rows, strict=True)
    ):
        held = torch.zeros(room.rows, dtype=torch.bool)
        for slot, graph in enumerate(IDS.flatten().tolist()):
            if graph == EMPTY:
                assert slots.length[slot] == 0
                continue
            begin, count = int(slots.begin[slot]), int(slots.length[slot])
            here = slice(begin, begin + count)
            table = torch.arange(int(level.ptr[graph]), int(level.ptr[graph + 1]))
            assert torch.equal(own.row[here].long(), table)
            assert torch.equal(own.multiplicity[here], level.multiplicity[table])
            assert bool((own.slot[here] == slot).all())
            lane = slot // IDS.shape[1]
            assert bool((slots.lane[begin // room.size : (begin + count - 1) // room.size + 1]
                         == lane).all())  # fmt: skip
            held[here] = True
        assert bool((own.multiplicity[~held] == 0).all())
        assert not held[-1]
        if n > 0:
            below, links = step.levels[n - 1], fill_links(
                level.hop, slots.hop, step.levels[n - 1 : n + 1], (rows[n - 1], rows[n]), kind,
                room.edges,
            )  # fmt: skip
            _check_edges(level.hop, links, below, slots, own, rows[n - 1])


def _check_edges(
    table: Links,
    links: FilledLinks,
    below: LevelSlots,
    slots: LevelSlots,
    own: FilledRows,
    sources: FilledRows,
) -> None:
    """Compare a step's edges, row by row, with those of the tables."""
    nothing = len(table.rowptr) - 1
    shift = below.begin[:-1] - below.first
    for row in range(len(own.row)):
        edges = slice(int(links.rowptr[row]), int(links.rowptr[row + 1]))
        number = int(own.row[row])
        if number == nothing:
            assert edges.start == edges.stop
            continue
        known = slice(int(table.rowptr[number]), int(table.rowptr[number + 1]))
        moved = table.col[known] + shift[own.slot[row]] * table.stride
        assert torch.equal(links.col[edges], moved.int())
    used = int(links.rowptr[-1])
    assert int(links.back_ptr[-1]) == used
    target = torch.repeat_interleave(links.rowptr.diff())
    turned = links.back_edge[:used].long()
    assert torch.equal(turned.sort().values, torch.arange(used))
    assert torch.equal(target[turned], links.back_col[:used].long())
    by_source = torch.repeat_interleave(links.back_ptr.diff())
    assert torch.equal(links.col[:used].long()[turned], by_source)
    assert int(links.back_ptr.numel()) == len(sources.row) * table.stride + 1


@pytest.mark.parametrize("tasks", FAMILIES, ids=lambda tasks: f"{tasks[0].model}-{tasks[0].aggr}")
def test_kernels_fill_the_same(kernel_device: str, toy: GraphSet, tasks: list[Task]) -> None:
    arguments = planned(toy, tasks, kernel_device)
    with use_backend("reference"):
        expected_rows, expected_links = filled(*arguments)
    rows, links = filled(*arguments)
    for got, expected in zip(rows, expected_rows, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
    for link, right in zip(links, expected_links, strict=True):
        used = int(right.rowptr[-1])
        for name, a, b in zip(link._fields, link, right, strict=True):
            if a is None or b is None:
                assert a is b
            elif name in ("rowptr", "back_ptr"):
                assert torch.equal(a, b)
            else:
                assert torch.equal(a[:used], b[:used])
