r"""One layer's attention on CUDA, in Triton: one kernel forward, two backward.

With edges ``e = (i, j)`` of multiplicity ``m_e``, ``z_e = sent_j + received_i`` and
``l_e = leaky_relu(z_e)``:

    c_e = exp(l_e) / sum_k m_k exp(l_k),   s_i = (sum_e m_e c_e^2)^(-p_i),
    out_i = s_i sum_e m_e c_e x_j

over the edges of target i. Backward, with ``s`` constant and ``d_e = s_i m_e <g_i, x_j>``:

    dl_e = c_e d_e - m_e c_e sum_k c_k d_k,   dz_e = dl_e * leaky_relu'(z_e),
    dreceived_i = sum_e dz_e,   dsent_j = sum_e dz_e,   dx_j = sum_e s_i m_e c_e g_i

One program a row; every sum has a fixed order.
"""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops._csr import CSR
from ..ops._triton import _device, _power_of_2

_TYPES = {torch.float32: tl.float32, torch.float64: tl.float64}


@triton.jit
def _logits(
    both, col, times, own, first, end, ACC: tl.constexpr, SLOPE: tl.constexpr, TILE: tl.constexpr
):
    """Return a tile of edges: positions, which are there, sources, multiplicities, z and l."""
    position = first + tl.arange(0, TILE)
    live = position < end
    source = tl.load(col + position, mask=live, other=0).to(tl.int64)
    count = tl.where(live, 1.0, 0.0).to(ACC)
    if times is not None:
        count = tl.load(times + position, mask=live, other=0).to(ACC)
    z = tl.load(both + source * 2, mask=live, other=0) + own
    logit = tl.where(z > 0, z, z * SLOPE)
    return position, live, source, count, z, tl.where(count > 0, logit, float("-inf"))


