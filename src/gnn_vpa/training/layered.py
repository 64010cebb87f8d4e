"""Batches in which no layer computes anything twice.

At level ``l`` a row of a batch stands for one colour: all nodes of a lane's graphs that ``l``
layers cannot tell apart. The data set's tables know all colours and their neighbours; a batch takes
those that occur in its graphs, and numbers them anew. NumPy does that: its calls cost less than
PyTorch's, and of several values that are assigned to one place the last one stays.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..nn import Looped, WithSelf
from ..nn._batch_norm import Counts
from ..nn._layers import Hop, Joint, Layers
from ..ops import Graph
from ..ops._csr import CSR
from .batch import Batch
from .levels import Floats, Ints, Levels


class _Level(NamedTuple):
    """The colours of a level that occur in a batch of L lanes with B graphs and S rows each."""

    lane: Ints  # of each colour that occurs
    colour: Ints
    row: Ints  # where it is among the L * S rows, increasing
    nodes: Floats  # [L * S], how many nodes a row stands for
    length: Ints  # [L * B], number of colours of each graph …
    held: Ints  # … the rows of these, graph after graph …
    pool: Floats  # … and what they weigh in the readout


class _Links(NamedTuple):
    """Edges, target after target."""

    length: Ints  # number of edges of each target
    col: Ints  # their sources
    sources: int  # how many there are
    longest: int  # an upper bound of the length
    weight: Floats


class Layered:
    """All graphs of a data set, to be cut into batches by levels.

    Attributes:
        x: Features of the first level's colours.
        y: Class of each graph, ``[G]``.
    """

    def __init__(self, known: Levels) -> None:
        self.x, self.y = known.x, known.y
        self._known = known
        # By level: a number for each lane and colour. What is left in it does not matter.
        self._marks = [np.zeros(0, np.int32) for _ in known.levels]

    def rows(self, size: int) -> int:
        """Return about how many rows the last level of a batch of ``size`` graphs has."""
        ids = np.linspace(0, len(self.y) - 1, size).astype(np.int64)
        return len(self._level(len(self._marks) - 1, ids[None]).nodes)

    def cut(self, ids: Tensor, backward: bool = True) -> Batch:
        """Put a batch together.

        Args:
            ids: The graphs of each lane, ``[L, B]``, negative where there is none.
            backward: Whether a backward pass will follow.
        """
        levels = [self._level(number, ids.numpy()) for number in range(len(self._marks))]
        links = [
            self._links(number, levels[number - 1], levels[number])
            for number in range(1, len(levels))
        ]
        read = levels[-1:] if self._known.first is None else levels[1:]
        *graphs, readout = _graphs([*links, _read(read)], backward)
        hops = [
            self._hop(number, levels[number], graph, link, len(ids))
            for number, (graph, link) in enumerate(zip(graphs, links, strict=True), start=1)
        ]
        first = levels[0]
        x = self.x.new_zeros(len(first.nodes), *self.x.shape[1:])
        x[torch.from_numpy(first.row)] = self.x[torch.from_numpy(first.colour)]
        return Batch(
            x,
            Layers(tuple(hops)) if hops else None,
            self._joint(read, readout, ids),
            torch.from_numpy(first.nodes),
            self.y[ids.clamp(min=0)].flatten(),
            ids >= 0,
        )

    def _level(self, number: int, ids: Ints) -> _Level:
        table, lanes = self._known.levels[number], len(ids)
        known = np.maximum(ids, 0)
        begin = table.held.ptr[known]
        length = np.where(ids >= 0, table.held.ptr[known + 1] - begin, 0)
        position = _ranges(begin.ravel(), length.ravel())
        lane = np.repeat(np.arange(lanes), length.sum(1))
        colour = table.held.col[position]
        place = colour + lane * table.size
        mark = self._mark(number, lanes)
        order = np.arange(len(place), dtype=np.int32)
        mark[place] = order
        chosen = np.flatnonzero(mark[place] == order)  # one of each kind
        lane, colour = lane[chosen], colour[chosen]
        count = np.bincount(lane, minlength=lanes)
        slots = max(int(count.max()), 1)
        row = np.arange(len(chosen)) + (np.arange(lanes) * slots - count.cumsum() + count)[lane]
        mark[place[chosen]] = row
        held, times = mark[place], table.held.data[position]
        nodes = np.bincount(held, times, minlength=lanes * slots).astype(times.dtype)
        return _Level(lane, colour, row, nodes, length.ravel(), held, table.pool[position])

    def _mark(self, number: int, lanes: int) -> Ints:
        size = lanes * self._known.levels[number].size
        if len(self._marks[number]) < size:
            self._marks[number] = np.zeros(size, np.int32)
        return self._marks[number]

    def _links(self, number: int, before: _Level, after: _Level) -> _Links:
        below, table = self._known.levels[number - 1 : number + 1]
        mark, stride = self._marks[number - 1], self._known.stride
        assert table.hop is not None
        begin = table.hop.ptr[after.colour]
        length = table.hop.ptr[after.colour + 1] - begin
        position = _ranges(begin, length)
        shift = np.repeat(after.lane * below.size, length)
        col = table.hop.col[position]
        if stride == 1:
            col = mark[col + shift]
        else:
            col = mark[col // stride + shift] * stride + col % stride
        lengths = np.zeros(len(after.nodes), np.int64)
        lengths[after.row] = length
        weight = table.hop.data[position]
        return _Links(lengths, col, len(before.nodes) * stride, table.hop.longest, weight)

    def _hop(self, number: int, after: _Level, graph: Graph, link: _Links, lanes: int) -> Hop:
        below, table = self._known.levels[number - 1 : number + 1]
        weight = torch.from_numpy(link.weight)
        nodes = Counts.of(torch.from_numpy(after.nodes), lanes)
        if table.own is None:
            return Hop(WithSelf(graph, weight), None, nodes)
        own = np.zeros(len(after.nodes), np.int64)
        own[after.row] = self._marks[number - 1][table.own[after.colour] + after.lane * below.size]
        if not self._known.looped:
            return Hop(graph, torch.from_numpy(own), nodes)
        graph.multiplicity = weight
        return Hop(Looped(graph), torch.from_numpy(own), nodes)

    def _joint(self, read: list[_Level], graph: Graph, ids: Tensor) -> Joint:
        known, first, weight = self._known, None, None
        if known.first is not None:
            first = torch.where((ids >= 0).unsqueeze(2), known.first[ids.clamp(min=0)], 0)
            first = first.flatten(0, 1)
        if not known.is_max:
            weight = torch.from_numpy(np.concatenate([own.pool for own in read]))
        return Joint(graph, weight, first)


def _read(levels: list[_Level]) -> _Links:
    """Return the way from the rows of these levels, one level after the other, to the graphs."""
    begin = np.cumsum([0, *(len(own.nodes) for own in levels)])
    held = np.concatenate([own.held + at for own, at in zip(levels, begin[:-1], strict=True)])
    length = np.concatenate([own.length for own in levels])
    weight = np.concatenate([own.pool for own in levels])
    return _Links(length, held, int(begin[-1]), int(length.max()), weight)


def _ranges(begin: Ints, length: Ints) -> Ints:
    """Return the numbers ``begin[i]`` to ``begin[i] + length[i]``, one i after the other."""
    end = length.cumsum()
    first: Ints = np.repeat(begin - end + length, length)
    return first + np.arange(len(first))


def _graphs(links: list[_Links], backward: bool) -> list[Graph]:
    """Return the graphs; all are grouped by source in one go, as blocks of one matrix."""
    sources = np.cumsum([0, *(link.sources for link in links)])
    targets = np.cumsum([0, *(len(link.length) for link in links)])
    edges = np.cumsum([0, *(len(link.col) for link in links)])
    length = np.concatenate([link.length for link in links])
    ptr = np.zeros(len(length) + 1, np.int32)
    np.cumsum(length, out=ptr[1:])
    back = _turned(ptr, links, sources) if backward else None
    out = []
    for number, link in enumerate(links):
        here = slice(targets[number], targets[number + 1] + 1)
        col = link.col.astype(np.int32, copy=False)
        by_target = CSR(_moved(ptr[here], edges[number]), torch.from_numpy(col), None, link.longest)
        by_source = None
        if back is not None:
            there = slice(sources[number], sources[number + 1] + 1)
            own = slice(edges[number], edges[number + 1])
            by_source = CSR(
                _moved(back.indptr[there], edges[number]),
                _moved(back.indices[own], targets[number]),
                _moved(back.data[own], edges[number]),
                len(link.length),
            )
        out.append(Graph.of(by_target, by_source, (link.sources, len(link.length))))
    return out


def _turned(ptr: Ints, links: list[_Links], sources: Ints) -> Any:
    from scipy.sparse import csr_array

    col = np.concatenate([link.col + at for link, at in zip(links, sources[:-1], strict=True)])
    numbers = np.arange(len(col), dtype=np.int32)
    shape = (len(ptr) - 1, sources[-1])
    return csr_array((numbers, col.astype(np.int32, copy=False), ptr), shape=shape).tocsc()


def _moved(numbers: Ints, by: int) -> Tensor:
    return torch.from_numpy(numbers - np.int32(by))
