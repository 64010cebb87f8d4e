"""Sums with constant weights on the CPU under a compiler: one call groups a batch, one sums.

Left to itself, a compiler makes a gather and an addition of it, which with several threads is an
atomic one for each number, and adds as many in a row as there are edges. Here the edges are
grouped by the same code as outside of a compiler, in one call for all layers (the calls are alike,
and PyTorch's compiler makes one of them), and the sums are ``embedding_bag``. Both are operators
by ``torch.library``'s plain registration: ``custom_op`` takes three times as long to be called.
"""

from typing import Any, Optional

import torch
from torch import Tensor

from ._cpu import LONG, whole_bags
from ._csr import CSR, index_dtype, longest_of
from ._graph import Graph
from ._short import WIDE, Bags

# The grouped edges: by target, and by source; each its pointers, the other ends and the weights.
Grouped = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]

torch.library.define(
    "gnn_vpa::weighted_rows",
    "(Tensor edges, SymInt num_sources, SymInt num_targets, float exponent, Tensor? weight, "
    "ScalarType dtype) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    tags=torch.Tag.pt2_compliant_tag,
)
torch.library.define(
    "gnn_vpa::power_sum",
    "(Tensor x, Tensor edges, SymInt num_targets, float exponent, Tensor? weight) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
torch.library.define(
    "gnn_vpa::sum_of_rows",
    "(Tensor x, Tensor ends, Tensor col, Tensor weight, Tensor? kept=None) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)


def traced_sum(
    x: Tensor,
    edges: Tensor,
    num_targets: int,
    exponent: float,
    weight: Optional[Tensor] = None,  # noqa: UP045
) -> Tensor:
    """Return ``N_i^(-exponent) * sum_j weight_ij x_j``.

    Args:
        x: ``[num_sources, F]``, float32 or float64.
        edges: ``[2, num_edges]``; or ``[num_sources]``, the target of each source, as in a readout.
        num_targets: Number of targets.
        exponent: Of the number of neighbours.
        weight: ``[num_edges]``, constants of the type of ``x``.
    """
    out: Tensor = torch.ops.gnn_vpa.power_sum(x, edges, num_targets, exponent, weight)
    return out


# Of an operator that is a composite of others, a compiler sees these others.
@torch.library.impl("gnn_vpa::power_sum", "CompositeImplicitAutograd")
def _power_sum(
    x: Tensor, edges: Tensor, num_targets: int, exponent: float, weight: Tensor | None
) -> Tensor:
    parts = torch.ops.gnn_vpa.weighted_rows(
        edges, x.shape[0], num_targets, exponent, weight, x.dtype
    )
    return _Sum.apply(x, *parts)  # type: ignore[no-any-return, no-untyped-call]


@torch.library.impl("gnn_vpa::weighted_rows", "CPU")
def _weighted_rows(
    edges: Tensor,
    num_sources: int,
    num_targets: int,
    exponent: float,
    weight: Tensor | None,
    dtype: torch.dtype,
) -> Grouped:
    if edges.dim() == 1:
        graph = Graph.readout(edges, num_targets)
    else:
        graph = Graph(edges, (num_sources, num_targets))
    way = Bags(graph, exponent, WIDE[dtype], weight, None)
    to_sources, by_source = way.turn(graph)
    ones = torch.ones(graph.num_edges, dtype=dtype) if way.to_targets is None else None
    return (
        *graph.by_target[:2],
        ones if way.to_targets is None else way.to_targets,
        *by_source[:2],
        ones.clone() if to_sources is None else to_sources,
    )


@torch.library.register_fake("gnn_vpa::weighted_rows")
def _(
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


@torch.library.impl("gnn_vpa::sum_of_rows", "CPU")
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


@torch.library.register_fake("gnn_vpa::sum_of_rows")
def _(
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
