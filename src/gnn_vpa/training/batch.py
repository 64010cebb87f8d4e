"""A batch is a list of graphs for each lane: their nodes get slots, their edges new numbers."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..nn import Blocks, Looped, Scaled, WithSelf
from ..nn._layers import Joint, Layers, Readouts
from ..ops import Graph
from ..ops._csr import CSR
from .resident import Resident

EMPTY = -1  # in the place of a graph where a lane has fewer than the others


class Batch(NamedTuple):
    """What one step of L lanes with B graphs and S slots each needs."""

    x: Tensor  # codes [L * S], or features [L * S, in]
    graph: Graph | Scaled | WithSelf | Looped | Layers | None
    readout: Graph | Scaled | Joint | Readouts  # from slots to graphs
    nodes: Tensor | Blocks  # [L * S], how many nodes a slot stands for; 0 where it is empty
    y: Tensor  # [L * B]
    real: Tensor  # [L, B], false where a lane has no graph


def cut(data: Resident, ids: Tensor) -> Batch:
    """Cut a batch out of the data set.

    Args:
        data: The data set.
        ids: The graphs of each lane, ``[L, B]``, ``EMPTY`` where there is none.
    """
    lanes, device = len(ids), ids.device
    real = ids >= 0
    safe = ids.clamp(min=0)
    count = torch.where(real, data.node_ptr[safe + 1] - data.node_ptr[safe], 0)
    slots = max(int(count.sum(1).max()), 1)
    begin = count.cumsum(1) - count + torch.arange(0, lanes * slots, slots, device=device)[:, None]
    count, begin = count.flatten(), begin.flatten()
    shift = begin - data.node_ptr[safe].flatten()  # slot = node + shift
    owner = torch.repeat_interleave(count)  # the graph of each node that has a slot
    slot = torch.arange(len(owner), device=device) - (count.cumsum(0) - count)[owner] + begin[owner]
    node = slot - shift[owner]

    rows = lanes * slots
    x = data.x.new_zeros(rows, *data.x.shape[1:])
    x[slot] = data.x[node]
    nodes = torch.zeros(rows, device=device)
    times = None if data.times is None else data.times[node]
    nodes[slot] = 1 if times is None else times
    graph: Graph | Looped | None = None
    if data.graph is not None:
        graph = _edges(data, node, slot, shift[owner], rows)
        graph = Looped(graph) if data.looped else graph
    readout = _readout(count, owner, slot, rows, data.largest, times)
    return Batch(x, graph, readout, nodes, data.y[safe].flatten(), real)


def _edges(data: Resident, node: Tensor, slot: Tensor, shift: Tensor, rows: int) -> Graph:
    assert data.graph is not None
    whole, whole_back = data.graph.by_target, data.graph.by_source
    rowptr, col, position = _gathered(whole, node, slot, shift, rows)
    back_ptr, back_col, back_position = _gathered(whole_back, node, slot, shift, rows)
    edge = None
    if data.numbered:
        assert whole_back.edge is not None
        # An edge's number is its place among the edges of its target, behind those before it.
        place = whole_back.edge[back_position] - whole.rowptr[whole_back.col[back_position]]
        edge = place + rowptr[back_col]
    times = data.graph.multiplicity
    return Graph.of(
        CSR(rowptr, col, None, whole.longest),
        CSR(back_ptr, back_col, edge, whole_back.longest),
        (rows, rows),
        multiplicity=None if times is None else times[position],
    )


def _gathered(
    csr: CSR, node: Tensor, slot: Tensor, shift: Tensor, rows: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows of ``node`` at ``slot``: pointers, columns, and where they stood."""
    first = csr.rowptr[node]
    length = csr.rowptr[node + 1] - first
    rowptr = torch.zeros(rows + 1, dtype=torch.int32, device=node.device)
    rowptr[slot + 1] = length
    rowptr = rowptr.cumsum(0, dtype=torch.int32)
    owner = torch.repeat_interleave(length)
    position = torch.arange(len(owner), device=node.device) - rowptr[slot][owner] + first[owner]
    return rowptr, csr.col[position] + shift[owner].int(), position


def _readout(
    count: Tensor, owner: Tensor, slot: Tensor, rows: int, largest: int, times: Tensor | None
) -> Graph:
    rowptr = torch.zeros(len(count) + 1, dtype=torch.int32, device=count.device)
    rowptr[1:] = count.cumsum(0)
    back_ptr = torch.zeros(rows + 1, dtype=torch.int32, device=count.device)
    back_ptr[slot + 1] = 1
    return Graph.of(
        CSR(rowptr, slot.int(), None, largest),
        CSR(back_ptr.cumsum(0, dtype=torch.int32), owner.int(), None, 1),
        (rows, len(count)),
        multiplicity=times,
    )
