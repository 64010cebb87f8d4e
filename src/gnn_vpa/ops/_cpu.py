"""Kernels for the CPU, put together from PyTorch's own vectorised, multi-threaded loops.

- ``spmm``: ``embedding_bag`` over CSR, several times faster than a sparse matrix product and
  tens of times faster than gather and scatter. Rows longer than ``LONG`` are summed in pieces:
  a sum of a million float32 terms in a row would lose four digits.
- ``sddmm``: ``sampled_addmm``, which reads each pair of rows in place.
- ``segmax``: rows of like degree side by side, so that the maximum runs along a dense axis; of a
  few features, as weights and logits are, the plain way is several times faster.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from . import _reference
from ._csr import CSR, rows
from ._dtypes import accumulable, accumulator
from ._reference import in_user_order, positions

LONG = 2048  # edges of a row that are summed in one go
_PIECE = 512  # edges of the pieces in which a longer one is
_NARROW = 8  # features up to which the plain maximum is faster than one of rows side by side
_BLOCK = 1 << 18  # elements of a gathered block: it should stay in the second-level cache
_summed = torch._embedding_bag_forward_only


def spmm(x: Tensor, w: Tensor | None, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    values = accumulable(x)
    w = None if w is None else _ordered(accumulable(w), csr)
    if b is not None:
        # A factor for each edge is a smaller thing than features scaled anew.
        w = b[csr.col] if w is None else w * b[csr.col]
    heads = x.shape[1]
    sums = [_bags(values[:, h], _head(w, h), csr) for h in range(heads)]
    out = sums[0].unsqueeze(1) if heads == 1 else torch.stack(sums, dim=1)
    if a is not None:
        out.mul_(a.unsqueeze(-1))
    return out.to(x.dtype)


def spmm_narrow(x: Tensor, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    """Return ``a_i * sum_j b_j x_j`` for ``x [S, F]``: ``spmm`` of one head without weights."""
    values = accumulable(x)
    out = _bags(values if b is None else values * b, None, csr)
    if a is not None:
        out.mul_(a)
    return out.to(x.dtype)


def _ordered(w: Tensor, csr: CSR) -> Tensor:
    """Take weights ``[E, H]`` from the user's order of edges to that of ``csr``."""
    if csr.edge is None or w.shape[1] != 1:
        return w[positions(csr)]
    return w.reshape(-1).index_select(0, csr.edge).unsqueeze(1)  # a quarter of the time


def _head(w: Tensor | None, head: int) -> Tensor | None:
    """Return the weights of one head; a single column serves all."""
    return None if w is None else w[:, head if w.shape[1] > 1 else 0].contiguous()


def _bags(x: Tensor, w: Tensor | None, csr: CSR) -> Tensor:
    """Sum rows of ``x`` by row of ``csr``; ``w`` is in the order of ``csr``."""
    ptr, col = csr.rowptr, csr.col
    if x.shape[1] == 0 or ptr.numel() == 1 or col.numel() == 0:
        return x.new_zeros(ptr.numel() - 1, x.shape[1])
    if (owned := int(ptr[-1])) < col.numel():
        # What no row owns, embedding_bag gives to the last one (in float64).
        w, csr = None if w is None else w[:owned], csr._replace(col=col[:owned])
    return whole_bags(x, w, csr)


def whole_bags(x: Tensor, w: Tensor | None, csr: CSR) -> Tensor:
    """Sum rows of ``x`` where there are some, and rows own all edges; ``w`` is in that order."""
    ptr, col = csr.rowptr, csr.col
    # What torch.nn.functional.embedding_bag calls after its checks, where no derivative of its own
    # is needed: mode 0 is the sum.
    out: Tensor = _summed(x.contiguous(), col, ptr, False, 0, False, w, True)[0]
    if csr.longest > LONG:
        long = (ptr.diff() > LONG).nonzero().flatten()
        if len(long) > 0:
            out[long] = _in_pieces(x, w, csr, long)
    return out


def _in_pieces(x: Tensor, w: Tensor | None, csr: CSR, long: Tensor) -> Tensor:
    """Sum long rows again: in pieces of ``_PIECE`` edges first, and then the pieces."""
    start = csr.rowptr[long]
    length = csr.rowptr[long + 1] - start
    begin = length.cumsum(0, dtype=length.dtype) - length  # among the long rows' edges alone
    owner = torch.repeat_interleave(length)
    position = torch.arange(len(owner)) + (start - begin)[owner]
    count = (length + _PIECE - 1) // _PIECE
    ends = torch.cat([count.new_zeros(1), count.cumsum(0, dtype=count.dtype)])
    row = torch.repeat_interleave(count)
    numbers = torch.arange(len(row), dtype=count.dtype)
    cuts = begin[row] + (numbers - ends[row]) * _PIECE
    cuts = torch.cat([cuts, cuts.new_tensor([len(owner)])])
    pieces = CSR(cuts, csr.col[position], None, _PIECE)
    parts = _bags(x, None if w is None else w[position], pieces)
    whole = CSR(ends, numbers, None, int(count.max()))
    if whole.longest > _PIECE:
        return _in_pieces(parts, None, whole, torch.arange(len(long)))
    return _bags(parts, None, whole)


