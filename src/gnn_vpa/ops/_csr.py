"""Compressed rows: the one form in which kernels see a graph."""

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch
from torch import Tensor

from ..errors import UsageError
from . import _counting
from ._counting import Ints

_INT32_MAX = 2**31 - 1
_UNSIGNED = {4: np.uint32, 8: np.uint64}  # by the number of bytes


class CSR(NamedTuple):
    """Edges grouped by row: row ``i`` owns the positions ``rowptr[i]:rowptr[i + 1]``."""

    rowptr: Tensor  # [num_rows + 1], int32 where it fits, else int64
    col: Tensor  # [num_edges], same type
    edge: Tensor | None  # [num_edges], a position's edge as the user numbered it; None: the same
    longest: int  # an upper bound of the length of a row


@torch.library.custom_op("gnn_vpa::group", mutates_args=())
def group(row: Tensor, col: Tensor, num_rows: int, num_cols: int) -> tuple[Tensor, Tensor, Tensor]:
    """Group edges ``(row, col)`` by row, stably: ``rowptr``, ``col``, and each position's edge.

    An operator of its own, because it looks at values (is every index in range?), which
    ``torch.compile`` cannot trace.
    """
    check_range("target", row, num_rows)
    check_range("source", col, num_cols)
    dtype = index_dtype(row.numel(), num_rows, num_cols)
    if row.device.type == "cpu":
        first, second = (t.to(dtype).contiguous().numpy() for t in (row, col))
        parts = _counting.by_row(first, second, num_rows)
        rowptr, ordered, edge = map(torch.from_numpy, parts)
        return rowptr, ordered, edge
    sorted_rows, edge = torch.sort(row.to(dtype), stable=True)
    rowptr = torch._convert_indices_from_coo_to_csr(
        sorted_rows, num_rows, out_int32=dtype == torch.int32
    )
    return rowptr, col.to(dtype)[edge], edge.to(dtype)


@group.register_fake
def _(row: Tensor, col: Tensor, num_rows: int, num_cols: int) -> tuple[Tensor, Tensor, Tensor]:
    dtype = index_dtype(row.numel(), num_rows, num_cols)
    rowptr = row.new_empty(num_rows + 1, dtype=dtype)
    return rowptr, row.new_empty(row.shape, dtype=dtype), row.new_empty(row.shape, dtype=dtype)


@group.register_vmap
def _(
    info: Any, in_dims: Sequence[int | None], row: Tensor, col: Tensor, num_rows: int, num_cols: int
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[int, int, int]]:
    """Group a batch of graphs by one sort: they stand side by side, with rows of their own."""
    size = info.batch_size
    row, col = (stacked(t, d, size) for t, d in zip((row, col), in_dims[:2], strict=True))
    check_range("target", row, num_rows)
    check_range("source", col, num_cols)
    edges = row.shape[1]
    dtype = index_dtype(size * edges, size * num_rows, num_cols)
    number = torch.arange(size, dtype=dtype, device=row.device).unsqueeze(1)
    ordered, edge = torch.sort((row.to(dtype) + number * num_rows).flatten(), stable=True)
    rowptr = torch._convert_indices_from_coo_to_csr(
        ordered, size * num_rows, out_int32=dtype == torch.int32
    )
    ends = torch.arange(1, num_rows + 1, device=row.device) + number * num_rows
    own = torch.cat([torch.zeros_like(number), rowptr[ends] - number * edges], 1)
    narrow = index_dtype(edges, num_rows, num_cols)
    by_row = col.flatten()[edge].view_as(col).to(narrow)
    edge = (edge.view_as(col) - number * edges).to(narrow)
    return (own.to(narrow), by_row, edge), (0, 0, 0)


def stacked(t: Tensor, dim: int | None, size: int) -> Tensor:
    """Return a batch of tensors with the batch in front; of one for all, a view."""
    return t.expand(size, *t.shape) if dim is None else t.movedim(dim, 0)


def is_readable(*tensors: Tensor) -> bool:
    """Say whether values may be looked at: not while a compiler traces, nor those of a batch."""
    return not torch.compiler.is_compiling() and not any(
        torch._C._functorch.is_batchedtensor(t) for t in tensors
    )


def index_dtype(*sizes: int) -> torch.dtype:
    """Return the narrowest integer type for these sizes: indices are read as often as features."""
    return torch.int64 if any(size > _INT32_MAX for size in sizes) else torch.int32


def check_range(name: str, index: Tensor, size: int) -> None:
    """Raise unless every index lies in ``[0, size)``: kernels read where the index points."""
    if index.numel() == 0:
        return
    if index.is_cuda and torch.cuda.is_current_stream_capturing():
        return  # nothing can be read; what is captured has run before, and was checked then
    low, high = (int(bound) for bound in torch.aminmax(index))
    _check_bounds(name, low, high, size)


