"""Level tables as steps on a GPU are planned from: ranges of a graph, grouped both ways.

Rows of different graphs are never one: a batch is then made of ranges of these tables, and nothing
is sorted or compared in a step.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..ops import Graph
from ..ops.internal import CSR
from . import level_tables as by_level
from .level_tables import LevelRows, LevelTables


class Links(NamedTuple):
    """Edges from S sources, rows of one level, to the T rows of the next: E edges.

    They stand graph after graph, grouped by target and by source. The extra last entry is what
    unused slots read.
    """

    ptr: Tensor  # [G + 1], the edges of each graph, in both groupings
    rowptr: Tensor  # [T + 1], edges of each target
    col: Tensor  # [E + 1], sources by target
    weight: Tensor | None  # [A, E + 1], for each task; [1, E + 1] for all alike
    back_ptr: Tensor  # [S * stride + 1], edges of each source
    back_col: Tensor  # [E + 1], targets by source
    back_edge: Tensor  # [E + 1], and where these edges stand by target
    longest: int
    back_longest: int
    stride: int  # how many sources a row of the level below is


class Rows(NamedTuple):
    """One level: C rows, graph after graph."""

    ptr: Tensor  # [G + 1], the rows of each graph
    largest: int  # rows of a graph, at most
    multiplicity: Tensor  # [C + 1], how many nodes a row stands for
    hop: Links | None  # from the level below
    parent: Links | None  # the row below that each stems from, where a model reads it

    @property
    def links(self) -> list[Links]:
        """The links that there are."""
        return [links for links in (self.hop, self.parent) if links is not None]


class Tables(NamedTuple):
    """A data set as the tasks of a family see it."""

    by_level: LevelTables
    x: Tensor  # [A or 1, C + 1, ...], features of the first level's rows
    levels: tuple[Rows, ...]

    @property
    def y(self) -> Tensor:
        """What is learned of each graph, ``[G]`` or ``[G, T]``."""
        return self.by_level.y

    @property
    def first_read(self) -> int:
        """The first level that is read out."""
        return 0 if self.by_level.reads_all_levels else len(self.levels) - 1


def tables(known: LevelTables) -> Tables:
    """Group the edges of level tables, which must be graph by graph, both ways."""
    x = torch.nn.functional.pad(known.x, (0,) * (2 * known.x.dim() - 4) + (0, 1))
    sizes = [0, *(level.size for level in known.levels)]
    made = [_rows(level, below) for below, level in zip(sizes, known.levels, strict=False)]
    return Tables(known, x, tuple(made))


def _rows(level: LevelRows, below: int) -> Rows:
    parent = None
    if level.parent is not None:
        one_each = torch.arange(level.size + 1, device=level.parent.device)
        parent = _grouped(by_level.Links(one_each, level.parent, None), level, below)
    hop = None if level.hop is None else _grouped(level.hop, level, below)
    largest = int(level.graph_ptr.diff().max())
    return Rows(level.graph_ptr, largest, padded(level.multiplicity), hop, parent)


def _grouped(links: by_level.Links, level: LevelRows, below: int) -> Links:
    csr = CSR(links.rowptr.int(), links.col.int(), None, len(links.col))
    back = Graph.from_csr(csr, None, (below * links.stride, level.size)).by_source
    assert back.edge is not None
    return Links(
        links.rowptr[level.graph_ptr],
        csr.rowptr,
        padded(csr.col),
        None if links.weight is None else padded(links.weight),
        back.rowptr,
        padded(back.col),
        padded(back.edge),
        int(csr.rowptr.diff().max()),
        back.longest,
        links.stride,
    )


def padded(values: Tensor) -> Tensor:
    """Put a 0 behind the last: what unused slots read.

    Example:
        >>> padded(torch.tensor([3, 4]))
        tensor([3, 4, 0])
    """
    return torch.nn.functional.pad(values, (0, 1))
