r"""One layer's attention on CUDA, in Triton: one kernel forward, two backward.

With edges ``e = (i, j)`` of multiplicity ``m_e``, ``z_e = sent_j + received_i`` and
``l_e = leaky_relu(z_e)``:

    c_e = exp(l_e) / sum_k m_k exp(l_k),   s_i = (sum_e m_e c_e^2)^(-p_i),
    out_i = s_i sum_e m_e c_e x_j

over the edges of target i. Backward, with ``s`` constant and ``d_e = s_i m_e <g_i, x_j>``:

    dl_e = c_e d_e - m_e c_e sum_k c_k d_k,   dz_e = dl_e * leaky_relu'(z_e),
    dreceived_i = sum_e dz_e,   dsent_j = sum_e dz_e,   dx_j = sum_e s_i m_e c_e g_i

A program has one row, or some rows of few edges, among which it reads a long one alone; every sum
has a fixed order.
"""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops.internal import CSR
from ..ops.launch import FEW_EDGES, MIN_EDGES_ALONE, ceil_div, on_device_of, power_of_2

_TYPES = {torch.bfloat16: tl.float32, torch.float32: tl.float32, torch.float64: tl.float64}


@triton.jit
def _rows(rowptr, num_rows, ROWS: tl.constexpr):
    """Return this program's rows, which are there, and where their edges begin and how many."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    there = row < num_rows
    start = tl.load(rowptr + row, mask=there, other=0)
    return row, there, start, tl.load(rowptr + row + 1, mask=there, other=0) - start


@triton.jit
def _one(rowptr, number, num_rows, ROWS: tl.constexpr):
    """Return one of this program's rows, and where its edges begin and how many."""
    row = tl.program_id(0).to(tl.int64) * ROWS + number + tl.arange(0, 1)
    there = row < num_rows
    start = tl.load(rowptr + row, mask=there, other=0)
    return row, start, tl.load(rowptr + row + 1, mask=there, other=0) - start