def _check_bounds(name: str, low: int, high: int, size: int) -> None:
    if low < 0 or high >= size:
        raise UsageError(
            f"edge_index: {name} index {low if low < 0 else high} is out of range: expected "
            f"0 to {size - 1} for {size} nodes. Pass the right num_nodes, or mend the edges."
        )


def rows(rowptr: Tensor, num_edges: int) -> Tensor:
    """Return the row of every position, ``[num_edges]``: the inverse of ``rowptr``."""
    if torch._C._functorch.is_batchedtensor(rowptr):
        # Of a batch each has its own repeats: count the rows that begin at a position or before.
        begins = torch.zeros_like(rowptr[:1]).expand(num_edges + 1)
        begins = begins.scatter_add(0, rowptr[1:].long(), torch.ones_like(rowptr[1:]))
        return begins.cumsum(0, dtype=rowptr.dtype)[:num_edges]
    ids = torch.arange(rowptr.numel() - 1, dtype=rowptr.dtype, device=rowptr.device)
    return torch.repeat_interleave(ids, rowptr.diff(), output_size=num_edges)


def transpose(csr: CSR, num_cols: int) -> CSR:
    """Group the same edges by column; edges keep the user's numbers."""
    if is_on_host(csr.col) and csr.rowptr.numpy()[-1] == csr.col.numel():
        return _transposed(csr, num_cols)
    rowptr, col, position = group(
        csr.col, rows(csr.rowptr, csr.col.numel()), num_cols, csr.rowptr.numel() - 1
    )
    edge = position if csr.edge is None else csr.edge[position]
    return CSR(rowptr, col, edge, col.shape[0])


def grouped(row: Tensor, col: Tensor, num_rows: int, num_cols: int) -> CSR:
    """Group edges by row, without sorting where they are in order already."""
    if is_on_host(row) and is_on_host(col):
        return counted(row, col, num_rows, num_cols)
    if not is_readable(row, col) or not bool((row[1:] >= row[:-1]).all()):
        rowptr, col, edge = group(row, col, num_rows, num_cols)
        return measured(CSR(rowptr, col, edge, col.shape[0]))
    check_range("target", row, num_rows)
    check_range("source", col, num_cols)
    dtype = index_dtype(row.numel(), num_rows, num_cols)
    rowptr = torch._convert_indices_from_coo_to_csr(row, num_rows, out_int32=dtype == torch.int32)
    # A copy, never a view: the cache of graphs must not keep the user's tensor alive.
    return measured(CSR(rowptr, col.to(dtype, copy=True), None, col.shape[0]))


def counted(row: Tensor, col: Tensor, num_rows: int, num_cols: int) -> CSR:
    """Group edges by row, on the CPU by counting."""
    first, second = row.numpy(), col.numpy()
    _check_end("target", first, num_rows)
    _check_end("source", second, num_cols)
    dtype = _narrowest(len(first), num_rows, num_cols)
    return counted_ends(first.astype(dtype), second.astype(dtype), num_rows)


def _narrowest(*sizes: int) -> type[np.integer[Any]]:
    return np.int32 if index_dtype(*sizes) == torch.int32 else np.int64


def counted_ends(row: Ints, col: Ints, num_rows: int) -> CSR:
    """Group edges by row, whose ends are in range and of the narrowest type."""
    if _counting.is_ascending(row):
        rowptr = _counting.pointers(row, num_rows)
        return compressed(rowptr, col, None, longest_of(rowptr))
    rowptr, col, edge = _counting.by_row(row, col, num_rows)
    order = None if _counting.is_in_order(edge) else edge
    return compressed(rowptr, col, order, longest_of(rowptr))


def _are_below(index: Ints, size: int) -> bool:
    # As unsigned numbers negative ones are the largest: one look is enough.
    return index.size == 0 or _counting.largest(index.view(_UNSIGNED[index.itemsize])) < size


def _check_end(name: str, index: Ints, size: int) -> None:
    """Raise unless every index is in range: kernels read where the index points."""
    if not _are_below(index, size):
        _check_bounds(name, int(index.min()), int(index.max()), size)


def check_below(edges: Tensor, num_sources: int, num_targets: int) -> None:
    """Raise unless indices on the CPU are in range: of edges ``[2, E]``, or targets ``[S]``."""
    _check_ends(edges.numpy(), num_sources, num_targets)


def _check_ends(ends: Ints, num_sources: int, num_targets: int) -> None:
    if ends.ndim == 1:
        _check_end("target", ends, num_targets)
    elif num_sources != num_targets or not _are_below(ends, num_targets):
        _check_end("source", ends[0], num_sources)
        _check_end("target", ends[1], num_targets)


