"""Batches in which no layer computes anything twice.

At level ``l`` a row of a batch stands for one colour: all nodes of a lane's graphs that ``l``
layers cannot tell apart. The data set's tables know all colours and their neighbours; a batch takes
those that occur in its graphs, and numbers them anew. NumPy does that: its calls cost less than
PyTorch's, and of several values that are assigned to one place the last one stays.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..nn import Hop, LaneRows, LevelBatch, WeightedGraph
from ..nn.internal import one_hot
from ..ops import Graph, aggregate
from ..ops.internal import CSR, transposed, weighted_sum
from .batch import Batch
from .level_tables import LevelRows, LevelTables, Links

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

MAX_MARKS = 1 << 21  # colours of all lanes that are marked in one go: they stay in memory


class _Table(NamedTuple):
    """A level of the data set, as NumPy reads it."""

    size: int  # number of colours
    graph_ptr: Ints  # the colours of each graph …
    held: Ints
    multiplicity: Floats  # … how many of its nodes have them …
    pool: Floats  # … and what these weigh in the readout
    hop_ptr: Ints  # the sources of each colour, of the level below …
    col: Ints
    weight: Floats
    longest: int  # … at most so many
    parent: Ints | None
    has_self: bool  # whether weights hold the parent's share


class _Level(NamedTuple):
    """The colours of a level that occur in steps of L lanes with B graphs each.

    The lanes of all steps are numbered through, and so are their rows: S for each lane of a step.
    """

    lane: Ints  # of each colour that occurs
    colour: Ints
    row: Ints  # where it is among all rows, increasing
    multiplicity: Floats  # how many nodes a row stands for
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
                self.multiplicity[self.begin[step] : self.begin[step + 1]],
                graphs[step],
                self.held[held[step] : held[step + 1]] - self.begin[step],
                self.pool[held[step] : held[step + 1]],
            )
            for step in range(steps)
        ]


class _Rows(NamedTuple):
    """A level of one step."""

    multiplicity: Floats
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
    parent: Ints | None = None  # the source that each target stems from, where a model reads it

    def split(self, before: _Level, after: _Level, stride: int) -> "list[_Links]":
        """Return each step's own, from its rows before to its rows after."""
        begin = before.begin * stride
        edges = np.append(0, self.length.cumsum())[after.begin]
        out = []
        for step in range(len(begin) - 1):
            rows = slice(after.begin[step], after.begin[step + 1])
            here = slice(edges[step], edges[step + 1])
            col, parent = self.col[here] - begin[step], self.parent
            if parent is not None:
                parent = np.maximum(parent[rows] - before.begin[step], 0)
            sources = int(begin[step + 1] - begin[step])
            links = _Links(self.length[rows], col, sources, self.longest, self.weight[here], parent)
            out.append(links)
        return out


