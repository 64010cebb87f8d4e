"""The forms in which a PyG layer is given edges, read into one."""

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_torch_sparse_tensor

from ..ops import Graph
from ..ops.internal import Mark, Memory, endpoints, is_traceable

_matrices, _pairs = Memory(), Memory()


def plain_edges(edge_index: Tensor | SparseTensor) -> tuple[Tensor, Tensor | None]:
    """Return ``(edge_index, values)`` of a sparse ``adj_t``; anything else as it is.

    Unlike PyG's own conversion it keeps parallel edges, in every layout. The edges of an unchanged
    matrix are the same tensor at every call, so that layers find them grouped.
    """
    if isinstance(edge_index, SparseTensor):
        target, source, values = edge_index.coo()
        return _paired(source, target), values
    if not is_torch_sparse_tensor(edge_index):
        return edge_index, None
    if not is_traceable(edge_index):
        source, target, _, values = endpoints(edge_index, None)
        return torch.stack([source, target]), values
    known = _known(edge_index)
    if known.edges is None:
        source, target, _, _ = endpoints(edge_index, None)
        known.edges = _stacked(source, target)
    return known.edges, _values(edge_index)


def graph_of_rows(matrix: Tensor) -> Graph | None:
    """Return the graph of a CSR matrix on the CPU, its values apart; None of another matrix.

    The graph of an unchanged matrix is the same at every call.
    """
    if matrix.layout != torch.sparse_csr or not is_traceable(matrix):
        return None
    known = _known(matrix)
    if known.graph is None:
        known.graph = Graph.of_rows(matrix)
    return known.graph


def has_unit_values(matrix: Tensor) -> bool:
    """Say whether all values of a sparse matrix are the constant 1: edges without weights."""
    return not matrix.requires_grad and is_traceable(matrix) and _known(matrix).are_units()


class _Known:
    """What has been made of a sparse matrix, which holds until the matrix changes."""

    def __init__(self, matrix: Tensor) -> None:
        self._indices, self._values = _indices(matrix), _values(matrix).detach()
        self._seen = self._look(matrix)
        self._units: tuple[int, bool] | None = None
        self.edges: Tensor | None = None
        self.graph: Graph | None = None

    def is_of(self, matrix: Tensor) -> bool:
        """Say whether the matrix has the same edges as before; its values may be others."""
        return self._seen == self._look(matrix)

    def are_units(self) -> bool:
        """Say whether all values are 1."""
        version = self._values._version
        if self._units is None or self._units[0] != version:
            self._units = (version, bool((self._values == 1).all()))
        return self._units[1]

    def _look(self, matrix: Tensor) -> tuple[object, ...]:
        # As long as the matrix is made of the parts that are held here, it shares their versions.
        versions = [index._version for index in self._indices]
        return _first(matrix).data_ptr(), matrix.shape, matrix._nnz(), versions


def _known(matrix: Tensor) -> _Known:
    known: _Known | None = _matrices.get(matrix)
    if known is None or not known.is_of(matrix):
        known = _Known(matrix)
        _matrices.put(matrix, known)
    return known


def _paired(source: Tensor, target: Tensor) -> Tensor:
    """Return edges of two lists, the same tensor while these are unchanged."""
    if not (is_traceable(source) and is_traceable(target)):
        return torch.stack([source, target])
    marks = Mark(source), Mark(target)
    before, edges = _pairs.get(source, (None, None))
    if before != marks:
        edges = _stacked(source, target)
        _pairs.put(source, (marks, edges))
    return edges  # type: ignore[no-any-return]


def _stacked(source: Tensor, target: Tensor) -> Tensor:
    with torch.inference_mode(False):  # a later training step must be able to use it
        return torch.stack([source, target])


def _first(matrix: Tensor) -> Tensor:
    """Return the first part of a sparse matrix."""
    if matrix.layout == torch.sparse_csr:
        return matrix.crow_indices()
    return matrix._indices() if matrix.layout == torch.sparse_coo else matrix.ccol_indices()


def _indices(matrix: Tensor) -> tuple[Tensor, ...]:
    """Return what says where the values of a sparse matrix are."""
    if matrix.layout == torch.sparse_coo:
        return (_first(matrix),)
    is_by_row = matrix.layout == torch.sparse_csr
    return _first(matrix), matrix.col_indices() if is_by_row else matrix.row_indices()


def _values(matrix: Tensor) -> Tensor:
    return matrix._values() if matrix.layout == torch.sparse_coo else matrix.values()
