"""A bias and a ReLU for CUDA, in Triton: a program has a tile of a lane's rows, or all of them."""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops.launch import ceil_div, on_device_of, power_of_2

_TILE = 64  # rows that a program holds at a time
# Of the backward pass, for other types and for half types, which are read ahead of their turn.
_SHAPES = (
    {"TILE": _TILE, "STAGES": 1, "num_warps": 4},
    {"TILE": 32, "STAGES": 4, "num_warps": 2},
)
_TYPES = {torch.bfloat16: tl.float32, torch.float32: tl.float32, torch.float64: tl.float64}


@triton.jit
def _forward_kernel(x, bias, out, S, F, TILE: tl.constexpr, BLOCK: tl.constexpr):
    """``out = max(0, x + bias)``."""
    lane = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * TILE + tl.arange(0, TILE)
    f = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    mask = (row < S)[:, None] & (f < F)[None, :]
    place = (lane * S + row)[:, None] * F + f[None, :]
    value = tl.load(x + place, mask=mask, other=0).to(bias.dtype.element_ty)
    value += tl.load(bias + lane * F + f, mask=f < F, other=0)[None, :]
    # A comparison, not a maximum: NaN stays NaN.
    tl.store(out + place, tl.where(value < 0, 0.0, value), mask=mask)


@triton.jit
def _backward_kernel(
    grad, out, grad_x, grad_bias, S, F,
    ACC: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """``grad_x = grad`` where ``out > 0``, and its sum over all rows of a lane."""
    lane = tl.program_id(0).to(tl.int64)
    f = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    # Every place of a tile has a sum of its own: threads meet once, at the end.
    total = tl.zeros([TILE, BLOCK], ACC)
    for first in tl.range(0, S, TILE, num_stages=STAGES):
        row = first + tl.arange(0, TILE)
        mask = (row < S)[:, None] & (f < F)[None, :]
        place = (lane * S + row)[:, None] * F + f[None, :]
        value = tl.load(grad + place, mask=mask, other=0).to(ACC)
        value = tl.where(tl.load(out + place, mask=mask, other=0) > 0, value, 0.0)
        tl.store(grad_x + place, value, mask=mask)
        total += value
    tl.store(grad_bias + lane * F + f, tl.sum(total, 0), mask=f < F)


def forward(x: Tensor, bias: Tensor) -> Tensor:
    """Return ``max(0, x + b)`` for ``x [L, S, F]`` and ``b [L, F]``."""
    out = torch.empty_like(x)
    lanes, rows, width = x.shape
    block = min(128, power_of_2(width))
    if out.numel() > 0:
        with on_device_of(x):
            _forward_kernel[(lanes, ceil_div(rows, _TILE), ceil_div(width, block))](
                x, bias, out, rows, width, TILE=_TILE, BLOCK=block
            )
    return out


def backward(grad: Tensor, out: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the gradients by ``x`` and ``b``."""
    lanes, rows, width = out.shape
    by_x, by_bias = torch.empty_like(out), out.new_empty(lanes, width, dtype=dtype)
    block = min(128, power_of_2(width))
    if by_bias.numel() > 0:
        with on_device_of(out):
            _backward_kernel[(lanes, ceil_div(width, block))](
                grad, out, by_x, by_bias, rows, width,
                ACC=_TYPES[out.dtype], BLOCK=block, **_SHAPES[out.dtype.itemsize == 2],
            )  # fmt: skip
    return by_x, by_bias