class Layered:
    """All graphs of a data set, to be cut into batches by levels.

    Attributes:
        x: Features of the first level's colours.
        y: What is learned of each graph, ``[G]`` or ``[G, T]``.
    """

    def __init__(self, tables: LevelTables) -> None:
        self.tables = tables
        self.x, self.y = tables.x.squeeze(0), tables.y
        pooling = float(tables.pooling[0])
        self._levels = [_table(level, tables.num_nodes, pooling) for level in tables.levels]
        self._stride = next((level.hop.stride for level in tables.levels if level.hop), 1)
        self._first = self._readout_of_input() if tables.reads_all_levels else None
        # By level: a number for each lane and colour. What is left in it does not matter.
        self._marks = [np.zeros(0, np.int32) for _ in self._levels]

    def _readout_of_input(self) -> Tensor:
        """Read the features of each graph out, ``[G, in_channels]``: it takes no weights."""
        tables, level = self.tables, self._levels[0]
        x = self.x
        if not x.is_floating_point():
            x = one_hot(x, tables.model.in_channels, tables.num_nodes.dtype)
        ptr, col, pool = (torch.from_numpy(a) for a in (level.graph_ptr, level.held, level.pool))
        longest = int(np.diff(level.graph_ptr).max(initial=0))
        graph = Graph.from_csr(CSR(ptr, col, None, longest), None, (len(x), len(ptr) - 1))
        return aggregate(x, graph, "max") if tables.is_max else weighted_sum(x, graph, pool)

    def rows(self, size: int) -> int:
        """Return about how many rows the last level of a batch of ``size`` graphs has."""
        ids = np.linspace(0, len(self.y) - 1, size).astype(np.int64)
        return len(self._level(len(self._marks) - 1, ids[None, None]).multiplicity)

    def at_once(self, lanes: int) -> int:
        """Return how many steps are worth cutting in one go: many, where each has little in it."""
        return max(1, MAX_MARKS // (lanes * max(level.size for level in self._levels)))

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
                levels[number - 1], levels[number], self._stride
            )
            for number in range(1, len(levels))
        ]
        x = self.x.new_zeros(len(levels[0].multiplicity), *self.x.shape[1:])
        x[torch.from_numpy(levels[0].row)] = self.x[torch.from_numpy(levels[0].colour)]
        parts = torch.split(x, np.diff(levels[0].begin).tolist())
        rows = list(zip(*(level.split() for level in levels), strict=True))
        ways = [[links_of[step] for links_of in links] for step in range(len(ids))]
        read = [own[-1:] if self._first is None else own[1:] for own in rows]
        blocks = [[*way, _read(own)] for way, own in zip(ways, read, strict=True)]
        graphs = iter(_graphs([link for block in blocks for link in block], backward))
        return [
            Batch(
                parts[step],
                self._batch(rows[step], ways[step], read[step], graphs, ids[step]),
                self.y[ids[step].clamp(min=0)].flatten(0, 1),
                ids[step] >= 0,
            )
            for step in range(len(ids))
        ]

    def _batch(
        self,
        rows: Sequence[_Rows],
        links: Sequence[_Links],
        read: Sequence[_Rows],
        graphs: Iterator[Graph],
        ids: Tensor,
    ) -> LevelBatch:
        lanes = len(ids)
        # All levels have the same nodes: what a lane has of them is counted once.
        first = LaneRows.even(torch.from_numpy(rows[0].multiplicity), lanes)
        hops = tuple(
            self._hop(
                number, next(graphs), link,
                LaneRows.even(torch.from_numpy(after.multiplicity), lanes, like=first),
            )
            for number, (after, link) in enumerate(zip(rows[1:], links, strict=True), 1)
        )  # fmt: skip
        weight = None  # the maximum has none
        if not self.tables.is_max:
            weight = torch.from_numpy(np.concatenate([own.pool for own in read]))
        readout = WeightedGraph(next(graphs), weight)
        known = None
        if self._first is not None:
            known = torch.where((ids >= 0).unsqueeze(2), self._first[ids.clamp(min=0)], 0)
            known = known.flatten(0, 1)
        return LevelBatch(hops, first, (readout,), known)

    def _level(self, number: int, ids: Ints) -> _Level:
        table, (steps, lanes, _) = self._levels[number], ids.shape
        safe = np.maximum(ids, 0).ravel()
        begin = table.graph_ptr.take(safe)
        length = np.where(ids.ravel() >= 0, table.graph_ptr.take(safe + 1) - begin, 0)
        position = _ranges(begin, length)
        lane = np.repeat(np.arange(steps * lanes), length.reshape(steps * lanes, -1).sum(1))
        colour = table.held.take(position)
        place = lane * table.size
        place += colour
        mark = self._mark(number, steps * lanes)
        order = np.arange(len(place), dtype=np.int32)
        mark[place] = order
        chosen = np.flatnonzero(mark.take(place) == order)  # one of each kind
        lane, colour = lane.take(chosen), colour.take(chosen)
        count = np.bincount(lane, minlength=steps * lanes)
        slots = np.maximum(count.reshape(steps, lanes).max(1), 1).repeat(lanes)
        end = slots.cumsum()
        row = (end - slots - count.cumsum() + count).take(lane)
        row += np.arange(len(chosen))
        mark[place.take(chosen)] = row
        held, count_of = mark.take(place), table.multiplicity.take(position)
        multiplicity = np.bincount(held, count_of, minlength=end[-1]).astype(count_of.dtype)
        first = np.append(0, end[lanes - 1 :: lanes])
        return _Level(
            lane, colour, row, multiplicity, first, length, held, table.pool.take(position)
        )

    def _mark(self, number: int, lanes: int) -> Ints:
        size = lanes * self._levels[number].size
        if len(self._marks[number]) < size:
            self._marks[number] = np.zeros(size, np.int32)
        return self._marks[number]

    def _links(self, number: int, before: _Level, after: _Level) -> _Links:
        below, table = self._levels[number - 1 : number + 1]
        mark, stride = self._marks[number - 1], self._stride
        begin = table.hop_ptr.take(after.colour)
        length = table.hop_ptr.take(after.colour + 1) - begin
        position = _ranges(begin, length)
        place = np.repeat(after.lane * below.size, length)
        source = table.col.take(position)
        if stride == 1:
            place += source
            col = mark.take(place)
        else:
            place += source // stride
            col = mark.take(place) * stride + source % stride
        lengths = np.zeros(len(after.multiplicity), np.int64)
        lengths[after.row] = length
        parent = None
        if table.parent is not None:
            parent = np.zeros(len(after.multiplicity), np.int64)
            parent[after.row] = mark.take(table.parent.take(after.colour) + after.lane * below.size)
        sources = len(before.multiplicity) * stride
        weight = table.weight.take(position)
        return _Links(lengths, col, sources, table.longest, weight, parent)

    def _hop(self, number: int, graph: Graph, link: _Links, rows: LaneRows) -> Hop:
        weight = torch.from_numpy(link.weight)
        parent = None if link.parent is None else torch.from_numpy(link.parent)
        if self._levels[number].has_self:
            return Hop(WeightedGraph(graph, weight, loops=True), parent, rows)
        if self.tables.is_max:
            return Hop(graph, parent, rows)
        graph.multiplicity = weight
        return Hop(WeightedGraph(graph, loops=True), parent, rows)


