"""Many steps' batches at once, each of one shape: what captured steps read.

A batch is a list of graphs for each lane, and a graph's rows and edges are ranges of `tables.py`. A
lane owns as many blocks of rows of a level as it needs, and a step has room for the same number of
blocks and edges, so that a captured step fits all batches of a size. Rows that hold no node belong
to the lane's last graph, and count 0 times; edges that are none belong to no row.

Nothing here looks at a value on the host, and a call plans as many steps as memory allows: its
hundred small kernels are shared by all of them. Slots (graphs of lanes of steps), places of rows
and places of edges are numbered through all steps.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..nn import Blocks, Looped, Scaled, WithSelf
from ..nn._layers import Hop, Layers, Readouts
from ..ops import Graph, backend
from ..ops._csr import CSR
from .batch import Batch
from .tables import Links, Rows, Tables


class Room(NamedTuple):
    """Room of a level, for all lanes together."""

    blocks: int
    size: int  # rows of a block
    most: int  # blocks of a lane, at most
    edges: int  # of the hop from the level below

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.blocks * self.size


class LinksPlan(NamedTuple):
    """The edges of K steps: E edges, S sources and T targets."""

    rowptr: Tensor  # [K, T + 1]
    col: Tensor  # [K, E]
    weight: Tensor | None  # [K, E]
    back_ptr: Tensor  # [K, S + 1]
    back_col: Tensor  # [K, E]
    back_edge: Tensor  # [K, E]


class LevelPlan(NamedTuple):
    """A level of K steps: L lanes of B graphs, C blocks and R rows; None where not needed."""

    nodes: Tensor  # [K, R]
    lane: Tensor  # [K, C], of each block
    block: Tensor  # [K, L + 1], the first block of each lane
    ptr: Tensor | None  # [K, L * B + 1], the readout by graph …
    member: Tensor | None  # [K, R], … and by row
    power: Tensor | None  # [K, R], p of each row, where the model takes that
    hop: LinksPlan | None
    own: LinksPlan | None


class Plan(NamedTuple):
    """K steps."""

    x: Tensor  # [K, R] or [K, R, in]
    y: Tensor  # [K, L * B]
    real: Tensor  # [K, L, B]
    pool: Tensor  # [K, L * B], the readout's scale
    levels: tuple[LevelPlan, ...]


class _Placed(NamedTuple):
    """Where the rows of a level are."""

    row: Tensor  # [K * R], of the level's table
    ptr: Tensor  # [K, L * B + 1], the first row of each graph
    member: Tensor  # [K, R], the graph of each row
    shift: Tensor  # [K, L * B], from rows of the table to those of the step
    block: Tensor  # [K, L + 1]
    lane: Tensor  # [K, C]


def plan(known: Tables, kind: Tensor, ids: Tensor, rooms: tuple[Room, ...]) -> Plan:
    """Plan K steps.

    Args:
        known: The data set.
        kind: The task of each lane, by its place in ``known.tasks``: ``[L]``.
        ids: The graphs of each step and lane, ``[K, L, B]``, ``EMPTY`` where there is none.
        rooms: The levels' room; what does not fit is cut off, so it must be large enough.
    """
    real, safe = ids >= 0, ids.clamp(min=0)
    placed = [_place(level, real, safe, r) for level, r in zip(known.levels, rooms, strict=True)]
    pool = _power(known.size[safe], known.pooling[kind].unsqueeze(1)).flatten(1)
    levels = []
    for number, (level, room) in enumerate(zip(known.levels, rooms, strict=True)):
        here, below = placed[number], placed[number - 1]
        hop = own = ptr = member = power = None
        if number > 0:
            if level.hop is not None:
                full = _is_full(known, ids)
                hop = _link(level.hop, below, here, real, safe, kind, room.edges, full)
            if level.own is not None:
                own = _link(level.own, below, here, real, safe, kind, room.rows, False)
            if known.form == "gat":
                power = known.power[kind][here.lane.long()].repeat_interleave(room.size, dim=1)
        if number >= known.read:
            ptr, member = here.ptr, here.member
        nodes = level.times[here.row].view(len(ids), -1)
        levels.append(LevelPlan(nodes, here.lane, here.block, ptr, member, power, hop, own))
    copies, count, *width = known.x.shape
    first = placed[0]
    row = first.row
    if copies > 1:
        at = (kind * count)[first.lane.long()].repeat_interleave(rooms[0].size, dim=1)
        row = row + at.flatten()
    x = known.x.flatten(0, 1)[row].view(len(ids), -1, *width)
    return Plan(x, known.y[safe].flatten(1), real, pool, tuple(levels))


def _place(level: Rows, real: Tensor, safe: Tensor, room: Room) -> _Placed:
    steps, lanes, graphs = real.shape
    first = level.ptr[safe]
    count = torch.where(real, level.ptr[safe + 1] - first, 0)
    total = count.sum(2)
    own = blocks(total, room.size)
    block = _pointers(own)
    lane, _ = _spread(own, room.blocks)
    number = torch.arange(lanes, device=lane.device)
    lane = _behind(number.expand(steps, -1), lanes - 1)[lane].view(steps, -1)
    # A lane's blocks are filled up by one more slot, which holds nothing.
    lengths = torch.cat([count, (own * room.size - total).unsqueeze(2)], 2)
    slot, place = _spread(lengths.flatten(1), room.rows)
    nothing = len(level.times) - 1
    origin = _behind(torch.nn.functional.pad(first, (0, 1), value=-1).flatten(1), -1)[slot]
    row = torch.where(origin >= 0, origin + place, nothing)
    graph = torch.arange(lanes * graphs, device=lane.device).view(lanes, graphs)
    graph = torch.cat([graph, graph[:, -1:]], 1).flatten()
    member = _behind(graph.expand(steps, -1), lanes * graphs - 1)[slot].view(steps, -1)
    begin = (block[:, :-1] * room.size).unsqueeze(2) + count.cumsum(2) - count
    ptr = torch.cat([begin.flatten(1), block[:, -1:] * room.size], 1)
    return _Placed(row, ptr, member, (begin - first).flatten(1), block, lane)


def _link(
    links: Links, below: _Placed, here: _Placed, real: Tensor, safe: Tensor, kind: Tensor,
    room: int, full: bool,
) -> LinksPlan:  # fmt: skip
    """Return edges between two levels; ``full``: see ``_is_full``."""
    steps, stride = len(real), links.stride
    rowptr = _pointers(links.length[here.row].view(steps, -1))
    back_ptr = _pointers(links.back_length[below.row].view(steps, -1))
    first = links.ptr[safe]
    count = torch.where(real, links.ptr[safe + 1] - first, 0)
    slot, place = _spread(count.flatten(1), room)
    nothing = len(links.col) - 1
    origin = _behind(first.flatten(1), -1)[slot]
    live = origin >= 0
    position = torch.where(live, origin + place, nothing)
    last, last_back = rowptr.shape[1] - 2, back_ptr.shape[1] - 2
    col = links.col[position] + _behind(below.shift * stride, last_back)[slot]
    back_col = links.back_col[position] + _behind(here.shift, last)[slot]
    begin = _running(count.flatten(1)) - (count + first).flatten(1)
    number = torch.arange(room, device=slot.device).repeat(steps)
    back_edge = torch.where(live, links.back_edge[position] + _behind(begin, 0)[slot], number)
    weight = None
    if links.weight is not None:
        if len(links.weight) > 1:
            at = (kind * (nothing + 1)).view(1, -1, 1).expand_as(real).flatten(1)
            position = position + _behind(at, 0)[slot]
        weight = links.weight.flatten()[position].view(steps, -1)
    if full:
        rowptr[:, -1:] = back_ptr[:, -1:] = room
    shape = (steps, room)
    edges = col.view(shape), weight, back_ptr, back_col.view(shape), back_edge.view(shape)
    return LinksPlan(rowptr, *edges)


def blocks(rows: Tensor, size: int) -> Tensor:
    """Return how many blocks so many rows need: at least one.

    Example:
        >>> blocks(torch.tensor([0, 64, 65]), 64)
        tensor([1, 1, 2])
    """
    return ((rows + size - 1) // size).clamp(min=1)


def _spread(lengths: Tensor, room: int) -> tuple[Tensor, Tensor]:
    """Give each of ``lengths [K, Z]`` as many places of ``room``, one behind the other.

    Returns:
        The owner of each place, numbered through all K with one more for the places that are left
        over, and the place among the owner's: ``[K * room]``.
    """
    steps = len(lengths)
    left = room - lengths.sum(1, keepdim=True)
    filled = torch.cat([lengths, left], dim=1).flatten()
    owner = torch.repeat_interleave(filled, output_size=steps * room)
    begin = filled.cumsum(0) - filled
    return owner, torch.arange(steps * room, device=owner.device) - begin[owner]


def _behind(values: Tensor, last: int) -> Tensor:
    """Number values ``[K, Z]`` as the owners of ``_spread``, with ``last`` for what is left."""
    return torch.nn.functional.pad(values, (0, 1), value=last).flatten()


def _pointers(lengths: Tensor) -> Tensor:
    """Return where each begins, and where the last one ends: ``[K, R] -> [K, R + 1]``."""
    steps, rows = lengths.shape
    pointers = torch.zeros(steps, rows + 1, dtype=torch.int32, device=lengths.device)
    pointers[:, 1:] = _running(lengths)
    return pointers


def _running(numbers: Tensor) -> Tensor:
    """Return running sums of each row, ``[K, R]``."""
    # One scan over everything uses a whole GPU, a scan of each row a part of it for every row.
    total = numbers.flatten().cumsum(0).view_as(numbers)
    return total - (total[:, :1] - numbers[:, :1].long())


def _power(numbers: Tensor, exponent: Tensor) -> Tensor:
    """Return ``N^(-p)``, and 0 for 0."""
    some = torch.where(numbers > 0, numbers, 1)
    return torch.where(numbers > 0, some.pow(-exponent), 0)


def batch_of(known: Tables, step: Plan, rooms: tuple[Room, ...], number: Tensor) -> Batch:
    """Return one planned step, without the axis K, as a model takes it.

    ``number``: all numbers from 0 on, as many as there are places at least.
    """
    nodes = [
        Blocks(own.nodes, own.lane, own.block, room.most)
        for own, room in zip(step.levels, rooms, strict=True)
    ]
    hops = tuple(
        _hop(known, level, own, below, here)
        for level, own, below, here in zip(
            known.levels[1:], step.levels[1:], nodes, nodes[1:], strict=False
        )
    )
    readouts = [
        _pool(known, level, own, room, step.pool, number)
        for level, own, room in zip(known.levels, step.levels, rooms, strict=True)
        if own.ptr is not None
    ]
    return Batch(
        step.x,
        Layers(hops) if hops else None,
        Readouts(tuple(readouts)),
        nodes[0],
        step.y.long(),
        step.real.bool(),
    )


def _pool(
    known: Tables, level: Rows, own: LevelPlan, room: Room, scale: Tensor, number: Tensor
) -> Graph | Scaled:
    assert own.ptr is not None
    assert own.member is not None
    rows, graphs = room.rows, len(own.ptr) - 1
    longest = level.largest + room.size
    graph = Graph.of(
        CSR(own.ptr, number[:rows], None, longest),
        CSR(number[: rows + 1].minimum(own.ptr[-1]), own.member, None, 1),
        (rows, graphs),
        multiplicity=own.nodes,
    )
    is_set = known.sets and level is known.levels[0]
    return graph if known.form == "max" and not is_set else Scaled(graph, scale)


def _hop(known: Tables, level: Rows, own: LevelPlan, below: Blocks, here: Blocks) -> Hop:
    assert level.hop is not None
    assert own.hop is not None
    sizes = len(below.nodes), len(here.nodes)
    full = _is_full(known, own.nodes)
    graph = _graph(level.hop, own.hop, sizes, full)
    stems = None
    if level.own is not None and own.own is not None:
        stems = _graph(level.own, own.own, sizes, False)
    if known.form == "gat":
        graph.multiplicity = own.hop.weight
        return Hop(Looped(graph, own.power), stems, here)
    return Hop(graph if own.hop.weight is None else WithSelf(graph, own.hop.weight), stems, here)


def _graph(links: Links, own: LinksPlan, sizes: tuple[int, int], full: bool) -> Graph:
    longest, back_longest = links.longest, links.back_longest
    if full:
        longest = back_longest = len(own.col)
    return Graph.of(
        CSR(own.rowptr, own.col, None, longest),
        CSR(own.back_ptr, own.back_col, own.back_edge, back_longest),
        (sizes[0] * links.stride, sizes[1]),
    )


def _is_full(known: Tables, like: Tensor) -> bool:
    """Say whether the last row, which holds no node, owns the edges that are none.

    Attention wants a row for every edge, but for its fused kernels.
    """
    return known.form == "gat" and backend(like) != "triton"
