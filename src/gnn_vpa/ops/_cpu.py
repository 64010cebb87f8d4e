"""Kernels for the CPU, put together from PyTorch's own vectorised, multi-threaded loops.

- ``spmm``: ``embedding_bag`` over CSR, several times faster than a sparse matrix product and
  tens of times faster than gather and scatter. Rows longer than ``_LONG`` are summed in pieces:
  a sum of a million float32 terms in a row would lose four digits.
- ``sddmm``: ``sampled_addmm``, which reads each pair of rows in place.
- ``segmax``: rows of like degree side by side, so that the maximum runs along a dense axis.
"""

import warnings
from collections.abc import Iterator
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from ._csr import CSR
from ._dtypes import accumulable
from ._reference import in_user_order, positions

_LONG = 4096  # edges of a row that are summed in one go
_BLOCK = 1 << 20  # elements of a gathered block: it should stay in the second-level cache


def spmm(x: Tensor, w: Tensor | None, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    values = accumulable(x)
    if b is not None:
        values = values * b.unsqueeze(-1)
    if w is not None:
        w = accumulable(w)[positions(csr)]
    heads = x.shape[1]
    sums = [
        _bags(values[:, h], None if w is None else w[:, h], csr.rowptr, csr.col)
        for h in range(heads)
    ]
    out = sums[0].unsqueeze(1) if heads == 1 else torch.stack(sums, dim=1)
    if a is not None:
        out.mul_(a.unsqueeze(-1))
    return out.to(x.dtype)


def _bags(x: Tensor, w: Tensor | None, ptr: Tensor, col: Tensor) -> Tensor:
    """Sum rows of ``x`` by bag: bag ``i`` holds ``col[ptr[i]:ptr[i + 1]]``."""
    if x.shape[1] == 0 or ptr.numel() == 1 or col.numel() == 0:
        return x.new_zeros(ptr.numel() - 1, x.shape[1])
    if col.numel() > _LONG and int(ptr.diff().max()) > _LONG:
        tiles = torch.arange(0, col.numel(), _LONG, dtype=ptr.dtype)
        cuts = torch.cat([ptr, tiles]).sort().values
        first = torch.searchsorted(cuts, ptr, out_int32=ptr.dtype == torch.int32)
        parts = _plain_bags(x, w, cuts, col)
        return _bags(parts, None, first, torch.arange(len(parts), dtype=col.dtype))
    return _plain_bags(x, w, ptr, col)


def _plain_bags(x: Tensor, w: Tensor | None, ptr: Tensor, col: Tensor) -> Tensor:
    if w is not None:
        w = w.contiguous()
    return embedding_bag(
        col, x.contiguous(), ptr, mode="sum", per_sample_weights=w, include_last_offset=True
    )


def sddmm(g: Tensor, x: Tensor, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    _silence_beta_warning()
    left = accumulable(g) if a is None else accumulable(g) * a.unsqueeze(-1)
    right = accumulable(x) if b is None else accumulable(x) * b.unsqueeze(-1)
    out = right.new_zeros(csr.col.numel(), x.shape[1])
    if x.shape[2] > 0 and out.numel() > 0:
        shape = (csr.rowptr.numel() - 1, x.shape[0])
        pattern = torch.sparse_csr_tensor(
            csr.rowptr, csr.col, out[:, 0].contiguous(), shape, check_invariants=False
        )
        for h in range(x.shape[1]):
            dots = torch.sparse.sampled_addmm(
                pattern, left[:, h].contiguous(), right[:, h].contiguous().t(), beta=0
            )
            out[:, h] = dots.values()
    return in_user_order(out, csr)


@cache
def _silence_beta_warning() -> None:
    # PyTorch says once in a process that CSR tensors are in beta: of no use to our users.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        torch.eye(1).to_sparse_csr()


def segmax(x: Tensor, m: Tensor | None, csr: CSR) -> Tensor:
    out = x.new_zeros(csr.rowptr.numel() - 1, x.shape[1])
    for rows, places, present in _blocks(csr, m, x.shape[1]):
        values = x[csr.col[places]]
        if present is None:
            out[rows] = values.amax(1)
        else:
            best = values.masked_fill_(~present.unsqueeze(-1), -torch.inf).amax(1)
            out[rows] = best.masked_fill_(~present.any(1, keepdim=True), 0)
    return out


def segmax_grad(
    g: Tensor, x: Tensor, out: Tensor, m: Tensor | None, by_row: CSR, by_col: CSR
) -> Tensor:
    share = accumulable(g.clone())
    for rows, places, present in _blocks(by_row, m, x.shape[1]):
        won = x[by_row.col[places]] == out[rows].unsqueeze(1)
        ties = _counted(won, by_row, m, places, present).sum(1)
        share[rows] /= torch.where(ties > 0, ties, 1).to(share.dtype)
    grad = torch.zeros_like(x, dtype=share.dtype)
    for rows, places, present in _blocks(by_col, m, x.shape[1]):
        targets = by_col.col[places]
        won = out[targets] == x[rows].unsqueeze(1)
        grad[rows] = (_counted(won, by_col, m, places, present) * share[targets]).sum(1)
    return grad.to(x.dtype)


def _counted(
    won: Tensor, csr: CSR, m: Tensor | None, places: Tensor, present: Tensor | None
) -> Tensor:
    """Weight the winners by their multiplicity; the padding of a block counts for nothing."""
    if present is not None:
        won = won & present.unsqueeze(-1)
    return won if m is None else won * accumulable(m)[positions(csr)][places].unsqueeze(-1)


def _blocks(
    csr: CSR, m: Tensor | None, width: int
) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
    """Yield rows of like degree with their edges as a rectangle.

    Yields:
        ``rows [B]``, the positions of their edges ``[B, d]`` (padded by repeating the last), and
        which of them count, ``[B, d]``, or None where all do.
    """
    degree, rows = csr.rowptr.diff().sort()
    first = int(torch.searchsorted(degree, 1))
    room = max(1, _BLOCK // max(1, width))
    while first < len(rows):
        # Rows ascend in degree: as many as fit if each were as long as the longest among them.
        count = max(1, room // int(degree[first]))
        count = max(1, min(count, room // int(degree[min(first + count, len(rows)) - 1])))
        block = rows[first : first + count]
        size = degree[first : first + count].unsqueeze(1)
        step = torch.arange(int(size[-1]), dtype=csr.rowptr.dtype).expand(len(block), -1)
        places = csr.rowptr[block].unsqueeze(1) + torch.minimum(step, size - 1)
        present = step < size if int(size[0]) < int(size[-1]) else None
        if m is not None:
            alive = m[positions(csr)][places] > 0
            present = alive if present is None else present & alive
        yield block, places, present
        first += len(block)