def _table(level: LevelRows, num_nodes: Tensor, pooling: float) -> _Table:
    """Return a level for NumPy, with the weights of the only task."""
    length = level.graph_ptr.diff()
    scale = num_nodes.clamp(min=1).pow(-pooling).repeat_interleave(length)
    hop = level.hop or Links(torch.zeros(1).long(), torch.zeros(0).long(), None)
    weight = level.multiplicity.new_ones(1, len(hop.col)) if hop.weight is None else hop.weight
    return _Table(
        size=level.size,
        graph_ptr=level.graph_ptr.numpy(),
        held=level.row.numpy(),
        multiplicity=level.multiplicity.numpy(),
        pool=(level.multiplicity * scale).numpy(),
        hop_ptr=hop.rowptr.numpy(),
        col=hop.col.numpy(),
        weight=weight[0].numpy(),
        longest=int(hop.rowptr.diff().amax()) if len(hop.rowptr) > 1 else 0,
        parent=None if level.parent is None else level.parent.numpy(),
        has_self=hop.has_self,
    )


def _read(levels: Sequence[_Rows]) -> _Links:
    """Return the way from the rows of these levels, one level after the other, to the graphs."""
    begin = np.cumsum([0, *(len(own.multiplicity) for own in levels)])
    held = np.concatenate([own.held + at for own, at in zip(levels, begin[:-1], strict=True)])
    length = np.concatenate([own.length for own in levels])
    weight = np.concatenate([own.pool for own in levels])
    return _Links(length, held, int(begin[-1]), int(length.max()), weight)


def _ranges(begin: Ints, length: Ints) -> Ints:
    """Return the numbers ``begin[i]`` to ``begin[i] + length[i]``, one i after the other."""
    end = length.cumsum()
    numbers: Ints = np.repeat(begin - end + length, length)
    numbers += np.arange(len(numbers))
    return numbers


def _graphs(links: list[_Links], backward: bool) -> list[Graph]:
    """Return the graphs; all are grouped by source in one go, as blocks of one matrix."""
    sources = np.cumsum([0, *(link.sources for link in links)])
    targets = np.cumsum([0, *(len(link.length) for link in links)])
    edges = np.cumsum([0, *(len(link.col) for link in links)])
    length = np.concatenate([link.length for link in links])
    ptr = np.zeros(len(length) + 1, np.int32)
    np.cumsum(length, out=ptr[1:])
    back = _transposed(ptr, links, sources) if backward else None
    out = []
    for number, link in enumerate(links):
        here = slice(targets[number], targets[number + 1] + 1)
        col = link.col.astype(np.int32, copy=False)
        by_target = CSR(
            _rebased(ptr[here], edges[number]), torch.from_numpy(col), None, link.longest
        )
        by_source = None
        if back is not None:
            there = slice(sources[number], sources[number + 1] + 1)
            own = slice(edges[number], edges[number + 1])
            by_source = CSR(
                _rebased(back[0][there], edges[number]),
                _rebased(back[1][own], targets[number]),
                _rebased(back[2][own], edges[number]),
                len(link.length),
            )
        out.append(Graph.from_csr(by_target, by_source, (link.sources, len(link.length))))
    return out


def _transposed(ptr: Ints, links: list[_Links], sources: Ints) -> tuple[Ints, Ints, Ints]:
    """Return where each source's edges begin, their targets, and their numbers by target."""
    at = sources.astype(np.int32)
    col = np.concatenate([link.col + by for link, by in zip(links, at[:-1], strict=True)])
    numbers = np.arange(len(col), dtype=np.int32)
    return transposed(ptr, col.astype(np.int32, copy=False), numbers, int(sources[-1]))


def _rebased(numbers: Ints, by: int) -> Tensor:
    return torch.from_numpy(numbers - np.int32(by))
