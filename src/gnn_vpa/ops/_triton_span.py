"""One row of any length, by one program: what kernels for long and for short rows share.

A sum over many edges has three steps, so that its rounding does not grow with the length of a row:
``_TURNS`` tiles one after the other in registers, the positions of a tile pairwise, and the chunks
that come out of this with compensation (Kahan).
"""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

import triton
import triton.language as tl

_TURNS = tl.constexpr(16)  # tiles that are summed one after the other


@triton.jit
def _with_chunk(total, lost, chunk, MAX: tl.constexpr):
    """Reduce ``total`` and one chunk more; a sum has ``lost`` what rounding took from it so far."""
    if MAX:
        return _combine(total, chunk, MAX), lost
    chunk -= lost
    longer = total + chunk
    lost = (longer - total) - chunk
    # An infinite sum has lost nothing: infinity less infinity would make it NaN.
    return longer, tl.where(tl.abs(lost) < float("inf"), lost, 0.0)


@triton.jit
def _combine(left, right, MAX: tl.constexpr):
    if MAX:
        return _nan_max(left, right)
    return left + right


@triton.jit
def _nan_max(left, right):
    return tl.maximum(left, right, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _fold(tile, MAX: tl.constexpr):
    if MAX:
        return tl.reduce(tile, 0, _nan_max)
    return tl.sum(tile, 0)


@triton.jit
def _span(
    x, w, b, col, edge, start, end, d, inside, size, heads, b_heads, width,
    MAX: tl.constexpr, ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Reduce the positions ``start:end`` of one row to the features ``d``."""
    nothing = float("-inf") if MAX else 0.0
    total = tl.full([BLOCK], nothing, ACC)
    if end - start <= TILE * _TURNS:  # one chunk, as of most rows: nothing is lost between chunks
        total = _chunk(x, w, b, col, edge, start, end, end, d, inside, size, heads, b_heads, width,
                       MAX, ACC, TILE, BLOCK)  # fmt: skip
    else:
        lost = tl.zeros([BLOCK], ACC)
        for begin in range(start, end, TILE * _TURNS):
            till = tl.minimum(begin + TILE * _TURNS, end)
            chunk = _chunk(x, w, b, col, edge, begin, till, end, d, inside, size, heads, b_heads,
                           width, MAX, ACC, TILE, BLOCK)  # fmt: skip
            total, lost = _with_chunk(total, lost, chunk, MAX)
    return total


@triton.jit
def _chunk(
    x, w, b, col, edge, begin, till, end, d, inside, size, heads, b_heads, width,
    MAX: tl.constexpr, ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Reduce the tiles that begin in ``begin:till``."""
    chunk = tl.full([TILE, BLOCK], float("-inf") if MAX else 0.0, ACC)
    for first in range(begin, till, TILE):
        values = _values(x, w, b, col, edge, first, end, d, inside, size, heads, b_heads, width,
                         MAX, ACC, TILE)  # fmt: skip
        chunk = _combine(chunk, values, MAX)
    return _fold(chunk, MAX)


@triton.jit
def _values(
    x, w, b, col, edge, first, end, d, inside, size, heads, b_heads, width,
    MAX: tl.constexpr, ACC: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Load a tile of what a row reduces, ``[TILE, BLOCK]``: the positions from ``first`` on."""
    head = d // width
    position = first + tl.arange(0, TILE)
    live = position < end
    number = position
    if edge is not None:
        number = tl.load(edge + position, mask=live, other=0)
    if w is not None and MAX:
        live = live & (tl.load(w + number, mask=live, other=0) > 0)
    source = tl.load(col + position, mask=live, other=0).to(tl.int64)
    mask = live[:, None] & inside[None, :]
    nothing = float("-inf") if MAX else 0.0
    values = tl.load(x + source[:, None] * size + d[None, :], mask=mask, other=nothing)
    values = values.to(ACC)
    if b is not None:
        if b_heads == 1:
            values *= tl.load(b + source, mask=live, other=0)[:, None]
        else:
            place = source[:, None] * b_heads + head[None, :]
            values *= tl.load(b + place, mask=mask, other=0)
    if w is not None and not MAX:
        if heads == 1:
            values *= tl.load(w + number, mask=live, other=0).to(ACC)[:, None]
        else:
            place = number.to(tl.int64)[:, None] * heads + head[None, :]
            values *= tl.load(w + place, mask=mask, other=0).to(ACC)
    return values


@triton.jit
def _matching(
    mine, other, share, m, col, edge, start, end, d, inside, size,
    ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum the share of those of the positions ``start:end`` whose other end holds ``mine``."""
    total = tl.zeros([BLOCK], ACC)
    lost = tl.zeros([BLOCK], ACC)
    for begin in range(start, end, TILE * _TURNS):
        chunk = tl.zeros([TILE, BLOCK], ACC)
        for first in range(begin, tl.minimum(begin + TILE * _TURNS, end), TILE):
            position = first + tl.arange(0, TILE)
            live = position < end
            mask = live[:, None] & inside[None, :]
            source = tl.load(col + position, mask=live, other=0).to(tl.int64)
            place = source[:, None] * size + d[None, :]
            same = (tl.load(other + place, mask=mask, other=0) == mine[None, :]) & mask
            value = tl.where(same, 1.0, 0.0).to(ACC)
            if share is not None:
                value *= tl.load(share + place, mask=same, other=0)
            if m is not None:
                number = position
                if edge is not None:
                    number = tl.load(edge + position, mask=live, other=0)
                value *= tl.load(m + number, mask=live, other=0).to(ACC)[:, None]
            chunk += value
        total, lost = _with_chunk(total, lost, tl.sum(chunk, 0), False)
    return total


@triton.jit
def _joined(
    pieces, start, end, d, inside, size,
    MAX: tl.constexpr, ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
    LONG: tl.constexpr,
):  # fmt: skip
    """Reduce the pieces of the long row ``start:end``."""
    nothing = float("-inf") if MAX else 0.0
    total = tl.full([BLOCK], nothing, ACC)
    lost = tl.zeros([BLOCK], ACC)
    last = (end - 1) // LONG + 1
    for begin in range(start // LONG, last, TILE * _TURNS):
        chunk = tl.full([TILE, BLOCK], nothing, ACC)
        for first in range(begin, tl.minimum(begin + TILE * _TURNS, last), TILE):
            piece = first + tl.arange(0, TILE)
            slot = tl.where(piece * LONG < start, 1, 0)
            place = (piece.to(tl.int64) * 2 + slot)[:, None] * size + d[None, :]
            mask = (piece < last)[:, None] & inside[None, :]
            chunk = _combine(chunk, tl.load(pieces + place, mask=mask, other=nothing), MAX)
        total, lost = _with_chunk(total, lost, _fold(chunk, MAX), MAX)
    return total


@triton.jit
def _picked(values, number, ROWS: tl.constexpr):
    """Return one of ``ROWS`` values."""
    return tl.sum(tl.where(tl.arange(0, ROWS) == number, values, 0), 0)
