"""Kernels for rows of few edges: a program has several of them, side by side.

One program a row would leave most of a warp idle, and a GPU starts only so many programs at a time.
A long row among them is read alone, in wide tiles: side by side, all would take as many turns.
"""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

import triton
import triton.language as tl

from ._triton_span import _combine, _joined, _matching, _picked, _span


@triton.jit
def _short_rows_kernel(
    x, w, a, b, rowptr, col, edge, pieces, out, num_rows, size,
    MAX: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
    BLOCK: tl.constexpr, LONG: tl.constexpr, WIDE: tl.constexpr, ALONE: tl.constexpr,
):  # fmt: skip
    """Reduce ``ROWS`` rows side by side; with ``pieces``, those longer than ``LONG`` from these."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = row < num_rows
    inside = there[:, None] & (d < size)[None, :]
    start = tl.load(rowptr + row, mask=there, other=0)
    end = tl.load(rowptr + row + 1, mask=there, other=0)
    whole = end - start
    if pieces is not None:
        whole = tl.where(whole > LONG, 0, whole)
    length = tl.where(whole > ALONE, 0, whole)
    nothing = float("-inf") if MAX else 0.0
    total = tl.full([ROWS, BLOCK], nothing, ACC)
    present = end > start
    if MAX and w is not None:
        present = start < start
    for first in range(0, tl.max(length, 0), TILE):
        # An edge of each row at a time, written out: loads of several edges are on their way at
        # once, and nothing is summed across threads.
        for place in tl.static_range(TILE):
            live = first + place < length
            position = start + (first + place)
            number = position
            if w is not None and edge is not None:
                number = tl.load(edge + position, mask=live, other=0)
            source = tl.load(col + position, mask=live, other=0).to(tl.int64)
            if w is not None and MAX:
                counts = tl.load(w + number, mask=live, other=0)
                present = present | (counts > 0)
                live = live & (counts > 0)
            mask = live[:, None] & (d < size)[None, :]
            values = tl.load(x + source[:, None] * size + d[None, :], mask=mask, other=nothing)
            values = values.to(ACC)
            if not MAX:
                if b is not None:
                    values *= tl.load(b + source, mask=live, other=0)[:, None]
                if w is not None:
                    values *= tl.load(w + number, mask=live, other=0).to(ACC)[:, None]
            total = _combine(total, values, MAX)
    if tl.max(whole, 0) > ALONE:
        for number in range(ROWS):
            many = _picked(whole, number, ROWS)
            if many > ALONE:
                begin = _picked(start, number, ROWS)
                value = _span(x, w, b, col, edge, begin, begin + many, d, d < size, size, 1, 1,
                              size, MAX, ACC, ALONE, BLOCK)  # fmt: skip
                total = tl.where((tl.arange(0, ROWS) == number)[:, None], value[None, :], total)
    if pieces is not None:
        longest = tl.max(end - start, 0)
        if longest > LONG:
            for number in range(ROWS):
                many = _picked(end - start, number, ROWS)
                if many > LONG:
                    begin = _picked(start, number, ROWS)
                    value = _joined(pieces, begin, begin + many, d, d < size, size, MAX, ACC,
                                    WIDE, BLOCK, LONG)  # fmt: skip
                    total = tl.where((tl.arange(0, ROWS) == number)[:, None], value[None, :], total)
    if MAX:
        if w is not None:
            # What is read alone or in pieces holds nothing, if no edge of the row counts.
            total = tl.where(present[:, None] | (total != float("-inf")), total, 0.0)
        else:
            total = tl.where(present[:, None], total, 0.0)
    if a is not None:
        total *= tl.load(a + row, mask=there, other=0)[:, None]
    tl.store(out + row[:, None] * size + d[None, :], total, mask=inside)


@triton.jit
def _short_winner_kernel(
    own, other, share, m, divided, rowptr, col, edge, out, num_rows, size,
    ACC: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
    ALONE: tl.constexpr,
):  # fmt: skip
    """Do what ``_winner_kernel`` does for ``ROWS`` rows side by side."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = row < num_rows
    inside = there[:, None] & (d < size)[None, :]
    mine = tl.load(own + row[:, None] * size + d[None, :], mask=inside, other=0)
    start = tl.load(rowptr + row, mask=there, other=0)
    whole = tl.load(rowptr + row + 1, mask=there, other=0) - start
    length = tl.where(whole > ALONE, 0, whole)
    total = tl.zeros([ROWS, BLOCK], ACC)
    for first in range(0, tl.max(length, 0), TILE):
        for place in tl.static_range(TILE):
            live = first + place < length
            position = start + (first + place)
            source = tl.load(col + position, mask=live, other=0).to(tl.int64)
            mask = live[:, None] & (d < size)[None, :]
            where = source[:, None] * size + d[None, :]
            same = (tl.load(other + where, mask=mask, other=0) == mine) & mask
            value = tl.where(same, 1.0, 0.0).to(ACC)
            if share is not None:
                value *= tl.load(share + where, mask=same, other=0)
            if m is not None:
                number = position
                if edge is not None:
                    number = tl.load(edge + position, mask=live, other=0)
                value *= tl.load(m + number, mask=live, other=0).to(ACC)[:, None]
            total += value
    if tl.max(whole, 0) > ALONE:
        for number in range(ROWS):
            many = _picked(whole, number, ROWS)
            if many > ALONE:
                chosen = (tl.arange(0, ROWS) == number)[:, None]
                begin = _picked(start, number, ROWS)
                held = tl.sum(tl.where(chosen, mine, 0), 0)
                value = _matching(held, other, share, m, col, edge, begin, begin + many, d,
                                  d < size, size, ACC, ALONE, BLOCK)  # fmt: skip
                total = tl.where(chosen, value[None, :], total)
    place = row[:, None] * size + d[None, :]
    if divided is not None:
        total = tl.where(total > 0, total, 1.0)
        total = tl.load(divided + place, mask=inside, other=0).to(ACC) / total
    tl.store(out + place, total, mask=inside)
