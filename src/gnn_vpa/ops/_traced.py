"""Sums with constant weights on the CPU under a compiler: one call groups a batch, one sums.

Left to itself, a compiler makes a gather and an addition of it, which with several threads is an
atomic one for each number, and adds as many in a row as there are edges. Here the edges are
grouped by the same code as outside of a compiler, in one call for all layers (the calls are alike,
and PyTorch's compiler makes one of them), and the sums are ``embedding_bag``.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._bags import WIDE
from ._counting import by_row, largest, transposed
from ._cpu import LONG, whole_bags
from ._csr import CSR, ends_of, index_dtype, longest_of
from ._define import define
from ._power import power_of_lengths

# The grouped edges: by target, and by source; each its pointers, the other ends and the weights.
Grouped = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def traced_sum(
    x: Tensor,
    edges: Tensor,
    num_targets: int,
    exponent: float,
    weight: Tensor | None = None,
) -> Tensor:
    """Return ``N_i^(-exponent) * sum_j weight_ij x_j``.

    Args:
        x: ``[num_sources, F]``, float32 or float64.
        edges: ``[2, num_edges]``; or ``[num_sources]``, the target of each source, as in a readout.
        num_targets: Number of targets.
        exponent: Of the number of neighbours.
        weight: ``[num_edges]``, constants of the type of ``x``.
    """
    parts = torch.ops.gnn_vpa.weighted_rows(
        edges, x.shape[0], num_targets, exponent, weight, x.dtype
    )
    return _Sum.apply(x, *parts)  # type: ignore[no-any-return, no-untyped-call]


def _weighted_rows(
    edges: Tensor,
    num_sources: int,
    num_targets: int,
    exponent: float,
    weight: Tensor | None,
    dtype: torch.dtype,
) -> Grouped:
    source, target = ends_of(edges, num_sources, num_targets)
    value = np.ones(len(target), WIDE[dtype]) if weight is None else weight.numpy()
    ptr, col, value = by_row(target, source, num_targets, value)
    if exponent != 0:
        lengths = ptr[1:] - ptr[:-1]
        longest = largest(lengths) if len(lengths) > 0 else 0
        value *= power_of_lengths(lengths, longest, exponent, WIDE[dtype]).repeat(lengths)
    back = transposed(ptr, col, value, num_sources)
    return tuple(map(torch.from_numpy, (ptr, col, value, *back)))  # type: ignore[return-value]


def _weighted_rows_shapes(
    edges: Tensor,
    num_sources: int,
    num_targets: int,
    exponent: float,
    weight: Tensor | None,
    dtype: torch.dtype,
) -> Grouped:
    num_edges = edges.shape[-1]
    ints = index_dtype(num_edges, num_sources, num_targets)
    return tuple(  # type: ignore[return-value]
        edges.new_empty(size, dtype=kind)
        for rows in (num_targets, num_sources)
        for size, kind in ((rows + 1, ints), (num_edges, ints), (num_edges, dtype))
    )


def _sum_of_rows(
    x: Tensor,
    ends: Tensor,
    col: Tensor,
    weight: Tensor,
    kept: Tensor | None = None,
) -> Tensor:
    rows, num_edges = ends.numel() - 1, col.numel()
    if x.shape[1] == 0 or rows == 0 or num_edges == 0:
        return x.new_zeros(rows, x.shape[1])
    longest = num_edges if num_edges <= LONG else longest_of(ends.numpy())
    return whole_bags(x, weight, CSR(ends, col, None, longest))


def _sum_of_rows_shapes(
    x: Tensor, ends: Tensor, col: Tensor, weight: Tensor, kept: Tensor | None = None
) -> Tensor:
    return x.new_empty(ends.shape[0] - 1, x.shape[1])


class _Sum(torch.autograd.Function):
    """The sum and its derivative, which is the sum of the transposed edges.

    The backward pass takes ``x`` along and does nothing with it: where ``x`` comes out of a ReLU,
    a compiler that knows it to be there reads off it what the ReLU's derivative is. Otherwise it
    would write a byte for each number in the forward pass, which takes longer than the sum.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(x, *parts)
        return torch.ops.gnn_vpa.sum_of_rows(x, *parts[:3])  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, *parts = ctx.saved_tensors
        if torch.is_grad_enabled():  # a derivative of higher order
            return _Sum.apply(g, *parts[3:], *parts[:3]), *(None,) * 6  # type: ignore[no-untyped-call]
        return torch.ops.gnn_vpa.sum_of_rows(g, *parts[3:], x), *(None,) * 6


define(
    "weighted_rows(Tensor edges, SymInt num_sources, SymInt num_targets, float exponent, "
    "Tensor? weight, ScalarType dtype) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _weighted_rows,
    _weighted_rows_shapes,
)
define(
    "sum_of_rows(Tensor x, Tensor ends, Tensor col, Tensor weight, Tensor? kept=None) -> Tensor",
    _sum_of_rows,
    _sum_of_rows_shapes,
)
