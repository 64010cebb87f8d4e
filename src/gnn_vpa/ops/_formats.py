"""The forms in which users hold edges, read into sources, targets, sizes and weights."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import UsageError
from ._csr import refuse_pointers, rows
from ._edge_index import is_edge_index

Sizes = int | tuple[int, int]

_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)


class Endpoints(NamedTuple):
    """Edges as two lists of nodes, ``[num_edges]`` each."""

    source: Tensor
    target: Tensor
    sizes: tuple[int, int]  # (num_sources, num_targets)
    weight: Tensor | None


def endpoints(edge_index: Tensor, num_nodes: Sizes | None) -> Endpoints:
    """Read edges in any of the accepted forms, and check their shape and type."""
    if not isinstance(edge_index, Tensor):
        raise UsageError(
            f"graph: expected a Graph or a tensor, got {type(edge_index).__name__}. Pass integers "
            "of shape [2, num_edges], PyG's EdgeIndex, or a torch sparse tensor."
        )
    known: tuple[int | None, int | None] = (None, None)
    weight = None
    if edge_index.layout in _SPARSE:
        source, target, weight = _from_sparse(edge_index)
        known = (edge_index.shape[1], edge_index.shape[0])
    else:
        if is_edge_index(edge_index):
            known = edge_index.sparse_size()
            edge_index = edge_index.as_tensor()
        if edge_index.dim() != 2 or edge_index.shape[0] != 2:
            raise UsageError(
                f"edge_index: expected shape [2, num_edges], got {list(edge_index.shape)}."
            )
        if edge_index.dtype not in (torch.int64, torch.int32):
            raise UsageError(
                f"edge_index: expected int64 or int32, got {edge_index.dtype}. "
                "Convert it with edge_index.long()."
            )
        source, target = edge_index.unbind(0)
    return Endpoints(source, target, _sizes(num_nodes, known, source, target), weight)


def _from_sparse(adj_t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if adj_t.dim() != 2:
        raise UsageError(f"graph: expected a sparse matrix, got {adj_t.dim()} dimensions.")
    if adj_t.layout == torch.sparse_coo:
        # Not coalesced: parallel edges stay parallel.
        target, source = adj_t._indices().unbind(0)
        return source, target, adj_t._values()
    if adj_t.layout == torch.sparse_csr:
        pointer, source = adj_t.crow_indices(), adj_t.col_indices()
        return source, _expanded(pointer, source), adj_t.values()
    pointer, target = adj_t.ccol_indices(), adj_t.row_indices()
    return _expanded(pointer, target), target, adj_t.values()


def _expanded(pointer: Tensor, index: Tensor) -> Tensor:
    """Return the compressed index of every value; a pointer that is none must not get further."""
    counts = pointer.diff()
    if int(pointer[0]) != 0 or int(pointer[-1]) != index.numel() or bool((counts < 0).any()):
        refuse_pointers()
    return rows(pointer, index.numel())


def _sizes(
    given: Sizes | None, known: tuple[int | None, int | None], source: Tensor, target: Tensor
) -> tuple[int, int]:
    if given is None:
        if known[0] is not None and known[1] is not None:
            return known[0], known[1]
        largest = max((int(t.max()) for t in (source, target) if t.numel() > 0), default=-1)
        return largest + 1, largest + 1
    sizes = (given, given) if isinstance(given, int) else tuple(given)
    if len(sizes) != 2 or any(size < 0 for size in sizes):
        raise UsageError(
            f"num_nodes: expected a number or (num_sources, num_targets), got {given!r}."
        )
    for name, asked, told in zip(("sources", "targets"), sizes, known, strict=True):
        if told is not None and told != asked:
            raise UsageError(f"num_nodes: {asked} {name}, but the graph given has {told}.")
    return sizes


def checked_multiplicity(multiplicity: Tensor, num_edges: int, device: torch.device) -> Tensor:
    """Return multiplicities ``[num_edges]`` as constants of a type that counts exactly."""
    check_edges("multiplicity", multiplicity, num_edges, device)
    if multiplicity.dim() != 1:
        raise UsageError(
            f"multiplicity: expected shape [num_edges], got {list(multiplicity.shape)}."
        )
    counts = multiplicity.detach()
    return counts if counts.dtype == torch.float64 else counts.float()


def check_edges(name: str, values: Tensor, num_edges: int, device: torch.device) -> None:
    """Raise unless ``values`` are real numbers, one row for each edge, where the graph is."""
    if not isinstance(values, Tensor):
        raise UsageError(f"{name}: expected a tensor, got {type(values).__name__}.")
    if values.dim() == 0 or values.shape[0] != num_edges:
        raise UsageError(
            f"{name}: expected one entry for each of the {num_edges} edges, "
            f"got shape {list(values.shape)}."
        )
    if values.is_complex():
        raise UsageError(f"{name}: expected real numbers, got {values.dtype}.")
    check_device(name, values, device)


def check_device(name: str, values: Tensor, device: torch.device) -> None:
    """Raise unless ``values`` are where the graph is."""
    if values.device != device:
        raise UsageError(
            f"{name}: is on {values.device}, the graph on {device}. "
            f"Move one of them: {name}.to({str(device)!r})."
        )
