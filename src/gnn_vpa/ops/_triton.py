"""Kernels for CUDA, in Triton: one program a row, no atomics, no synchronisation.

A row's edges are read in tiles of ``[TILE, BLOCK]`` (edges x features) and summed in a fixed order
(``_triton_span``), so every run gives the same bits. Rows longer than ``_LONG`` are cut at
multiples of ``_LONG``: ``_piece_kernel`` sums the pieces, one program each, and the row's own
program adds them. Shapes alone decide what is launched, so a CUDA graph can capture every
operator.
"""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ._csr import CSR
from ._dtypes import accumulator
from ._triton_short import _short_rows_kernel, _short_winner_kernel
from ._triton_span import _joined, _matching, _span
from .launch import FEW_EDGES, MIN_EDGES_ALONE, ceil_div, on_device_of, power_of_2

_HUGE = 1024  # edges of a row that one program reads: longer ones are cut into pieces
_LONG = 128  # edges of a piece
_FULL = 1 << 20  # numbers of a result that fill a GPU
_MANY = 64  # edges a row, on average, from which on rows share features, not edges
_ACCUMULATORS = {torch.float32: tl.float32, torch.float64: tl.float64}


@triton.jit
def _row_of(rowptr, position, num_rows):
    """Find the row that owns ``position``: the last one that starts at or before it."""
    low = position * 0
    high = low + num_rows
    while high - low > 1:
        middle = (low + high) // 2
        if tl.load(rowptr + middle) <= position:
            low = middle
        else:
            high = middle
    return low


@triton.jit
def _piece_kernel(
    x, w, b, rowptr, col, edge, pieces, num_rows, num_edges, size, heads, b_heads, width,
    MAX: tl.constexpr, ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
    LONG: tl.constexpr,
):  # fmt: skip
    """Reduce what long rows have in the positions ``piece * LONG`` to ``(piece + 1) * LONG``.

    At most two long rows share a piece: the one that owns its first position (slot 0) and the
    one that owns its last (slot 1).
    """
    piece = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = d < size
    begin = piece * LONG
    end = tl.minimum(begin + LONG, num_edges)
    left = _row_of(rowptr, begin, num_rows)
    right = _row_of(rowptr, end - 1, num_rows)
    place = pieces + piece.to(tl.int64) * 2 * size + d
    left_end = tl.load(rowptr + left + 1)
    if left_end - tl.load(rowptr + left) > LONG:
        value = _span(x, w, b, col, edge, begin, tl.minimum(end, left_end), d, inside, size,
                      heads, b_heads, width, MAX, ACC, TILE, BLOCK)  # fmt: skip
        tl.store(place, value, mask=inside)
    right_start = tl.load(rowptr + right)
    if (right != left) & (tl.load(rowptr + right + 1) - right_start > LONG):
        value = _span(x, w, b, col, edge, right_start, end, d, inside, size,
                      heads, b_heads, width, MAX, ACC, TILE, BLOCK)  # fmt: skip
        tl.store(place + size, value, mask=inside)


