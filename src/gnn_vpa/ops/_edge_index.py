"""PyG's ``EdgeIndex``: the order that it has and remembers is used, and what is found put there."""

import sys
from typing import TYPE_CHECKING, TypeGuard

from torch import Tensor

from ..errors import UsageError
from ._csr import CSR, grouped, rows, transpose

if TYPE_CHECKING:
    from torch_geometric import EdgeIndex


def is_edge_index(value: object) -> "TypeGuard[EdgeIndex]":
    """Say whether it is an ``EdgeIndex``; there is none where PyG, which loads slowly, is not."""
    if type(value) is Tensor:
        return False
    module = sys.modules.get("torch_geometric.edge_index")
    return isinstance(value, getattr(module, "EdgeIndex", ()))


def grouped_both(
    edge_index: "EdgeIndex", ends: tuple[Tensor, Tensor], sizes: tuple[int, int]
) -> tuple[CSR, CSR]:
    """Group the edges of a sorted ``EdgeIndex`` by target and by source.

    Its order is looked at, as PyG does not; the permutation that it remembers, found by a sort,
    is used. What it does not remember yet it does afterwards, as if it had been asked itself.
    """
    own = 0 if edge_index.is_sorted_by_row else 1  # sources are its rows
    other = 1 - own
    first = grouped(ends[own], ends[other], sizes[own], sizes[other])
    if first.edge is not None:
        raise UsageError(
            f"edge_index: says that it is sorted by {edge_index.sort_order!r}, and is not. "
            "Make it without sort_order, and sort it by its sort_by."
        )
    second = _remembered(edge_index, ends, sizes, own)
    if second is None:
        second = transpose(first, sizes[other])
        assert second.edge is not None
        index: list[Tensor] = [second.col, second.col]
        index[other] = rows(second.rowptr, second.col.numel())
        edge_index._T_perm = _copied(second.edge, edge_index)
        edge_index._T_index = tuple(_copied(part, edge_index) for part in index)
    # Pointers are as long as PyG takes the matrix to be.
    if edge_index._indptr is None and edge_index.sparse_size(own) == sizes[own]:
        edge_index._indptr = _copied(first.rowptr, edge_index)
    if edge_index._T_indptr is None and edge_index.sparse_size(other) == sizes[other]:
        edge_index._T_indptr = _copied(second.rowptr, edge_index)
    return (first, second) if own == 1 else (second, first)


def _copied(part: Tensor, edge_index: "EdgeIndex") -> Tensor:
    """Return a part of a graph as ``edge_index`` keeps it: a write into that is none into this."""
    return part.to(edge_index.dtype, copy=True)


def _remembered(
    edge_index: "EdgeIndex", ends: tuple[Tensor, Tensor], sizes: tuple[int, int], own: int
) -> CSR | None:
    """Return the edges in the other order, if ``edge_index`` has sorted them before."""
    order = edge_index._T_perm
    if order is None:
        return None
    by_other = grouped(ends[1 - own][order], ends[own][order], sizes[1 - own], sizes[own])
    if by_other.edge is not None:
        return None  # of edges that have changed since
    return by_other._replace(edge=order.to(by_other.col.dtype, copy=True))
