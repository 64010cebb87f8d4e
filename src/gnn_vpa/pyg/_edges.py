"""The forms in which a PyG layer is given edges, read into one."""

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_torch_sparse_tensor

from ..ops.internal import Mark, Memory, endpoints, is_traceable

_memory = Memory()


def plain_edges(edge_index: Tensor | SparseTensor) -> tuple[Tensor, Tensor | None]:
    """Return ``(edge_index, values)`` of a sparse ``adj_t``; anything else as it is.

    Unlike PyG's own conversion it keeps parallel edges, in every layout. The edges of an unchanged
    matrix are the same tensor at every call, so that layers find them grouped.
    """
    if isinstance(edge_index, SparseTensor):
        target, source, values = edge_index.coo()
        return torch.stack([source, target]), values
    if not is_torch_sparse_tensor(edge_index):
        return edge_index, None
    if not is_traceable(edge_index):
        source, target, _, values = endpoints(edge_index, None)
        return torch.stack([source, target]), values
    marks, values = [Mark(index) for index in _indices(edge_index)], _values(edge_index)
    before, edges = _memory.get(edge_index, (None, None))
    if before != marks:
        source, target, _, _ = endpoints(edge_index, None)
        with torch.inference_mode(False):  # a later training step must be able to use it
            edges = torch.stack([source, target])
        _memory.put(edge_index, (marks, edges))
    return edges, values


def _indices(matrix: Tensor) -> tuple[Tensor, ...]:
    """Return what says where the values of a sparse matrix are."""
    if matrix.layout == torch.sparse_coo:
        return (matrix._indices(),)
    if matrix.layout == torch.sparse_csr:
        return matrix.crow_indices(), matrix.col_indices()
    return matrix.ccol_indices(), matrix.row_indices()


def _values(matrix: Tensor) -> Tensor:
    return matrix._values() if matrix.layout == torch.sparse_coo else matrix.values()
