"""One row of any length, by one program: what kernels for long and for short rows share."""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

import triton
import triton.language as tl


@triton.jit
def _combine(left, right, MAX: tl.constexpr):
    if MAX:
        return tl.maximum(left, right, propagate_nan=tl.PropagateNan.ALL)
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
    total = tl.full([TILE, BLOCK], nothing, ACC)
    head = d // width
    for first in range(start, end, TILE):
        position = first + tl.arange(0, TILE)
        live = position < end
        number = position
        if edge is not None:
            number = tl.load(edge + position, mask=live, other=0)
        if w is not None and MAX:
            live = live & (tl.load(w + number, mask=live, other=0) > 0)
        source = tl.load(col + position, mask=live, other=0).to(tl.int64)
        mask = live[:, None] & inside[None, :]
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
        total = _combine(total, values, MAX)
    return _fold(total, MAX)


@triton.jit
def _matching(
    mine, other, share, m, col, edge, start, end, d, inside, size,
    ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum the share of those of the positions ``start:end`` whose other end holds ``mine``."""
    total = tl.zeros([TILE, BLOCK], ACC)
    for first in range(start, end, TILE):
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
        total += value
    return tl.sum(total, 0)


@triton.jit
def _picked(values, number, ROWS: tl.constexpr):
    """Return one of ``ROWS`` values."""
    return tl.sum(tl.where(tl.arange(0, ROWS) == number, values, 0), 0)
