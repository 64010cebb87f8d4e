"""Dropout whose mask is a hash of what is dropped, and not the next number of a generator.

So a lane has the same masks alone and beside others, with padding and without, on a CPU and on a
GPU. A mask is known by the lane, the epoch and the step (the seed), by how many dropouts came
before it in the step (the call), and by row and column.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

_ROW, _COLUMN, _CALL = 0x1E3779B1, 0x05EBCA77, 0x27D4EB2F
_FIRST, _SECOND = 0x2C1B3C6D, 0x297A2D39  # of Mueller's and Wang's mixers, odd
LOOPS = 1 << 26  # rows of self-loops that stand behind the edges are numbered from here on


def step_seeds(seeds: Sequence[int], steps: int) -> Tensor:
    """Return a seed for each step of an epoch, ``[steps, L]``, from a seed of 63 bits a lane.

    Example:
        >>> step_seeds([1, 2], steps=3).shape
        torch.Size([3, 2])
    """
    lanes = torch.tensor([(own & 0xFFFFFFFF) - (1 << 31) for own in seeds], dtype=torch.int32)
    return _mixed(_mixed(lanes) + _mixed(torch.arange(steps, dtype=torch.int32))[:, None])


def row_numbers(rows: int, nodes: int, edges: int, device: torch.device) -> Tensor:
    """Return what rows are called: rows of edges and self-loops behind them have numbers apart.

    With padding there are more edges in front of the loops than without.

    Example:
        >>> row_numbers(3, nodes=3, edges=4, device=torch.device("cpu")).tolist()
        [0, 1, 2]
    """
    numbers = torch.arange(rows, dtype=torch.int32, device=device)
    if rows == nodes + edges and rows not in (nodes, edges):
        numbers[edges:] += LOOPS - edges
    return numbers


def kept(shape: torch.Size, p: float, seed: Tensor, call: int, rows: Tensor) -> Tensor:
    """Return which elements stay, ``shape``: each with the probability ``1 - p``.

    Args:
        shape: Of what is dropped, rows first.
        p: The probability to be dropped, between 0 and 1.
        seed: Of the step, int32, a single number.
        call: How many dropouts came before in this step.
        rows: The number of each row, int32.

    Example:
        >>> rows = torch.arange(1000, dtype=torch.int32)
        >>> stay = kept(torch.Size([1000, 8]), 0.25, torch.tensor(7, dtype=torch.int32), 0, rows)
        >>> 0.73 < stay.double().mean().item() < 0.77
        True
    """
    columns = shape[1:].numel()
    own = _mixed(rows * _ROW + _mixed(seed + call * _CALL % (1 << 31)))
    column = _mixed(torch.arange(columns, dtype=torch.int32, device=rows.device) * _COLUMN)
    mixed = (own.unsqueeze(1) ^ column) * _FIRST
    mixed = _folded(mixed, 15) * _SECOND
    limit = min(round((1 - p) * (1 << 32)), (1 << 32) - 1) - (1 << 31)
    return (mixed < limit).view(shape)


def _mixed(x: Tensor) -> Tensor:
    """Mix the bits of 32-bit numbers; products wrap around."""
    return _folded(_folded(_folded(x, 16) * _FIRST, 15) * _SECOND, 16)


def _folded(x: Tensor, bits: int) -> Tensor:
    """Add the upper bits to the lower ones; a plain shift would copy the sign."""
    return x ^ ((x >> bits) & ((1 << (32 - bits)) - 1))