@triton.jit
def _logits(
    sent, col, times, own, start, length, first,
    ACC: tl.constexpr, SLOPE: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Return edges of each row: positions, which are there, sources, multiplicities, z and l."""
    place = first + tl.arange(0, TILE)
    live = place[None, :] < length[:, None]
    position = start[:, None] + place[None, :]
    source = tl.load(col + position, mask=live, other=0).to(tl.int64)
    if times is not None:
        count = tl.load(times + position, mask=live, other=0).to(ACC)
    else:
        count = tl.where(live, 1.0, 0.0).to(ACC)
    z = tl.load(sent + source, mask=live, other=0) + own[:, None]
    logit = tl.where(z > 0, z, z * SLOPE)
    return position, live, source, count, z, tl.where(count > 0, logit, float("-inf"))


@triton.jit
def _features(x, row, counts, f, F):
    """Load the features of a tile of rows, ``[ROWS, TILE, BLOCK]``: 0 where an edge counts not.

    What such an edge leads to may be infinite, and 0 times that would be NaN.
    """
    mask = counts[:, :, None] & (f < F)[None, None, :]
    return tl.load(x + row[:, :, None] * F + f[None, None, :], mask=mask, other=0)


@triton.jit
def _attend_rows(
    x, sent, received, col, times, power, out, high, total, factor, row, there, start, length, F,
    ACC: tl.constexpr, SLOPE: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Attend some targets: rows of ``out``, what their shares are made of, and factors ``s``.

    All sums are of ``exp(l_e - top)`` for the highest logit so far, and shrink when it grows: one
    pass over the edges is enough. Shares are ``exp(l_e - high) / total``.
    """
    f = tl.arange(0, BLOCK)
    own = tl.load(received + row, mask=there, other=0)
    top = tl.full([row.shape[0]], float("-inf"), ACC)
    mass = tl.zeros([row.shape[0]], ACC)
    square = tl.zeros([row.shape[0]], ACC)
    sums = tl.zeros([row.shape[0], BLOCK], ACC)
    for first in range(0, tl.max(length, 0), TILE):
        _, _, source, count, _, logit = _logits(
            sent, col, times, own, start, length, first, ACC, SLOPE, TILE
        )
        features = _features(x, source, count > 0, f, F)
        highest = tl.maximum(top, tl.max(logit, 1))
        base = tl.where(highest == float("-inf"), 0.0, highest)
        shrunk = tl.exp(top - base)
        part = tl.exp(logit - base[:, None])
        mass = mass * shrunk + tl.sum(count * part, 1)
        square = square * shrunk * shrunk + tl.sum(count * part * part, 1)
        sums = sums * shrunk[:, None] + tl.sum((count * part)[:, :, None] * features, 1)
        top = highest
    alone = mass == 0
    mass = tl.where(alone, 1.0, mass)
    log = tl.log(tl.where(alone, 1.0, square / (mass * mass)))
    s = tl.exp(-tl.load(power + row, mask=there, other=0) * log)
    tl.store(factor + row, s, mask=there)
    tl.store(high + row, tl.where(alone, 0.0, top), mask=there)
    tl.store(total + row, mass, mask=there)
    inside = there[:, None] & (f < F)[None, :]
    tl.store(out + row[:, None] * F + f[None, :], (s / mass)[:, None] * sums, mask=inside)


@triton.jit
def _target_rows(
    grad, x, sent, received, col, times, high, total, factor, share, dots, edges, grad_received,
    row, there, start, length, F,
    ACC: tl.constexpr, SLOPE: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients by some targets' logits: ``dz`` of their edges, and the sums by ``received``.

    The edges' shares ``c`` are kept for their sources.
    """
    longest = tl.max(length, 0)
    f = tl.arange(0, BLOCK)
    own = tl.load(received + row, mask=there, other=0)
    top = tl.load(high + row, mask=there, other=0)
    mass = tl.load(total + row, mask=there, other=1)
    inside = there[:, None] & (f < F)[None, :]
    g = tl.load(grad + row[:, None] * F + f[None, :], mask=inside, other=0).to(ACC)
    g *= tl.load(factor + row, mask=there, other=0)[:, None]
    along = tl.zeros([row.shape[0], TILE], ACC)
    for first in range(0, longest, TILE):
        position, live, source, count, _, logit = _logits(
            sent, col, times, own, start, length, first, ACC, SLOPE, TILE
        )
        d = count * tl.sum(_features(x, source, count > 0, f, F) * g[:, None, :], 2)
        along += d * tl.exp(logit - top[:, None])
        tl.store(dots + position, d, mask=live)
    pull = tl.sum(along, 1) / mass
    tl.debug_barrier()  # what one thread has stored another may load
    summed = tl.zeros([row.shape[0], TILE], ACC)
    for first in range(0, longest, TILE):
        position, live, _, count, z, logit = _logits(
            sent, col, times, own, start, length, first, ACC, SLOPE, TILE
        )
        c = tl.exp(logit - top[:, None]) / mass[:, None]
        d = tl.load(dots + position, mask=live, other=0)
        dz = c * (d - count * pull[:, None])
        dz = tl.where(z > 0, dz, dz * SLOPE)
        tl.store(share + position, c, mask=live)
        tl.store(edges + position, dz, mask=live)
        summed += tl.where(live, dz, 0.0)
    tl.store(grad_received + row, tl.sum(summed, 1), mask=there)


@triton.jit
def _source_rows(
    grad, back_col, back_edge, times, share, factor, edges, grad_x, grad_sent,
    row, there, start, length, F,
    ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients by some sources: rows of ``grad_x``, and the sums of ``dz`` by ``sent``."""
    f = tl.arange(0, BLOCK)
    total = tl.zeros([row.shape[0], TILE], ACC)
    sums = tl.zeros([row.shape[0], BLOCK], ACC)
    for first in range(0, tl.max(length, 0), TILE):
        place = first + tl.arange(0, TILE)
        live = place[None, :] < length[:, None]
        position = start[:, None] + place[None, :]
        target = tl.load(back_col + position, mask=live, other=0).to(tl.int64)
        number = tl.load(back_edge + position, mask=live, other=0)
        weight = tl.load(share + number, mask=live, other=0)
        counts = live
        if times is not None:
            count = tl.load(times + number, mask=live, other=0).to(ACC)
            counts = count > 0
            weight *= count
        weight *= tl.load(factor + target, mask=live, other=0)
        sums += tl.sum(weight[:, :, None] * _features(grad, target, counts, f, F), 1)
        total += tl.load(edges + number, mask=live, other=0)
    inside = there[:, None] & (f < F)[None, :]
    tl.store(grad_x + row[:, None] * F + f[None, :], sums, mask=inside)
    tl.store(grad_sent + row, tl.sum(total, 1), mask=there)


@triton.jit
def _attend_kernel(
    x, sent, received, rowptr, col, times, power, out, high, total, factor, num_rows, F,
    ACC: tl.constexpr, SLOPE: tl.constexpr,
    ROWS: tl.constexpr, TILE: tl.constexpr, ALONE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Attend all targets."""
    row, there, start, length = _rows(rowptr, num_rows, ROWS)
    short = (length <= ALONE) | (ROWS == 1)
    _attend_rows(
        x, sent, received, col, times, power, out, high, total, factor,
        row, there & short, start, tl.where(short, length, 0), F, ACC, SLOPE, TILE, BLOCK,
    )  # fmt: skip
    if ROWS > 1 and tl.max(length, 0) > ALONE:
        for number in range(ROWS):
            lone, begin, many = _one(rowptr, number, num_rows, ROWS)
            if tl.max(many, 0) > ALONE:
                _attend_rows(
                    x, sent, received, col, times, power, out, high, total, factor,
                    lone, many > ALONE, begin, many, F, ACC, SLOPE, ALONE, BLOCK,
                )  # fmt: skip


@triton.jit
def _target_kernel(
    grad, x, sent, received, rowptr, col, times, high, total, factor, share, dots, edges,
    grad_received, num_rows, F,
    ACC: tl.constexpr, SLOPE: tl.constexpr,
    ROWS: tl.constexpr, TILE: tl.constexpr, ALONE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients by all targets' logits."""
    row, there, start, length = _rows(rowptr, num_rows, ROWS)
    short = (length <= ALONE) | (ROWS == 1)
    _target_rows(
        grad, x, sent, received, col, times, high, total, factor, share, dots, edges, grad_received,
        row, there & short, start, tl.where(short, length, 0), F, ACC, SLOPE, TILE, BLOCK,
    )  # fmt: skip
    if ROWS > 1 and tl.max(length, 0) > ALONE:
        for number in range(ROWS):
            lone, begin, many = _one(rowptr, number, num_rows, ROWS)
            if tl.max(many, 0) > ALONE:
                _target_rows(
                    grad, x, sent, received, col, times, high, total, factor, share, dots, edges,
                    grad_received, lone, many > ALONE, begin, many, F, ACC, SLOPE, ALONE, BLOCK,
                )  # fmt: skip


@triton.jit
def _source_kernel(
    grad, back_ptr, back_col, back_edge, times, share, factor, edges, grad_x, grad_sent,
    num_rows, F,
    ACC: tl.constexpr,
    ROWS: tl.constexpr, TILE: tl.constexpr, ALONE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients by all sources."""
    row, there, start, length = _rows(back_ptr, num_rows, ROWS)
    short = (length <= ALONE) | (ROWS == 1)
    _source_rows(
        grad, back_col, back_edge, times, share, factor, edges, grad_x, grad_sent,
        row, there & short, start, tl.where(short, length, 0), F, ACC, TILE, BLOCK,
    )  # fmt: skip
    if ROWS > 1 and tl.max(length, 0) > ALONE:
        for number in range(ROWS):
            lone, begin, many = _one(back_ptr, number, num_rows, ROWS)
            if tl.max(many, 0) > ALONE:
                _source_rows(
                    grad, back_col, back_edge, times, share, factor, edges, grad_x, grad_sent,
                    lone, many > ALONE, begin, many, F, ACC, ALONE, BLOCK,
                )  # fmt: skip


def attend(
    x: Tensor, sent: Tensor, received: Tensor, by_target: CSR, times: Tensor | None,
    power: Tensor, slope: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the attended rows ``[T, F]``, and of the targets the highest logit, total and factor.

    Args:
        x: Features of the sources, ``[S, F]``.
        sent: What a source adds to the logits, ``[S, 1]``.
        received: What a target adds to them, ``[T, 1]``.
        by_target: The graph, edges in the order of their targets.
        times: Multiplicities, ``[E]``.
        power: ``p`` of each target, ``[T]``.
        slope: Of the leaky ReLU.
    """
    rows, width = len(received), x.shape[1]
    out, (high, total, factor) = x.new_empty(rows, width), sent.new_empty(3, rows).unbind(0)
    grid, shape = _shape(x, by_target)
    with on_device_of(x):
        _attend_kernel[grid](
            x, sent, received, by_target.rowptr, by_target.col, times, power, out, high, total,
            factor, rows, width, SLOPE=slope, **shape,
        )  # fmt: skip
    return out, high, total, factor


def gradients(
    grad: Tensor, x: Tensor, sent: Tensor, received: Tensor, by_target: CSR, by_source: CSR,
    times: Tensor | None, high: Tensor, total: Tensor, factor: Tensor, slope: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients by ``x``, ``sent`` and ``received``."""
    width = x.shape[1]
    # Buffers of their own: threads that hold the same edge must not load what another has replaced.
    share, dots, edges = sent.new_empty(3, len(by_target.col)).unbind(0)
    grad_x, grad_sent, grad_received = (torch.empty_like(t) for t in (x, sent, received))
    with on_device_of(x):
        grid, shape = _shape(x, by_target)
        _target_kernel[grid](
            grad, x, sent, received, by_target.rowptr, by_target.col, times, high, total, factor,
            share, dots, edges, grad_received, len(received), width, SLOPE=slope, **shape,
        )  # fmt: skip
        grid, shape = _shape(x, by_source)
        _source_kernel[grid](
            grad, *by_source[:3], times, share, factor, edges, grad_x, grad_sent, len(x), width,
            **shape,
        )  # fmt: skip
    return grad_x, grad_sent, grad_received


def _shape(x: Tensor, csr: CSR) -> tuple[tuple[int], dict[str, Any]]:
    """Return the grid, and rows x edges x features of a tile."""
    block, count = power_of_2(x.shape[1]), len(csr.rowptr) - 1
    degree = len(csr.col) / max(count, 1)
    rows, tile, warps = 1, max(4, min(1024 // block, power_of_2(round(degree)))), 1
    if degree <= FEW_EDGES:
        rows, tile, warps = max(1, 512 // block), 4, 1
        if x.dtype.itemsize == 2:  # more rows of fewer edges at a time
            rows, tile = 2 * rows, 2
    shape = {
        "ROWS": rows,
        "TILE": tile,
        "ALONE": MIN_EDGES_ALONE,
        "BLOCK": block,
        "num_warps": warps,
    }
    return (ceil_div(count, rows),), {"ACC": _TYPES[x.dtype]} | shape
