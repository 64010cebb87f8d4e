"""Put rows and edges where a plan says: all of a step's batch but its graphs' classes."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..nn import Blocks, Looped, Scaled, WithSelf
from ..nn._layers import Hop, Layers, Readouts
from ..ops import Graph, backend
from ..ops._csr import CSR
from .batch import Batch
from .plan import LevelSlots, LinkSlots, Plan, Room
from .tables import Links, Rows, Tables


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
    nodes: Tensor  # [R], how many nodes a row stands for
    slot: Tensor  # [R]


def batch_of(
    known: Tables, kind: Tensor, step: Plan, rooms: tuple[Room, ...], number: Tensor
) -> Batch:
    """Return one planned step, without the axis K, as a model takes it.

    Args:
        known: The data set.
        kind: The task of each lane.
        step: The plan.
        rooms: The room it was planned for.
        number: All numbers from 0 on, as many as a level has rows at least, and one more.
    """
    filled = [
        fill_rows(level, slots, room)
        for level, slots, room in zip(known.levels, step.levels, rooms, strict=True)
    ]
    nodes = [
        Blocks(rows.nodes, slots.lane, slots.block, room.most)
        for rows, slots, room in zip(filled, step.levels, rooms, strict=True)
    ]
    hops = [_hop(known, kind, step, n, nodes, filled, rooms) for n in range(1, len(nodes))]
    readouts = [
        _readout(known, n, step, nodes[n], filled[n], rooms[n], number)
        for n in range(known.read, len(nodes))
    ]
    return Batch(
        _features(known, kind, nodes[0], filled[0]),
        Layers(tuple(hops)) if hops else None,
        Readouts(tuple(readouts)),
        nodes[0],
        step.y.long(),
        step.real.bool(),
    )


def _features(known: Tables, kind: Tensor, nodes: Blocks, filled: FilledRows) -> Tensor:
    copies, count = known.x.shape[:2]
    row = filled.row
    if copies > 1:
        row = row + (kind * count)[nodes.row_lane]
    return known.x.flatten(0, 1).index_select(0, row)


def _readout(
    known: Tables, number: int, step: Plan, nodes: Blocks, filled: FilledRows, room: Room,
    numbers: Tensor,
) -> Graph | Scaled:  # fmt: skip
    slots, level = step.levels[number], known.levels[number]
    count = len(slots.length)
    graph = Graph.of(
        CSR(slots.begin, numbers[: room.rows], None, level.largest + room.size),
        CSR(numbers[: room.rows + 1].minimum(slots.begin[-1]), filled.slot, None, 1),
        (room.rows, count),
        multiplicity=nodes.nodes,
    )
    is_set = known.sets and number == 0
    return graph if known.form == "max" and not is_set else Scaled(graph, step.pool)


def _hop(
    known: Tables, kind: Tensor, step: Plan, number: int, nodes: list[Blocks],
    filled: list[FilledRows], rooms: tuple[Room, ...],
) -> Hop:  # fmt: skip
    level, slots, room = known.levels[number], step.levels[number], rooms[number]
    ends = (step.levels[number - 1], slots), (filled[number - 1], filled[number])
    sizes = rooms[number - 1].rows, room.rows
    assert level.hop is not None
    assert slots.hop is not None
    # Attention wants a row for every edge, but for its fused kernels: the last row, which holds no
    # node, then owns the edges that are none.
    full = known.form == "gat" and backend(nodes[number].nodes) != "triton"
    graph, weight = _graph(level.hop, slots.hop, *ends, kind, room.edges, sizes, full)
    stems = None
    if level.own is not None:
        assert slots.own is not None
        stems, _ = _graph(level.own, slots.own, *ends, kind, room.rows, sizes, False)
    here = nodes[number]
    if known.form == "gat":
        graph.multiplicity = weight
        return Hop(Looped(graph, known.power[kind][here.row_lane]), stems, here)
    return Hop(graph if weight is None else WithSelf(graph, weight), stems, here)


def _graph(
    links: Links, slots: LinkSlots, levels: tuple[LevelSlots, LevelSlots],
    filled: tuple[FilledRows, FilledRows], kind: Tensor, room: int, sizes: tuple[int, int],
    full: bool,
) -> tuple[Graph, Tensor | None]:  # fmt: skip
    own = fill_links(links, slots, levels, filled, kind, room)
    longest, back_longest = links.longest, links.back_longest
    if full:
        own.rowptr[-1:] = own.back_ptr[-1:] = longest = back_longest = room
    graph = Graph.of(
        CSR(own.rowptr, own.col, None, longest),
        CSR(own.back_ptr, own.back_col, own.back_edge, back_longest),
        (sizes[0] * links.stride, sizes[1]),
    )
    return graph, own.weight


def fill_rows(level: Rows, slots: LevelSlots, room: Room) -> FilledRows:
    """Put the rows of a level into their places."""
    if backend(level.times) == "triton":
        from . import _fill_kernels

        return FilledRows(*_fill_kernels.rows(slots, level.times, room.rows))
    slot, place = _spread(slots.begin, room.rows)
    there = place < _ended(slots.length)[slot]
    row = torch.where(there, _ended(slots.first)[slot] + place, len(level.times) - 1)
    return FilledRows(row.int(), level.times[row], slot.clamp(max=len(slots.length) - 1).int())


def fill_links(
    links: Links,
    slots: LinkSlots,
    levels: tuple[LevelSlots, LevelSlots],
    filled: tuple[FilledRows, FilledRows],
    kind: Tensor,
    room: int,
) -> FilledLinks:
    """Put the edges between two levels into their places."""
    if backend(links.col) == "triton":
        from . import _fill_kernels

        return FilledLinks(*_fill_kernels.links(links, slots, levels, filled, kind, room))
    rowptr = _pointers(links.rowptr, slots, filled[1], 1)
    back_ptr = _pointers(links.back_ptr, slots, filled[0], links.stride)
    slot, place = _spread(slots.begin, room)
    there = slot < len(slots.first)
    position = torch.where(there, _ended(slots.first)[slot] + place, len(links.col) - 1)
    # From rows and edges of the tables to those of the step.
    below, here = (_ended(own.begin[:-1] - own.first) for own in levels)
    col = links.col[position] + below[slot] * links.stride
    back_col = links.back_col[position] + here[slot]
    back_edge = links.back_edge[position] + _ended(slots.begin[:-1] - slots.first)[slot]
    # Edges that are none lead from the last row to the last row.
    col = torch.where(there, col, len(back_ptr) - 2)
    back_col = torch.where(there, back_col, len(rowptr) - 2)
    back_edge = torch.where(there, back_edge, torch.arange(room, device=slot.device))
    weight = None
    if links.weight is not None:
        task = torch.zeros_like(kind) if len(links.weight) == 1 else kind
        of_slot = _ended(task.repeat_interleave(len(slots.first) // len(kind)))
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


def _spread(begin: Tensor, room: int) -> tuple[Tensor, Tensor]:
    """Return the slot of each of ``room`` places, and the place in the slot."""
    number = torch.arange(room, device=begin.device)
    slot = torch.searchsorted(begin.long(), number, right=True) - 1
    return slot, number - begin[slot]


def _ended(values: Tensor) -> Tensor:
    """Add a 0 for the places behind the last slot."""
    return torch.nn.functional.pad(values, (0, 1))
