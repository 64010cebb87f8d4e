"""The formulas in plain PyTorch, for every device: what the fast kernels are compared with.

It makes edges x features tensors on purpose: each line is the definition.
"""

import torch
from torch import Tensor

from ._csr import CSR, rows
from ._dtypes import accumulable


def spmm(x: Tensor, w: Tensor | None, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    messages = accumulable(x)
    if b is not None:
        messages = messages * b.unsqueeze(-1)
    messages = messages[csr.col]
    if w is not None:
        messages = messages * w[positions(csr)].unsqueeze(-1)
    out = torch.segment_reduce(messages, "sum", offsets=csr.rowptr.long(), axis=0)
    if a is not None:
        out = out * a.unsqueeze(-1)
    return out.to(x.dtype)


def spmm_narrow(x: Tensor, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    """Return ``a_i * sum_j b_j x_j`` for ``x [S, F]``: ``spmm`` of one head without weights."""
    return spmm(x.unsqueeze(1), None, a, b, csr).squeeze(1)


def sddmm(g: Tensor, x: Tensor, a: Tensor | None, b: Tensor | None, csr: CSR) -> Tensor:
    left = accumulable(g) if a is None else accumulable(g) * a.unsqueeze(-1)
    right = accumulable(x) if b is None else accumulable(x) * b.unsqueeze(-1)
    dots = (left[rows(csr.rowptr, csr.col.numel())] * right[csr.col]).sum(-1)
    return in_user_order(dots, csr)


def segmax(x: Tensor, m: Tensor | None, csr: CSR) -> Tensor:
    messages, offsets, count = x[csr.col], csr.rowptr.long(), csr.rowptr.diff()
    if m is not None:
        present = m[positions(csr)] > 0
        messages = messages.masked_fill(~present.unsqueeze(-1), -torch.inf)
        count = torch.segment_reduce(present.float(), "sum", offsets=offsets, axis=0)
    out = torch.segment_reduce(messages, "max", offsets=offsets, axis=0)
    return out.masked_fill((count == 0).unsqueeze(-1), 0)


def winners(own: Tensor, other: Tensor, share: Tensor | None, m: Tensor | None, csr: CSR) -> Tensor:
    won = accumulable((other[csr.col] == own[rows(csr.rowptr, csr.col.numel())]).to(own.dtype))
    if share is not None:
        won = won * share[csr.col]
    if m is not None:
        won = won * m[positions(csr)].unsqueeze(-1)
    return torch.segment_reduce(won, "sum", offsets=csr.rowptr.long(), axis=0)


def positions(csr: CSR) -> Tensor | slice:
    """Index that takes a tensor of edges from the user's order to the order of ``csr``."""
    return slice(None) if csr.edge is None else csr.edge


def in_user_order(values: Tensor, csr: CSR) -> Tensor:
    """Take a tensor of edges from the order of ``csr`` to the user's order."""
    if csr.edge is None:
        return values
    out = torch.empty_like(values)
    out[csr.edge] = values
    return out
