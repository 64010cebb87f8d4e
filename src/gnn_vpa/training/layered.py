"""Batches in which no layer computes anything twice.

At level ``l`` a row of a batch stands for one colour: all nodes of a lane's graphs that ``l``
layers cannot tell apart. The data set's tables know all colours and their neighbours; a batch takes
those that occur in its graphs, and numbers them anew. NumPy does that: its calls cost less than
PyTorch's, and of several values that are assigned to one place the last one stays.
"""

from collections.abc import Iterator, Sequence
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

_MARKED = 1 << 21  # colours of all lanes that are marked in one go


class _Level(NamedTuple):
    """The colours of a level that occur in steps of L lanes with B graphs each.

    The lanes of all steps are numbered through, and so are their rows: S for each lane of a step.
    """

    lane: Ints  # of each colour that occurs
    colour: Ints
    row: Ints  # where it is among all rows, increasing
    nodes: Floats  # how many nodes a row stands for
    begin: Ints  # by step, its first row; and how many rows there are
    length: Ints  # number of colours of each graph …
    held: Ints  # … the rows of these, graph after graph …
    pool: Floats  # … and what they weigh in the readout

    def split(self) -> "list[_Rows]":
        """Return each step's own, with its rows numbered from 0."""
        steps = len(self.begin) - 1
        graphs = self.length.reshape(steps, -1)
        held = np.cumsum([0, *graphs.sum(1)])
        return [
            _Rows(
                self.nodes[self.begin[step] : self.begin[step + 1]],
                graphs[step],
                self.held[held[step] : held[step + 1]] - self.begin[step],
                self.pool[held[step] : held[step + 1]],
            )
            for step in range(steps)
        ]


class _Rows(NamedTuple):
    """A level of one step."""

    nodes: Floats
    length: Ints
    held: Ints
    pool: Floats