def sddmm(g: Tensor, x: Tensor, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    left = accumulable(g) if a is None else accumulable(g) * a.unsqueeze(-1)
    right = accumulable(x) if b is None else accumulable(x) * b.unsqueeze(-1)
    found = [
        dots(left[:, h].contiguous(), right[:, h].contiguous(), csr) for h in range(x.shape[1])
    ]
    return in_user_order(torch.stack(found, dim=1), csr)


def dots(g: Tensor, x: Tensor, csr: CSR) -> Tensor:
    """Dot products along the edges for one head, in the order of ``csr``."""
    num_edges = csr.col.numel()
    if num_edges == 0 or x.shape[1] == 0:
        return x.new_zeros(num_edges)
    if num_edges > len(g) * len(x):
        # More edges than pairs of nodes, which a sparse matrix cannot hold: look the pairs up.
        pairs = (g @ x.t()).flatten()
        return pairs[rows(csr.rowptr, num_edges).long() * len(x) + csr.col]
    _silence_beta_warning()
    pattern = torch.sparse_csr_tensor(
        csr.rowptr, csr.col, x.new_zeros(num_edges), (len(g), len(x)), check_invariants=False
    )
    found: Tensor = torch.sparse.sampled_addmm(pattern, g, x.t(), beta=0).values()
    return found


@cache
def _silence_beta_warning() -> None:
    # PyTorch warns once per process that CSR tensors are in beta, and 2.11 also that their content
    # is not checked. The calls in `dots` are made here once, behind a filter of this module alone:
    # `warnings.catch_warnings` would restore the filters that another thread has set meanwhile.
    silent = ("ignore", None, UserWarning, re.compile(re.escape(__name__) + r"\Z"), 0)
    warnings.filters.insert(0, silent)  # type: ignore[attr-defined]
    try:
        ends, one = torch.tensor([0, 1]), torch.ones(1, 1)
        pattern = torch.sparse_csr_tensor(ends, ends[:1], one[0], (1, 1), check_invariants=False)
        torch.sparse.sampled_addmm(pattern, one, one, beta=0)
    finally:
        with suppress(ValueError):  # another thread may have replaced the list
            warnings.filters.remove(silent)  # type: ignore[attr-defined]


def segmax(x: Tensor, m: Tensor | None, csr: CSR) -> Tensor:
    if x.shape[1] <= _NARROW:
        return _reference.segmax(x, m, csr)
    out = x.new_zeros(csr.rowptr.numel() - 1, x.shape[1])
    absent = None if m is None or bool((m > 0).all()) else m[positions(csr)] <= 0
    for block, places in _blocks(csr, x.shape[1]):
        values = _rows_of(x, csr.col[places])  # an edge that stands twice changes no maximum
        if absent is None:
            out[block] = values.amax(1)
        else:
            gone = absent[places]
            best = values.masked_fill_(gone.unsqueeze(-1), -torch.inf).amax(1)
            out[block] = best.masked_fill_(gone.all(1, keepdim=True), 0)
    return out


def winners(own: Tensor, other: Tensor, share: Tensor | None, m: Tensor | None, csr: CSR) -> Tensor:
    out = torch.zeros_like(own, dtype=accumulator(own.dtype))
    times = None if m is None else m[positions(csr)].unsqueeze(1)
    for first, last in _spans(csr, own.shape[1]):
        begin, end = (int(csr.rowptr[at]) for at in (first, last))
        around, ptr = csr.col[begin:end], csr.rowptr[first : last + 1] - begin
        won = other.index_select(0, around) == own[first:last].index_select(
            0, rows(ptr, end - begin)
        )
        value = won.to(out.dtype) if share is None else won * share.index_select(0, around)
        if times is not None:
            value.mul_(times[begin:end])
        place = torch.arange(end - begin, dtype=around.dtype)
        out[first:last] = _bags(value, None, CSR(ptr, place, None, csr.longest))
    return out


def _spans(csr: CSR, width: int) -> Iterator[tuple[int, int]]:
    """Yield first and last of consecutive rows whose edges make a block of features."""
    room = max(1, _BLOCK // max(1, width))
    owned = int(csr.rowptr[-1])  # edges behind these belong to no row
    marks = torch.arange(room, max(room, owned), room, dtype=csr.rowptr.dtype)
    cuts = [0, *torch.searchsorted(csr.rowptr, marks).tolist(), csr.rowptr.numel() - 1]
    return ((first, last) for first, last in pairwise(cuts) if first < last)


def _rows_of(x: Tensor, index: Tensor) -> Tensor:
    """Gather rows of ``x [S, F]``: ``[B, d] -> [B, d, F]``, faster than by ``x[index]``."""
    return x.index_select(0, index.flatten()).view(*index.shape, x.shape[1])


def _blocks(csr: CSR, width: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield rows of about the same degree, with their edges as a rectangle.

    Yields:
        Rows ``[B]``; and the positions of their edges, ``[B, d]``, the last repeated where a row
        has fewer.
    """
    degree, order = csr.rowptr.diff().sort()
    # Up to 8 as they are, then four sizes an octave: few rectangles, at most a fifth of it spare.
    unit = 2 ** (degree.clamp(min=8).log2().floor().int() - 2)
    size = torch.where(degree <= 8, degree, (degree + unit - 1) // unit * unit)
    sizes, counts = torch.unique_consecutive(size, return_counts=True)
    room = max(1, _BLOCK // max(1, width))
    first = 0
    for longest, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        step = max(1, room // max(1, longest))
        for begin in range(first, first + count, step) if longest > 0 else ():
            end = min(begin + step, first + count)
            own, places = degree[begin:end].unsqueeze(1), torch.arange(longest, dtype=degree.dtype)
            places = csr.rowptr[order[begin:end]].unsqueeze(1) + torch.minimum(places, own - 1)
            yield order[begin:end], places
        first += count
