"""Where the graphs of many steps' batches go: what is left to do once their order is known.

A batch is a list of graphs for each lane, and a graph's rows and edges are ranges of `tables.py`. A
lane owns as many blocks of rows of a level as it needs, and a step can hold the same number of
blocks and edges, so that a captured step fits all batches of a size. A slot is the place of a graph
in a batch: S = L * B of them, B for each of L lanes. `fill.py` puts rows and edges there.

Nothing here looks at a value on the host, and a call plans many steps at once.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .tables import Rows, Tables


class StepCapacity(NamedTuple):
    """What a captured step can hold of a level, for all lanes together."""

    blocks: int
    size: int  # rows of a block
    most: int  # blocks of a lane, at most
    edges: int  # of the hop from the level below

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.blocks * self.size


class StepDemand(NamedTuple):
    """What each of K steps needs of a level."""

    size: int  # rows of a block
    blocks: Tensor  # [K]
    most: Tensor  # [K], blocks of a lane
    edges: Tensor  # [K]

    def capacity(self, steps: Tensor | slice) -> StepCapacity:
        """Return a capacity that suffices for all of these steps."""
        blocks, most, edges = (int(part[steps].max()) for part in self[1:])
        return StepCapacity(blocks, self.size, most, edges + 1)


class LinkSlots(NamedTuple):
    """Where the edges of each slot go, in K steps."""

    first: Tensor  # [K, S], the first edge in the tables
    begin: Tensor  # [K, S + 1], the first edge in the step; the next slot's follow at once


class LevelSlots(NamedTuple):
    """Where the rows of each slot go, in K steps with C blocks.

    Rows that fill up a lane's last block belong to its last slot, and count 0 times.
    """

    first: Tensor  # [K, S], the first row in the tables
    length: Tensor  # [K, S]
    begin: Tensor  # [K, S + 1], the first row in the step
    block: Tensor  # [K, L + 1], the first block of each lane
    lane: Tensor  # [K, C], of each block
    hop: LinkSlots | None
    parent: LinkSlots | None


class Plan(NamedTuple):
    """K steps."""

    y: Tensor  # [K, S], or [K, S * T]
    real: Tensor  # [K, L, B]
    pool: Tensor  # [K, S], the readout's scale
    levels: tuple[LevelSlots, ...]


def plan(
    tables: Tables, task_of_lane: Tensor, ids: Tensor, capacities: tuple[StepCapacity, ...]
) -> Plan:
    """Plan K steps.

    Args:
        tables: The data set.
        task_of_lane: The task of each lane, by its place in the family: ``[L]``.
        ids: The graphs of each step and lane, ``[K, L, B]``, ``EMPTY`` where there is none.
        capacities: What steps can hold of each level, which must suffice.
    """
    real, safe = ids >= 0, ids.clamp(min=0)
    known = tables.by_level
    pool = _power(known.num_nodes[safe], known.pooling[task_of_lane].unsqueeze(1))
    levels = [
        _placed(level, real, safe, capacity)
        for level, capacity in zip(tables.levels, capacities, strict=True)
    ]
    return Plan(known.y[safe].flatten(1), real, pool.flatten(1), tuple(levels))


def _placed(level: Rows, real: Tensor, safe: Tensor, capacity: StepCapacity) -> LevelSlots:
    first, count = _ranges(level.ptr, real, safe)
    owned = blocks(count.view_as(real).sum(2), capacity.size)
    block = _pointers(owned)
    lane = _owners(owned, capacity.blocks).clamp(max=real.shape[1] - 1)
    inside = count.view_as(real).cumsum(2) - count.view_as(real)
    begin = ((block[:, :-1] * capacity.size).unsqueeze(2) + inside).flatten(1)
    begin = torch.cat([begin, block[:, -1:] * capacity.size], 1)
    hop, parent = (
        None if links is None else _linked(links.ptr, real, safe)
        for links in (level.hop, level.parent)
    )
    return LevelSlots(first, count, begin, block, lane, hop, parent)


def _linked(ptr: Tensor, real: Tensor, safe: Tensor) -> LinkSlots:
    first, count = _ranges(ptr, real, safe)
    return LinkSlots(first, _pointers(count))


def _ranges(ptr: Tensor, real: Tensor, safe: Tensor) -> tuple[Tensor, Tensor]:
    """Return where each slot's range of the tables begins, and its length: ``[K, S]``."""
    first = ptr[safe]
    return first.flatten(1), torch.where(real, ptr[safe + 1] - first, 0).flatten(1)


def blocks(rows: Tensor, size: int) -> Tensor:
    """Return how many blocks so many rows need: at least one.

    Example:
        >>> blocks(torch.tensor([0, 64, 65]), 64)
        tensor([1, 1, 2])
    """
    return ((rows + size - 1) // size).clamp(min=1)


def _owners(lengths: Tensor, places: int) -> Tensor:
    """Give each of ``lengths [K, L]`` as many of the places; L owns those that are left."""
    left = places - lengths.sum(1, keepdim=True)
    filled = torch.cat([lengths, left], dim=1)
    number = torch.arange(filled.shape[1], device=filled.device).repeat(len(filled))
    owner = number.repeat_interleave(filled.flatten(), output_size=len(filled) * places)
    return owner.view(len(filled), places)


def _pointers(lengths: Tensor) -> Tensor:
    """Return where each begins, and where the last one ends: ``[K, Z] -> [K, Z + 1]``."""
    return torch.nn.functional.pad(lengths.cumsum(1), (1, 0))


def _power(numbers: Tensor, exponent: Tensor) -> Tensor:
    """Return ``N^(-p)``, and 0 for 0."""
    some = torch.where(numbers > 0, numbers, 1)
    return torch.where(numbers > 0, some.pow(-exponent), 0)


def demands(tables: Tables, ids: Tensor) -> list[StepDemand]:
    """Return what steps ``[K, L, B]`` need of each level."""
    flat = ids.flatten()
    levels = []
    for level in tables.levels:
        size = _block_size(level.ptr.diff(), ids.shape[2])
        owned = blocks(_lengths(level.ptr, flat).view_as(ids).sum(2), size)
        edges = torch.zeros_like(owned[:, 0])
        if level.hop is not None:
            edges = _lengths(level.hop.ptr, flat).view(len(ids), -1).sum(1)
        # One block is left over, so that the last row never holds a node.
        levels.append(StepDemand(size, owned.sum(1) + 1, owned.amax(1), edges))
    return levels


def _lengths(ptr: Tensor, ids: Tensor) -> Tensor:
    """Return the length of each graph's range, 0 where there is no graph."""
    return torch.nn.functional.pad(ptr.diff().int(), (0, 1))[ids]  # EMPTY is the last


def _block_size(nodes: Tensor, batch_size: int) -> int:
    """Return a power of 2 so that a lane has some ten blocks: little is left over in the last."""
    rows = float(nodes.float().mean()) * batch_size
    return int(min(max(2 ** round(math.log2(max(rows, 1) / 10)), 64), 1024))