class _Links(NamedTuple):
    """Edges, target after target."""

    length: Ints  # number of edges of each target
    col: Ints  # their sources
    sources: int  # how many there are
    longest: int  # an upper bound of the length
    weight: Floats
    own: Ints | None = None  # the source that each target stems from, where no edge holds it

    def split(self, before: _Level, after: _Level, stride: int) -> "list[_Links]":
        """Return each step's own, from its rows before to its rows after."""
        begin = before.begin * stride
        edges = np.append(0, self.length.cumsum())[after.begin]
        out = []
        for step in range(len(begin) - 1):
            rows = slice(after.begin[step], after.begin[step + 1])
            here = slice(edges[step], edges[step + 1])
            col, own = self.col[here] - begin[step], self.own
            own = own if own is None else np.maximum(own[rows] - begin[step], 0)
            sources = int(begin[step + 1] - begin[step])
            links = _Links(self.length[rows], col, sources, self.longest, self.weight[here], own)
            out.append(links)
        return out


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
        return len(self._level(len(self._marks) - 1, ids[None, None]).nodes)

    def at_once(self, lanes: int) -> int:
        """Return how many steps are worth cutting in one go: many, where each has little in it."""
        return max(1, _MARKED // (lanes * max(table.size for table in self._known.levels)))

    def cut(self, ids: Tensor, backward: bool = True) -> Batch:
        """Put a batch together.

        Args:
            ids: The graphs of each lane, ``[L, B]``, negative where there is none.
            backward: Whether a backward pass will follow.
        """
        return self.cut_steps(ids.unsqueeze(0), backward)[0]

    def cut_steps(self, ids: Tensor, backward: bool = True) -> list[Batch]:
        """Put the batches of several steps together: those that ``cut`` makes of each.

        Args:
            ids: The graphs of each step and lane, ``[T, L, B]``, negative where there is none.
            backward: Whether a backward pass will follow.
        """
        levels = [self._level(number, ids.numpy()) for number in range(len(self._marks))]
        links = [
            self._links(number, levels[number - 1], levels[number]).split(
                levels[number - 1], levels[number], self._known.stride
            )
            for number in range(1, len(levels))
        ]
        x = self.x.new_zeros(len(levels[0].nodes), *self.x.shape[1:])
        x[torch.from_numpy(levels[0].row)] = self.x[torch.from_numpy(levels[0].colour)]
        parts = torch.split(x, np.diff(levels[0].begin).tolist())
        rows = list(zip(*(level.split() for level in levels), strict=True))
        ways = [[own[step] for own in links] for step in range(len(ids))]
        read = [own[-1:] if self._known.first is None else own[1:] for own in rows]
        blocks = [[*way, _read(own)] for way, own in zip(ways, read, strict=True)]
        graphs = iter(_graphs([link for block in blocks for link in block], backward))
        return [
            Batch(
                parts[step],
                self._layers(rows[step], ways[step], graphs, ids.shape[1]),
                self._joint(read[step], next(graphs), ids[step]),
                torch.from_numpy(rows[step][0].nodes),
                self.y[ids[step].clamp(min=0)].flatten(),
                ids[step] >= 0,
            )
            for step in range(len(ids))
        ]

    def _layers(
        self, rows: Sequence[_Rows], links: Sequence[_Links], graphs: Iterator[Graph], lanes: int
    ) -> Layers | None:
        if not links:
            return None
        # All levels have the same nodes: what a lane has of them is counted once.
        nodes = torch.from_numpy(rows[0].nodes)
        counts = Counts.of(nodes, lanes)
        total = nodes.view(lanes, -1, 1).sum(1, keepdim=True).clamp(min=1)
        hops = []
        for after, link in zip(rows[1:], links, strict=True):
            share = torch.from_numpy(after.nodes).view(lanes, -1, 1) / total
            hops.append(self._hop(next(graphs), link, counts._replace(share=share)))
        return Layers(tuple(hops))

    def _level(self, number: int, ids: Ints) -> _Level:
        table, (steps, lanes, _) = self._known.levels[number], ids.shape
        known = np.maximum(ids, 0).ravel()
        begin = table.held.ptr[known]
        length = np.where(ids.ravel() >= 0, table.held.ptr[known + 1] - begin, 0)
        position = _ranges(begin, length)
        lane = np.repeat(np.arange(steps * lanes), length.reshape(steps * lanes, -1).sum(1))
        colour = table.held.col[position]
        place = colour + lane * table.size
        mark = self._mark(number, steps * lanes)
        order = np.arange(len(place), dtype=np.int32)
        mark[place] = order
        chosen = np.flatnonzero(mark[place] == order)  # one of each kind
        lane, colour = lane[chosen], colour[chosen]
        count = np.bincount(lane, minlength=steps * lanes)
        slots = np.maximum(count.reshape(steps, lanes).max(1), 1).repeat(lanes)
        end = slots.cumsum()
        row = np.arange(len(chosen)) + (end - slots - count.cumsum() + count)[lane]
        mark[place[chosen]] = row
        held, times = mark[place], table.held.data[position]
        nodes = np.bincount(held, times, minlength=end[-1]).astype(times.dtype)
        first = np.append(0, end[lanes - 1 :: lanes])
        return _Level(lane, colour, row, nodes, first, length, held, table.pool[position])

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
        weight, own = table.hop.data[position], None
        if table.own is not None:
            own = np.zeros(len(after.nodes), np.int64)
            own[after.row] = mark[table.own[after.colour] + after.lane * below.size]
        sources = len(before.nodes) * stride
        return _Links(lengths, col, sources, table.hop.longest, weight, own)

    def _hop(self, graph: Graph, link: _Links, nodes: Counts) -> Hop:
        weight = torch.from_numpy(link.weight)
        if link.own is None:
            return Hop(WithSelf(graph, weight), None, nodes)
        own = torch.from_numpy(link.own)
        if not self._known.looped:
            return Hop(graph, own, nodes)
        graph.multiplicity = weight
        return Hop(Looped(graph), own, nodes)

    def _joint(self, read: Sequence[_Rows], graph: Graph, ids: Tensor) -> Joint:
        known, first, weight = self._known, None, None
        if known.first is not None:
            first = torch.where((ids >= 0).unsqueeze(2), known.first[ids.clamp(min=0)], 0)
            first = first.flatten(0, 1)
        if not known.is_max:
            weight = torch.from_numpy(np.concatenate([own.pool for own in read]))
        return Joint(graph, weight, first)


def _read(levels: Sequence[_Rows]) -> _Links:
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