@triton.jit
def _attend_kernel(
    x, both, rowptr, col, times, power, out, share, factor, F,
    ACC: tl.constexpr, SLOPE: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Attend one target: its row of ``out``, the share ``c`` of its edges, its factor ``s``."""
    row = tl.program_id(0).to(tl.int64)
    f = tl.arange(0, BLOCK)
    inside = f < F
    begin, end = tl.load(rowptr + row), tl.load(rowptr + row + 1)
    own = tl.load(both + row * 2 + 1)
    top = tl.full([TILE], float("-inf"), ACC)
    for first in range(begin, end, TILE):
        _, _, _, _, _, logit = _logits(both, col, times, own, first, end, ACC, SLOPE, TILE)
        top = tl.maximum(top, logit)
    highest = tl.max(top, 0)
    highest = tl.where(highest == float("-inf"), 0.0, highest)
    mass = tl.zeros([TILE], ACC)
    for first in range(begin, end, TILE):
        _, _, _, count, _, logit = _logits(both, col, times, own, first, end, ACC, SLOPE, TILE)
        mass += count * tl.exp(logit - highest)
    total = tl.sum(mass, 0)
    total = tl.where(total > 0, total, 1.0)
    squares = tl.zeros([TILE], ACC)
    sums = tl.zeros([TILE, BLOCK], ACC)
    for first in range(begin, end, TILE):
        position, live, source, count, _, logit = _logits(
            both, col, times, own, first, end, ACC, SLOPE, TILE
        )
        c = tl.exp(logit - highest) / total
        tl.store(share + position, c, mask=live)
        squares += count * c * c
        mask = live[:, None] & inside[None, :]
        sums += (count * c)[:, None] * tl.load(
            x + source[:, None] * F + f[None, :], mask=mask, other=0
        )
    square = tl.sum(squares, 0)
    s = tl.where(
        square > 0, tl.exp(-tl.load(power + row) * tl.log(tl.where(square > 0, square, 1.0))), 1.0
    )
    tl.store(factor + row, s)
    tl.store(out + row * F + f, s * tl.sum(sums, 0), mask=inside)


@triton.jit
def _target_kernel(
    grad, x, both, rowptr, col, times, share, factor, edges, grad_both, F,
    ACC: tl.constexpr, SLOPE: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients by one target's logits: ``dz`` of its edges, and their sum by ``received``."""
    row = tl.program_id(0).to(tl.int64)
    f = tl.arange(0, BLOCK)
    inside = f < F
    begin, end = tl.load(rowptr + row), tl.load(rowptr + row + 1)
    own = tl.load(both + row * 2 + 1)
    g = tl.load(grad + row * F + f, mask=inside, other=0) * tl.load(factor + row)
    along = tl.zeros([TILE], ACC)
    for first in range(begin, end, TILE):
        position, live, source, count, _, _ = _logits(
            both, col, times, own, first, end, ACC, SLOPE, TILE
        )
        mask = live[:, None] & inside[None, :]
        rows = tl.load(x + source[:, None] * F + f[None, :], mask=mask, other=0)
        d = count * tl.sum(rows * g[None, :], 1)
        along += d * tl.load(share + position, mask=live, other=0)
        tl.store(edges + position, d, mask=live)
    pull = tl.sum(along, 0)
    total = tl.zeros([TILE], ACC)
    for first in range(begin, end, TILE):
        position, live, _, count, z, _ = _logits(
            both, col, times, own, first, end, ACC, SLOPE, TILE
        )
        c = tl.load(share + position, mask=live, other=0)
        d = tl.load(edges + position, mask=live, other=0)
        dz = c * (d - count * pull)
        dz = tl.where(z > 0, dz, dz * SLOPE)
        tl.store(edges + position, dz, mask=live)
        total += tl.where(live, dz, 0.0)
    tl.store(grad_both + row * 2 + 1, tl.sum(total, 0))


@triton.jit
def _source_kernel(
    grad, back_ptr, back_col, back_edge, times, share, factor, edges, grad_x, grad_both, F,
    ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients by one source: its row of ``grad_x``, and the sum of ``dz`` by ``sent``."""
    row = tl.program_id(0).to(tl.int64)
    f = tl.arange(0, BLOCK)
    inside = f < F
    begin, end = tl.load(back_ptr + row), tl.load(back_ptr + row + 1)
    total = tl.zeros([TILE], ACC)
    sums = tl.zeros([TILE, BLOCK], ACC)
    for first in range(begin, end, TILE):
        position = first + tl.arange(0, TILE)
        live = position < end
        target = tl.load(back_col + position, mask=live, other=0).to(tl.int64)
        number = tl.load(back_edge + position, mask=live, other=0)
        weight = tl.load(share + number, mask=live, other=0)
        if times is not None:
            weight *= tl.load(times + number, mask=live, other=0).to(ACC)
        weight *= tl.load(factor + target, mask=live, other=0)
        mask = live[:, None] & inside[None, :]
        sums += weight[:, None] * tl.load(
            grad + target[:, None] * F + f[None, :], mask=mask, other=0
        )
        total += tl.load(edges + number, mask=live, other=0)
    tl.store(grad_x + row * F + f, tl.sum(sums, 0), mask=inside)
    tl.store(grad_both + row * 2, tl.sum(total, 0))


def attend(
    x: Tensor, both: Tensor, by_target: CSR, times: Tensor | None, power: Tensor, slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the attended rows ``[R, F]``, the edges' shares and the targets' factors.

    Args:
        x: ``[R, F]``.
        both: What a node sends and receives to the logits, ``[R, 2]``.
        by_target: The graph, edges in the order of their targets.
        times: Multiplicities, ``[E]``.
        power: ``p`` of each target, ``[R]``.
        slope: Of the leaky ReLU.
    """
    rows, width = x.shape
    out, factor = torch.empty_like(x), x.new_empty(rows)
    share = x.new_empty(len(by_target.col))
    with _device(x):
        _attend_kernel[(rows,)](
            x, both, by_target.rowptr, by_target.col, times, power, out, share, factor, width,
            SLOPE=slope, **_shape(x, by_target),
        )  # fmt: skip
    return out, share, factor


def gradients(
    grad: Tensor, x: Tensor, both: Tensor, by_target: CSR, by_source: CSR, times: Tensor | None,
    share: Tensor, factor: Tensor, slope: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients by ``x`` and ``both``."""
    rows, width = x.shape
    edges, grad_x, grad_both = torch.empty_like(share), torch.empty_like(x), torch.empty_like(both)
    with _device(x):
        _target_kernel[(rows,)](
            grad, x, both, by_target.rowptr, by_target.col, times, share, factor, edges, grad_both,
            width, SLOPE=slope, **_shape(x, by_target),
        )  # fmt: skip
        _source_kernel[(rows,)](
            grad, *by_source[:3], times, share, factor, edges, grad_x, grad_both, width,
            **_shape(x, by_source),
        )  # fmt: skip
    return grad_x, grad_both


def _shape(x: Tensor, csr: CSR) -> dict[str, object]:
    block = _power_of_2(x.shape[1])
    degree = max(1, round(len(csr.col) / len(x)))
    tile = max(4, min(1024 // block, _power_of_2(degree)))
    return {"ACC": _TYPES[x.dtype], "TILE": tile, "BLOCK": block, "num_warps": 1}