def ends_of(edges: Tensor, num_sources: int, num_targets: int) -> tuple[Ints, Ints]:
    """Return sources and targets of edges on the CPU, in range and of the narrowest type.

    Args:
        edges: ``[2, num_edges]``; or ``[num_sources]``, the target of each source.
        num_sources: Number of sources.
        num_targets: Number of targets.
    """
    given = edges.numpy()
    _check_ends(given, num_sources, num_targets)
    ends = given.astype(_narrowest(given.shape[-1], num_sources, num_targets), order="C")
    if ends.ndim == 1:
        return np.arange(len(ends), dtype=ends.dtype), ends
    return ends[0], ends[1]


def looped_rows(csr: CSR) -> Tensor:
    """Return the edges ``[2, E]`` of rows that are no self-loops, and one loop for each row."""
    source = csr.col.long()
    nodes = torch.arange(csr.rowptr.numel() - 1, device=source.device)
    target = nodes.repeat_interleave(csr.rowptr.diff())
    others = source != target
    return torch.stack([torch.cat([source[others], nodes]), torch.cat([target[others], nodes])])


def looped(source: Ints, target: Ints, num_nodes: int) -> tuple[Ints, Ints]:
    """Put an edge from each node to itself before edges on the CPU."""
    nodes = np.arange(num_nodes, dtype=target.dtype)
    return np.concatenate([nodes, source]), np.concatenate([nodes, target])


def rows_of(matrix: Tensor) -> CSR:
    """Return the rows of a CSR matrix on the CPU: copies, in range and of the narrowest type."""
    pointer, col = matrix.crow_indices().numpy(), matrix.col_indices().numpy()
    dtype = _narrowest(len(col), *matrix.shape)
    lengths = pointer[1:] - pointer[:-1]
    ends = pointer.item(0), pointer.item(-1)
    if ends != (0, len(col)) or not _are_below(lengths, len(col) + 1):  # none is negative
        refuse_pointers()
    _check_end("source", col, matrix.shape[1])
    longest = _counting.largest(lengths) if lengths.size > 0 else 0
    return compressed(pointer.astype(dtype), col.astype(dtype), None, longest)


def refuse_pointers() -> NoReturn:
    """Say that the pointers of a sparse matrix are none."""
    raise UsageError(
        "graph: the sparse tensor's compressed index does not ascend from 0 to its number of "
        "values. Build it with check_invariants=True to see where."
    )


def compressed(rowptr: Ints, col: Ints, edge: Ints | None, longest: int) -> CSR:
    """Return rows made on the CPU as the kernels see them."""
    order = None if edge is None else torch.from_numpy(edge)
    return CSR(torch.from_numpy(rowptr), torch.from_numpy(col), order, longest)


def _transposed(csr: CSR, num_cols: int) -> CSR:
    """Group the same edges by column, on the CPU."""
    rowptr, col = csr.rowptr.numpy(), csr.col.numpy()
    edge = np.arange(len(col), dtype=col.dtype) if csr.edge is None else csr.edge.numpy()
    ends, row, edge = _counting.transposed(rowptr, col, edge, num_cols)
    return compressed(ends, row, edge, longest_of(ends))


def longest_of(rowptr: Ints) -> int:
    """Return the length of the longest row."""
    return _counting.largest(rowptr[1:] - rowptr[:-1]) if len(rowptr) > 1 else 0


def by_single(col: Tensor, num_cols: int) -> CSR:
    """Return rows of a single edge each, to ``col``."""
    dtype = index_dtype(col.numel(), num_cols)
    rowptr = torch.arange(col.numel() + 1, dtype=dtype, device=col.device)
    return CSR(rowptr, col.to(dtype, copy=True), None, 1)


def is_plain(x: Tensor) -> bool:
    """Say whether ``x`` is an ordinary tensor that nothing traces: a kernel can read its values."""
    return (
        type(x) in (Tensor, torch.nn.Parameter)
        and not x.is_meta
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
        and torch._C._len_torch_dispatch_stack() == 0
    )


def is_plain_list(edges: Tensor) -> bool:
    """Say whether edges are two lists of integers whose values NumPy can read."""
    return (
        type(edges) is Tensor
        and is_on_host(edges)
        and edges.layout == torch.strided
        and edges.dtype in (torch.int64, torch.int32)
        and edges.dim() == 2
        and edges.shape[0] == 2
    )


def is_on_host(x: Tensor) -> bool:
    """Say whether NumPy can read the values of ``x``."""
    return x.device.type == "cpu" and is_plain(x)


def moved(csr: CSR, device: torch.device | str) -> CSR:
    """Return the same rows on another device."""
    edge = None if csr.edge is None else csr.edge.to(device)
    return CSR(csr.rowptr.to(device), csr.col.to(device), edge, csr.longest)


def measured(csr: CSR) -> CSR:
    """Return the same rows with the exact length of the longest, where values may be looked at."""
    if not is_readable(csr.rowptr) or csr.col.shape[0] == 0:
        return csr
    return csr._replace(longest=int(csr.rowptr.diff().max()))
