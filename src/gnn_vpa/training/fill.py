"""Build a step's batch from its plan: copy rows and edges of the tables to their slots."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..nn import Hop, LaneRows, LevelBatch, WeightedGraph
from ..ops import Graph, backend
from ..ops.internal import CSR
from .batch import Batch
from .plan import LevelSlots, LinkSlots, Plan, StepCapacity
from .tables import Links, Rows, Tables, padded


class FilledLinks(NamedTuple):
    """The edges of a step: E edges, S sources and T targets."""

    rowptr: Tensor  # [T + 1]
    col: Tensor  # [E]
    weight: Tensor | None  # [E]
    back_ptr: Tensor  # [S + 1]
    back_col: Tensor  # [E]
    back_edge: Tensor  # [E]


class FilledRows(NamedTuple):
    """The rows of a level of a step."""

    row: Tensor  # [R], which of the tables; the one behind the last where there is none
    multiplicity: Tensor  # [R], how many nodes a row stands for
    slot: Tensor  # [R]


def batch_of(
    tables: Tables,
    task_of_lane: Tensor,
    step: Plan,
    capacities: tuple[StepCapacity, ...],
    number: Tensor,
) -> Batch:
    """Return one planned step, without the axis K, as a model takes it.

    Args:
        tables: The data set.
        task_of_lane: The task of each lane.
        step: The plan.
        capacities: The capacity it was planned for.
        number: All numbers from 0 on, as many as a level has rows at least, and one more.
    """
    filled = [
        fill_rows(level, slots, capacity)
        for level, slots, capacity in zip(tables.levels, step.levels, capacities, strict=True)
    ]
    rows = [
        LaneRows(own.multiplicity, slots.lane, slots.block, capacity.most)
        for own, slots, capacity in zip(filled, step.levels, capacities, strict=True)
    ]
    hops = [
        _hop(tables, task_of_lane, step, level, rows, filled, capacities)
        for level in range(1, len(rows))
    ]
    readouts = [
        _readout(tables, level, step, filled[level], capacities[level], number)
        for level in range(tables.first_read, len(rows))
    ]
    return Batch(
        _features(tables, task_of_lane, rows[0], filled[0]),
        LevelBatch(tuple(hops), rows[0], tuple(readouts)),
        _targets(tables, step.y),
        step.real.bool(),
    )


def _targets(tables: Tables, y: Tensor) -> Tensor:
    y = y.view(-1, *tables.y.shape[1:])
    return y if y.is_floating_point() else y.long()


def _features(tables: Tables, task_of_lane: Tensor, rows: LaneRows, filled: FilledRows) -> Tensor:
    copies, count = tables.x.shape[:2]
    row = filled.row
    if copies > 1:
        row = row + (task_of_lane * count)[rows.row_lane]
    x = tables.x.flatten(0, 1).index_select(0, row)
    known = tables.by_level
    if x.is_floating_point() or (known.is_max and not known.is_set):  # there models write codes out
        return x
    return torch.stack([rows.row_lane, x], 1)


def _readout(
    tables: Tables, level: int, step: Plan, filled: FilledRows, capacity: StepCapacity,
    number: Tensor,
) -> Graph | WeightedGraph:  # fmt: skip
    slots, rows = step.levels[level], capacity.rows
    graph = Graph.from_csr(
        CSR(slots.begin, number[:rows], None, tables.levels[level].largest + capacity.size),
        CSR(number[: rows + 1].minimum(slots.begin[-1]), filled.slot, None, 1),
        (rows, len(slots.length)),
        multiplicity=filled.multiplicity,
    )
    is_sum = not tables.by_level.is_max or (tables.by_level.is_set and level == 0)
    return WeightedGraph(graph, scale=step.pool) if is_sum else graph


def _hop(
    tables: Tables, task_of_lane: Tensor, step: Plan, number: int, rows: list[LaneRows],
    filled: list[FilledRows], capacities: tuple[StepCapacity, ...],
) -> Hop:  # fmt: skip
    level, slots, capacity = tables.levels[number], step.levels[number], capacities[number]
    ends = (step.levels[number - 1], slots), (filled[number - 1], filled[number])
    sizes = capacities[number - 1].rows, capacity.rows
    known, here = tables.by_level, rows[number]
    assert level.hop is not None
    assert slots.hop is not None
    attends = known.model.mixes == "attention"
    # Attention wants a row for every edge, but for its fused kernels: the last row, which holds no
    # node, then owns the edges that are none.
    full = attends and backend(here.multiplicity) != "triton"
    graph, weight = _graph(level.hop, slots.hop, *ends, task_of_lane, capacity.edges, sizes, full)
    parent = None
    if level.parent is not None:
        assert slots.parent is not None
        parent, _ = _graph(
            level.parent, slots.parent, *ends, task_of_lane, capacity.rows, sizes, False
        )
    if attends:
        graph.multiplicity = weight
        power = known.exponent[task_of_lane][here.row_lane]
        return Hop(WeightedGraph(graph, power=power, loops=True), parent, here)
    if weight is None:
        return Hop(graph, parent, here)
    return Hop(WeightedGraph(graph, weight, loops=True), parent, here)


def _graph(
    links: Links, slots: LinkSlots, levels: tuple[LevelSlots, LevelSlots],
    filled: tuple[FilledRows, FilledRows], task_of_lane: Tensor, places: int,
    sizes: tuple[int, int], full: bool,
) -> tuple[Graph, Tensor | None]:  # fmt: skip
    edges = fill_links(links, slots, levels, filled, task_of_lane, places)
    longest, back_longest = links.longest, links.back_longest
    if full:
        edges.rowptr[-1:] = edges.back_ptr[-1:] = longest = back_longest = places
    graph = Graph.from_csr(
        CSR(edges.rowptr, edges.col, None, longest),
        CSR(edges.back_ptr, edges.back_col, edges.back_edge, back_longest),
        (sizes[0] * links.stride, sizes[1]),
    )
    return graph, edges.weight


def fill_rows(level: Rows, slots: LevelSlots, capacity: StepCapacity) -> FilledRows:
    """Put the rows of a level into their places."""
    if backend(level.multiplicity) == "triton":
        from . import _fill_kernels

        return FilledRows(*_fill_kernels.rows(slots, level.multiplicity, capacity.rows))
    slot, place = _slots_of_places(slots.begin, capacity.rows)
    there = place < padded(slots.length)[slot]
    row = torch.where(there, padded(slots.first)[slot] + place, len(level.multiplicity) - 1)
    last = len(slots.length) - 1
    return FilledRows(row.int(), level.multiplicity[row], slot.clamp(max=last).int())


def fill_links(
    links: Links,
    slots: LinkSlots,
    levels: tuple[LevelSlots, LevelSlots],
    filled: tuple[FilledRows, FilledRows],
    task_of_lane: Tensor,
    places: int,
) -> FilledLinks:
    """Put the edges between two levels into their places."""
    if backend(links.col) == "triton":
        from . import _fill_kernels

        return FilledLinks(*_fill_kernels.links(links, slots, levels, filled, task_of_lane, places))
    rowptr = _pointers(links.rowptr, slots, filled[1], 1)
    back_ptr = _pointers(links.back_ptr, slots, filled[0], links.stride)
    slot, place = _slots_of_places(slots.begin, places)
    there = slot < len(slots.first)
    position = torch.where(there, padded(slots.first)[slot] + place, len(links.col) - 1)
    # From rows and edges of the tables to those of the step.
    below, here = (padded(own.begin[:-1] - own.first) for own in levels)
    col = links.col[position] + below[slot] * links.stride
    back_col = links.back_col[position] + here[slot]
    back_edge = links.back_edge[position] + padded(slots.begin[:-1] - slots.first)[slot]
    # Edges that are none lead from the last row to the last row.
    col = torch.where(there, col, len(back_ptr) - 2)
    back_col = torch.where(there, back_col, len(rowptr) - 2)
    back_edge = torch.where(there, back_edge, torch.arange(places, device=slot.device))
    weight = None
    if links.weight is not None:
        task = torch.zeros_like(task_of_lane) if len(links.weight) == 1 else task_of_lane
        of_slot = padded(task.repeat_interleave(len(slots.first) // len(task_of_lane)))
        weight = links.weight[of_slot[slot], position]
    return FilledLinks(rowptr, col.int(), weight, back_ptr, back_col.int(), back_edge.int())


def _pointers(table: Tensor, slots: LinkSlots, filled: FilledRows, stride: int) -> Tensor:
    """Return where each row's edges begin: a row has ``stride`` of these."""
    nothing, slot = (len(table) - 1) // stride, filled.slot.unsqueeze(1)
    shift = slots.begin[:-1] - slots.first
    place = filled.row.clamp(max=nothing - 1).unsqueeze(1) * stride
    place = place + torch.arange(stride, device=table.device)
    held = (filled.row < nothing).unsqueeze(1)
    begin = torch.where(held, table[place] + shift[slot], slots.begin[slot + 1])
    return torch.cat([begin.flatten(), slots.begin[-1:]]).int()


def _slots_of_places(begin: Tensor, places: int) -> tuple[Tensor, Tensor]:
    """Return the slot of each of so many places, and the place in the slot."""
    number = torch.arange(places, device=begin.device)
    slot = torch.searchsorted(begin.long(), number, right=True) - 1
    return slot, number - begin[slot]
