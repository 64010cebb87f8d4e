"""What `fill.py` says, in Triton: a kernel for the rows of a level, and one for a hop's edges."""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops.launch import ceil_div, on_device_of
from .plan import LevelSlots, LinkSlots
from .tables import Links

_TILE = 512  # places that a program fills


@triton.jit
def _slot_of(begin, slots, place, STEPS: tl.constexpr):
    """Find the slot of each place, by bisection; ``slots`` where there is none."""
    low = tl.zeros_like(place)
    high = low + slots + 1
    for _ in range(STEPS):
        middle = (low + high) // 2
        owns = tl.load(begin + middle) <= place
        low = tl.where(owns, middle, low)
        high = tl.where(owns, high, middle)
    return low


@triton.jit
def _rows_kernel(
    first, length, begin, times, row, nodes, slot_of, slots, rows, nothing,
    STEPS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Fill the rows of a level."""
    place = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = place < rows
    slot = _slot_of(begin, slots, place, STEPS)
    live = slot < slots
    inner = place - tl.load(begin + slot)
    there = inner < tl.load(length + slot, mask=live, other=0)
    source = tl.where(there, tl.load(first + slot, mask=live, other=0) + inner, nothing)
    tl.store(row + place, source, mask=inside)
    tl.store(nodes + place, tl.load(times + source, mask=inside), mask=inside)
    tl.store(slot_of + place, tl.minimum(slot, slots - 1), mask=inside)


@triton.jit
def _fill_pointers(
    tile, first, begin, table, row, slot_of, out, slots, pointers, nothing,
    STRIDE: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Fill pointers of rows to edges; a row has STRIDE of them, and one stands behind the last."""
    place = tile * TILE + tl.arange(0, TILE)
    inside = place < pointers - 1
    owner = place // STRIDE
    own = tl.load(row + owner, mask=inside, other=nothing)
    slot = tl.load(slot_of + owner, mask=inside, other=slots - 1)
    held = own < nothing
    start = tl.load(begin + slot)
    moved = tl.load(table + own * STRIDE + place % STRIDE, mask=held, other=0)
    moved += start - tl.load(first + slot)
    value = tl.where(held, moved, tl.load(begin + slot + 1))
    tl.store(out + place, value, mask=place < pointers)


@triton.jit
def _links_kernel(
    first, begin, below_first, below_begin, here_first, here_begin, kind,
    table_ptr, table_col, table_weight, table_back_ptr, table_back_col, table_back_edge,
    row, slot_of, below_row, below_slot,
    rowptr, col, weight, back_ptr, back_col, back_edge,
    slots, graphs, edges, nothing, pointers, nothing_row, back_pointers, nothing_below,
    edge_tiles, row_tiles,
    KINDS: tl.constexpr, STRIDE: tl.constexpr, STEPS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Fill the edges of a hop, and the pointers of its targets and sources to them."""
    tile = tl.program_id(0)
    if tile < edge_tiles:
        place = tile * TILE + tl.arange(0, TILE)
        slot = _slot_of(begin, slots, place, STEPS)
        there = (place < edges) & (slot < slots)
        start = tl.load(first + slot, mask=there, other=0)
        shift = tl.load(begin + slot, mask=there, other=0) - start
        position = place - shift
        below = tl.load(below_begin + slot, mask=there, other=0)
        below -= tl.load(below_first + slot, mask=there, other=0)
        here = tl.load(here_begin + slot, mask=there, other=0)
        here -= tl.load(here_first + slot, mask=there, other=0)
        source = tl.load(table_col + position, mask=there, other=0) + below * STRIDE
        target = tl.load(table_back_col + position, mask=there, other=0) + here
        number = tl.load(table_back_edge + position, mask=there, other=0) + shift
        tl.store(col + place, source, mask=there)
        tl.store(back_col + place, target, mask=there)
        tl.store(back_edge + place, number, mask=there)
        if weight is not None:
            at = position
            if KINDS > 1:
                at += tl.load(kind + slot // graphs, mask=there, other=0) * (nothing + 1)
            tl.store(weight + place, tl.load(table_weight + at, mask=there, other=0), mask=there)
    elif tile < edge_tiles + row_tiles:
        _fill_pointers(
            tile - edge_tiles, first, begin, table_ptr, row, slot_of, rowptr, slots, pointers,
            nothing_row, 1, TILE,
        )  # fmt: skip
    else:
        _fill_pointers(
            tile - edge_tiles - row_tiles, first, begin, table_back_ptr, below_row, below_slot,
            back_ptr, slots, back_pointers, nothing_below, STRIDE, TILE,
        )  # fmt: skip


def rows(slots: LevelSlots, times: Tensor, room: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rows of the tables, their nodes and their slots: ``[R]``."""
    count = len(slots.first)
    row, slot_of = (torch.empty(room, dtype=torch.int32, device=times.device) for _ in range(2))
    nodes = times.new_empty(room)
    with on_device_of(times):
        _rows_kernel[(ceil_div(room, _TILE),)](
            slots.first, slots.length, slots.begin, times, row, nodes, slot_of, count, room,
            len(times) - 1, STEPS=_steps(count), TILE=_TILE,
        )  # fmt: skip
    return row, nodes, slot_of


def links(
    table: Links,
    slots: LinkSlots,
    levels: tuple[LevelSlots, LevelSlots],
    filled: tuple[Any, Any],
    kind: Tensor,
    room: int,
) -> tuple[Any, ...]:
    """Return the edges, as ``FilledLinks`` has them."""
    (below, here), (below_rows, here_rows) = levels, filled
    count, stride = len(slots.first), table.stride
    pointers, back_pointers = len(here_rows.row) + 1, len(below_rows.row) * stride + 1
    sizes = (pointers, room, back_pointers, room, room)
    rowptr, col, back_ptr, back_col, back_edge = (
        torch.empty(size, dtype=torch.int32, device=table.col.device) for size in sizes
    )
    kinds = 0 if table.weight is None else len(table.weight)
    weight = None if table.weight is None else table.weight.new_empty(room)
    tiles = [ceil_div(size, _TILE) for size in (room, pointers, back_pointers)]
    with on_device_of(table.col):
        _links_kernel[(sum(tiles),)](
            slots.first, slots.begin, below.first, below.begin, here.first, here.begin, kind,
            table.rowptr, table.col, table.weight, table.back_ptr, table.back_col,
            table.back_edge, here_rows.row, here_rows.slot, below_rows.row, below_rows.slot,
            rowptr, col, weight, back_ptr, back_col, back_edge,
            count, count // len(kind), room, len(table.col) - 1, pointers, len(table.rowptr) - 1,
            back_pointers, (len(table.back_ptr) - 1) // stride, tiles[0], tiles[1],
            KINDS=kinds, STRIDE=stride, STEPS=_steps(count), TILE=_TILE,
        )  # fmt: skip
    return rowptr, col, weight, back_ptr, back_col, back_edge


def _steps(slots: int) -> int:
    """Return how many bisections find one of so many slots, or none."""
    return (slots + 1).bit_length()
