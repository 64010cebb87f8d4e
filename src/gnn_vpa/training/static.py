"""Batches of one shape, whatever graphs they hold: what a captured step is made of.

Every lane has the same number of slots, and the batch room for the same number of edges. Slots that
hold no node belong to one more graph of their lane, which nobody asks for; edges that are none
lead from the last slot, which never holds a node, to itself.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..nn import Looped
from ..ops import Graph
from ..ops._csr import CSR
from .batch import Batch
from .resident import Resident


class Shape(NamedTuple):
    """Room of a batch: slots in each lane, and edges in all."""

    slots: int
    edges: int


def cut_static(data: Resident, ids: Tensor, shape: Shape) -> Batch:
    """Cut a batch out of the data set, without looking at a value on the host.

    Args:
        data: The data set.
        ids: The graphs of each lane, ``[L, B]``, ``EMPTY`` where there is none.
        shape: Its room; what does not fit is cut off, so it must be large enough.
    """
    lanes, width = ids.shape
    device = ids.device
    real = ids >= 0
    safe = ids.clamp(min=0)
    count = torch.where(real, data.node_ptr[safe + 1] - data.node_ptr[safe], 0)
    end = count.cumsum(1)
    place = torch.arange(shape.slots, device=device).expand(lanes, -1).contiguous()
    owner = torch.searchsorted(end, place, right=True)  # [L, S]: the graph; B where there is none
    held = owner < width
    known = owner.clamp(max=width - 1)
    node = data.node_ptr[safe.gather(1, known)] + place - (end - count).gather(1, known)
    node, held = torch.where(held, node, 0).flatten(), held.flatten()

    slot = torch.arange(lanes * shape.slots, device=device)
    times = 1 if data.times is None else data.times[node]
    nodes = torch.where(held, times, 0).float()
    graph: Graph | Looped | None = None
    if data.graph is not None:
        graph = _edges(data, node, held, slot, shape.edges)
        graph = Looped(graph) if data.looped else graph

    lane = torch.arange(lanes, device=device).unsqueeze(1)
    member = (owner + lane * (width + 1)).flatten().int()  # the slot's graph, B + 1 in each lane
    last = torch.cat([end, torch.full_like(end[:, :1], shape.slots)], dim=1) + lane * shape.slots
    rowptr = torch.zeros(lanes * (width + 1) + 1, dtype=torch.int32, device=device)
    rowptr[1:] = last.flatten()
    readout = Graph.of(
        CSR(rowptr, slot.int(), None, max(data.largest, shape.slots)),
        CSR(torch.arange(len(slot) + 1, dtype=torch.int32, device=device), member, None, 1),
        (len(slot), lanes * (width + 1)),
        multiplicity=None if data.times is None else nodes,
    )
    nobody = torch.zeros(lanes, 1, dtype=torch.int64, device=device)
    y = torch.cat([data.y[safe], nobody], dim=1).flatten()
    return Batch(data.x[node], graph, readout, nodes, y, torch.cat([real, nobody.bool()], dim=1))


def _edges(data: Resident, node: Tensor, held: Tensor, slot: Tensor, room: int) -> Graph:
    assert data.graph is not None
    whole, back = data.graph.by_target, data.graph.by_source
    rows = len(slot)
    shift = slot - node
    rowptr, col, position, real = _gathered(whole, node, held, shift, room, data.looped)
    back_ptr, back_col, back_position, _ = _gathered(back, node, held, shift, room, data.looped)
    edge = None
    if data.numbered:
        assert back.edge is not None
        place = back.edge[back_position] - whole.rowptr[back.col[back_position]]
        number = torch.arange(room, dtype=torch.int32, device=slot.device)
        edge = torch.where(real, place + rowptr[back_col], number)
    times = data.graph.multiplicity
    return Graph.of(
        CSR(rowptr, col, None, room if data.looped else whole.longest),
        CSR(back_ptr, back_col, edge, room if data.looped else back.longest),
        (rows, rows),
        multiplicity=None if times is None else torch.where(real, times[position], 0),
    )


def _gathered(
    csr: CSR, node: Tensor, held: Tensor, shift: Tensor, room: int, full: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return pointers, columns, where they stood, and which are real; ``full``: the rest too."""
    rows, device = len(node), node.device
    first = csr.rowptr[node]
    length = torch.where(held, csr.rowptr[node + 1] - first, 0)
    rowptr = torch.zeros(rows + 1, dtype=torch.int32, device=device)
    rowptr[1:] = length.cumsum(0)
    number = torch.arange(room, dtype=torch.int32, device=device)
    owner = torch.searchsorted(rowptr[1:], number, right=True)
    real = owner < rows
    owner = owner.clamp(max=rows - 1)
    position = torch.where(real, number - rowptr[owner] + first[owner], 0)
    col = torch.where(real, csr.col[position] + shift[owner], rows - 1).int()
    if full:
        rowptr[-1:].fill_(room)
    return rowptr, col, position, real