@triton.jit
def _row_kernel(
    x, w, a, b, rowptr, col, edge, pieces, out, size, heads, a_heads, b_heads, width,
    MAX: tl.constexpr, ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
    LONG: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Reduce one row and scale it."""
    row = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = d < size
    start = tl.load(rowptr + row)
    end = tl.load(rowptr + row + 1)
    if pieces is None:
        value = _span(x, w, b, col, edge, start, end, d, inside, size, heads, b_heads, width,
                      MAX, ACC, TILE, BLOCK)  # fmt: skip
    elif end - start > LONG:
        value = _joined(pieces, start, end, d, inside, size, MAX, ACC, WIDE, BLOCK, LONG)
    else:
        value = _span(x, w, b, col, edge, start, end, d, inside, size, heads, b_heads, width,
                      MAX, ACC, TILE, BLOCK)  # fmt: skip
    if MAX:
        present = end > start
        if w is not None:
            present = start < start
            for first in range(start, end, TILE):
                position = first + tl.arange(0, TILE)
                live = position < end
                number = position
                if edge is not None:
                    number = tl.load(edge + position, mask=live, other=0)
                counts = tl.load(w + number, mask=live, other=0)
                present = present | (tl.max(counts, 0) > 0)
        value = tl.where(present, value, 0.0)
    if a is not None:
        value *= tl.load(a + row * a_heads + (d // width) % a_heads, mask=inside, other=0)
    tl.store(out + row * size + d, value, mask=inside)


@triton.jit
def _dot_kernel(
    g, x, a, b, rowptr, col, edge, out, num_rows, num_edges, heads, a_heads, b_heads, width,
    ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """Dot products of ``TILE`` edges for one head."""
    position = tl.program_id(0) * TILE + tl.arange(0, TILE)
    head = tl.program_id(1)
    live = position < num_edges
    low = tl.zeros([TILE], rowptr.dtype.element_ty)
    high = low + num_rows
    for _ in range(STEPS):
        middle = (low + high) // 2
        owns = tl.load(rowptr + middle, mask=live & (high - low > 1), other=0) <= position
        low = tl.where(owns, middle, low)
        high = tl.where(owns, high, middle)
    target = low.to(tl.int64)
    source = tl.load(col + position, mask=live, other=0).to(tl.int64)
    total = tl.zeros([TILE, BLOCK], ACC)
    for first in range(0, width, BLOCK):
        f = first + tl.arange(0, BLOCK)
        mask = live[:, None] & (f < width)[None, :]
        left = tl.load(
            g + (target * heads + head)[:, None] * width + f[None, :], mask=mask, other=0
        )
        right = tl.load(
            x + (source * heads + head)[:, None] * width + f[None, :], mask=mask, other=0
        )
        total += left.to(ACC) * right.to(ACC)
    value = tl.sum(total, 1)
    if a is not None:
        value *= tl.load(a + target * a_heads + head % a_heads, mask=live, other=0)
    if b is not None:
        value *= tl.load(b + source * b_heads + head % b_heads, mask=live, other=0)
    number = position
    if edge is not None:
        number = tl.load(edge + position, mask=live, other=0)
    tl.store(out + number.to(tl.int64) * heads + head, value, mask=live)


@triton.jit
def _winner_kernel(
    own, other, share, m, divided, rowptr, col, edge, out, size,
    ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum, over a row's edges, the share of those whose two ends hold the same value."""
    row = tl.program_id(0).to(tl.int64)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = d < size
    mine = tl.load(own + row * size + d, mask=inside, other=0)
    start = tl.load(rowptr + row)
    end = tl.load(rowptr + row + 1)
    value = _matching(mine, other, share, m, col, edge, start, end, d, inside, size, ACC, TILE,
                      BLOCK)  # fmt: skip
    if divided is not None:
        value = tl.where(value > 0, value, 1.0)
        value = tl.load(divided + row * size + d, mask=inside, other=0).to(ACC) / value
    tl.store(out + row * size + d, value, mask=inside)


def spmm(x: Tensor, w: Tensor | None, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    out = x.new_empty(csr.rowptr.numel() - 1, *x.shape[1:])
    _reduce(x.contiguous(), w, a, b, csr, out, heads=x.shape[1], is_max=False)
    return out


def segmax(x: Tensor, m: Tensor | None, csr: CSR) -> Tensor:
    out = x.new_empty(csr.rowptr.numel() - 1, x.shape[1])
    _reduce(x.contiguous(), m, None, None, csr, out, heads=1, is_max=True)
    return out


def _reduce(
    x: Tensor, w: Tensor | None, a: Tensor | None, b: Tensor | None, csr: CSR, out: Tensor,
    heads: int, is_max: bool,
) -> None:  # fmt: skip
    num_rows, num_edges, size = len(out), csr.col.numel(), math.prod(x.shape[1:])
    if out.numel() == 0:
        return
    w, a, b = (None if t is None else t.contiguous() for t in (w, a, b))
    a_heads, b_heads = (1 if t is None else t.shape[1] for t in (a, b))
    shape = _tiling(size, num_edges / num_rows, x.dtype)
    shape |= {"MAX": is_max, "ACC": _ACCUMULATORS[accumulator(x.dtype)], "LONG": _LONG}
    blocks = ceil_div(size, shape["BLOCK"])
    sizes = (size, heads, b_heads, size // heads)
    pieces = None
    # A long row is read in wide tiles, which take fewer turns.
    wide = min(_LONG, 1024 // shape["BLOCK"])
    with on_device_of(x):
        if csr.longest > _HUGE:
            count = ceil_div(num_edges, _LONG)
            pieces = x.new_empty(count, 2, size, dtype=accumulator(x.dtype))
            _piece_kernel[(count, blocks)](
                x, w, b, *csr[:3], pieces, num_rows, num_edges, *sizes, **shape | {"TILE": wide}
            )
        if heads == a_heads == b_heads == 1 and num_edges <= FEW_EDGES * num_rows:
            together = _together(x, num_rows, shape["BLOCK"], csr)
            _short_rows_kernel[(ceil_div(num_rows, together["ROWS"]), blocks)](
                x, w, a, b, *csr[:3], pieces, out, num_rows, size,
                MAX=is_max, ACC=shape["ACC"], LONG=_LONG, WIDE=wide, **together,
            )  # fmt: skip
            return
        _row_kernel[(num_rows, blocks)](
            x, w, a, b, *csr[:3], pieces, out, size, heads, a_heads, b_heads, size // heads,
            WIDE=wide, **shape,
        )  # fmt: skip


def spmm_narrow(x: Tensor, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    """Return ``a_i * sum_j b_j x_j`` for ``x [S, F]``: ``spmm`` of one head without weights."""
    return spmm(x.unsqueeze(1), None, a, b, csr).squeeze(1)


def sddmm(g: Tensor, x: Tensor, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    num_edges, heads, width = csr.col.numel(), x.shape[1], x.shape[2]
    num_rows = csr.rowptr.numel() - 1
    out = x.new_empty(num_edges, heads, dtype=accumulator(x.dtype))
    if out.numel() == 0:
        return out
    a, b = (None if t is None else t.contiguous() for t in (a, b))
    a_heads, b_heads = (1 if t is None else t.shape[1] for t in (a, b))
    block = min(128, power_of_2(width))
    tile = max(4, 1024 // block)
    with on_device_of(x):
        _dot_kernel[(ceil_div(num_edges, tile), heads)](
            g.contiguous(), x.contiguous(), a, b, *csr[:3], out,
            num_rows, num_edges, heads, a_heads, b_heads, width,
            ACC=_ACCUMULATORS[out.dtype], TILE=tile, BLOCK=block, STEPS=num_rows.bit_length() + 1,
            num_warps=2,
        )  # fmt: skip
    return out


def winners(own: Tensor, other: Tensor, share: Tensor | None, m: Tensor | None, csr: CSR) -> Tensor:
    return _winners(own, other, share, m, None, csr, accumulator(own.dtype))


def segmax_gradient(
    g: Tensor, x: Tensor, out: Tensor, m: Tensor | None, by_row: CSR, by_col: CSR
) -> Tensor:
    """Return the gradient of ``segmax`` by ``x``: a row's is shared evenly among those that win."""
    share = _winners(out, x, None, m, g.contiguous(), by_row, accumulator(x.dtype))
    return _winners(x, out, share, m, None, by_col, x.dtype)


def _winners(
    own: Tensor, other: Tensor, share: Tensor | None, m: Tensor | None, divided: Tensor | None,
    csr: CSR, dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """Return what ``winners`` does; or ``divided [R, F]`` by it, and by 1 where it is 0."""
    size = own.shape[1]
    out = own.new_empty(own.shape, dtype=dtype)
    if csr.col.numel() == 0:
        return out.zero_()
    if out.numel() > 0:
        share, m = (None if t is None else t.contiguous() for t in (share, m))
        degree = csr.col.numel() / len(own)
        shape = _tiling(size, degree, own.dtype)
        with on_device_of(own):
            if degree <= FEW_EDGES:
                together = _together(own, len(own), shape["BLOCK"], csr)
                blocks = ceil_div(len(own), together["ROWS"]), ceil_div(size, shape["BLOCK"])
                _short_winner_kernel[blocks](
                    own.contiguous(), other.contiguous(), share, m, divided, *csr[:3], out,
                    len(own), size, ACC=_ACCUMULATORS[accumulator(dtype)], **together,
                )  # fmt: skip
                return out
            if degree > _MANY:
                # Few features of many edges at a time: rows are few, and take fewer turns.
                shape |= {"TILE": 128, "BLOCK": min(16, shape["BLOCK"]), "num_warps": 4}
            _winner_kernel[(len(own), ceil_div(size, shape["BLOCK"]))](
                own.contiguous(), other.contiguous(), share, m, divided, *csr[:3], out, size,
                ACC=_ACCUMULATORS[accumulator(dtype)], **shape,
            )  # fmt: skip
    return out


def _tiling(size: int, degree: float, dtype: torch.dtype) -> dict[str, Any]:
    """Choose edges x features of a tile: about a row's edges, within a warp's registers."""
    block, room = min(128, power_of_2(size)), 1024
    if dtype.itemsize == 2:  # a warp reads half types in fewer loads, and wants fewer at a time
        if degree > _MANY:  # rows are few: they share features too, and take fewer turns
            block = min(32, block)
        else:
            room = 512
    tile = max(4, min(room // block, power_of_2(round(degree))))
    return {"TILE": tile, "BLOCK": block, "num_warps": 1 if tile * block <= 1024 else 2}


def _together(x: Tensor, num_rows: int, block: int, csr: CSR) -> dict[str, int]:
    """Choose rows x features of a tile for rows of few edges, and edges that are read at once.

    A result that fills the GPU is cut into few programs, of many rows each. A smaller one is cut
    so that a thread loads 16 bytes at a time; and where rows are read alone, one after the other,
    a program has one warp, whose rows are few.
    """
    numbers, threads, tile, at_once = num_rows * math.prod(x.shape[1:]), 128, 4, 2048
    # Of more threads than rows with indices of 64 bits Triton 3.6 makes loads that it refuses.
    if numbers < _FULL and csr.col.dtype == torch.int32:
        if csr.longest > MIN_EDGES_ALONE and numbers < _FULL // 2:
            threads, tile = 32, 8
        at_once = threads * 16 // x.element_size()
    rows = max(1, min(128, at_once // block))
    warps = max(1, min(threads, rows * block) // 32)
    return {
        "ROWS": rows,
        "TILE": tile,
        "BLOCK": block,
        "ALONE": MIN_EDGES_ALONE,
        "num_warps": warps,
    }
