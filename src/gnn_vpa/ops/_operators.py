r"""The registered operators, closed under differentiation.

With rows ``i`` (targets), columns ``j`` (sources), edges ``e = (i, j)`` and heads ``h``:

==============  ===================================================================
``spmm``        ``out[i,h,:] = a[i,h] * sum_{e=(i,j)} w[e,h] * b[j,h] * x[j,h,:]``
``sddmm``       ``out[e,h]   = a[i,h] * b[j,h] * <g[i,h,:], x[j,h,:]>``
``segmax``      ``out[i,:]   = max_{e=(i,j), m[e]>0} x[j,:]``, and 0 where there is none
``winners``     ``out[i,:]   = sum_{e=(i,j), own[i,:]=other[j,:]} m[e] * share[j,:]``
==============  ===================================================================

The derivative of ``spmm`` by ``x`` is ``spmm`` on the transposed graph with ``a`` and ``b``
exchanged, and by ``w`` it is ``sddmm``, whose derivatives are ``spmm`` again: two kernels serve
derivatives of every order, and none of them makes an edges x features tensor. The derivative of
``segmax`` is ``winners``, shared evenly among ties as ``torch.amax`` does, and that of ``winners``
by ``share`` is ``winners`` on the transposed graph.

``a`` and ``b`` are constants (no gradient). ``w`` and ``m`` are in the user's order of edges. Each
operator takes the graph by row and, where known, by column; if it is missing, the backward pass
makes it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch
from torch import Tensor
from torch.library import custom_op

from ._backend import backend, kernels
from ._csr import CSR, index_dtype, stacked, transpose
from ._differentiable import differentiable, runs_bare
from ._dtypes import accumulable, accumulator

# custom_op reads the schema off these annotations and knows Optional, not the `|` of a string.
Opt = Optional[Tensor]  # noqa: UP045


@custom_op("gnn_vpa::spmm", mutates_args=())
def _spmm(
    x: Tensor,  # [S, H, F]
    w: Opt,  # [E, H]
    a: Opt,  # [R, H] or [R, 1]
    b: Opt,  # [S, H] or [S, 1]
    rowptr: Tensor,  # the graph by target …
    col: Tensor,
    edge: Opt,
    longest: int,
    t_rowptr: Opt,  # … and by source
    t_col: Opt,
    t_edge: Opt,
    t_longest: int,
) -> Tensor:
    """Sum over in-neighbours with edge weights and two diagonal scalings: ``[R, H, F]``."""
    return kernels(x).spmm(x, w, a, b, CSR(rowptr, col, edge, longest))  # type: ignore[no-any-return]


@_spmm.register_fake
def _(x: Tensor, w: Opt, a: Opt, b: Opt, rowptr: Tensor, *_: Any) -> Tensor:
    return x.new_empty(rowptr.shape[0] - 1, *x.shape[1:])


@custom_op("gnn_vpa::sddmm", mutates_args=())
def _sddmm(
    g: Tensor,  # [R, H, F]
    x: Tensor,  # [S, H, F]
    a: Opt,
    b: Opt,
    rowptr: Tensor,
    col: Tensor,
    edge: Opt,
    longest: int,
    t_rowptr: Opt,
    t_col: Opt,
    t_edge: Opt,
    t_longest: int,
) -> Tensor:
    """Dot products of targets and sources along the edges: ``[E, H]``, float32 for half types."""
    return kernels(x).sddmm(g, x, a, b, CSR(rowptr, col, edge, longest))  # type: ignore[no-any-return]


@_sddmm.register_fake
def _(g: Tensor, x: Tensor, a: Opt, b: Opt, rowptr: Tensor, col: Tensor, *_: Any) -> Tensor:
    return x.new_empty(col.shape[0], x.shape[1], dtype=accumulator(x.dtype))


@custom_op("gnn_vpa::segmax", mutates_args=())
def _segmax(
    x: Tensor,  # [S, F]
    m: Opt,  # [E]
    rowptr: Tensor,
    col: Tensor,
    edge: Opt,
    longest: int,
    t_rowptr: Opt,
    t_col: Opt,
    t_edge: Opt,
    t_longest: int,
) -> Tensor:
    """Maximum over in-neighbours: ``[R, F]``."""
    return kernels(x).segmax(x, m, CSR(rowptr, col, edge, longest))  # type: ignore[no-any-return]


@_segmax.register_fake
def _(x: Tensor, m: Opt, rowptr: Tensor, *_: Any) -> Tensor:
    return x.new_empty(rowptr.shape[0] - 1, x.shape[1])


@custom_op("gnn_vpa::winners", mutates_args=())
def _winners(
    own: Tensor,  # [R, F]
    other: Tensor,  # [S, F]
    share: Opt,  # [S, F]
    m: Opt,  # [E]
    rowptr: Tensor,
    col: Tensor,
    edge: Opt,
    longest: int,
    t_rowptr: Opt,
    t_col: Opt,
    t_edge: Opt,
    t_longest: int,
) -> Tensor:
    """Sum the share of the neighbours that hold a target's own value: ``[R, F]``, float32 up."""
    return kernels(own).winners(own, other, share, m, CSR(rowptr, col, edge, longest))  # type: ignore[no-any-return]


@_winners.register_fake
def _(own: Tensor, *_: Any) -> Tensor:
    return own.new_empty(own.shape, dtype=accumulator(own.dtype))


# Derivatives ----------------------------------------------------------------------------------


def _save(ctx: Any, graph: Sequence[Any], *tensors: Opt) -> None:
    """Keep the graph and ``tensors`` for the backward pass."""
    rowptr, col, edge, longest, t_rowptr, t_col, t_edge, t_longest = graph
    ctx.longest = (longest, t_longest)
    ctx.save_for_backward(rowptr, col, edge, t_rowptr, t_col, t_edge, *tensors)


def _saved(ctx: Any, num_cols: int) -> tuple[CSR, CSR]:
    """Return the graph by row and by column."""
    rowptr, col, edge, t_rowptr, t_col, t_edge = ctx.saved_tensors[:6]
    by_row = CSR(rowptr, col, edge, ctx.longest[0])
    if t_rowptr is None:
        return by_row, transpose(by_row, num_cols)
    return by_row, CSR(t_rowptr, t_col, t_edge, ctx.longest[1])


def _spmm_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, w, a, b, *graph = inputs
    ctx.needs_w = w is not None and ctx.needs_input_grad[1]
    ctx.num_cols = x.shape[0]
    _save(ctx, graph, x if ctx.needs_w else None, w, a, b)


def _spmm_backward(ctx: Any, g: Tensor) -> tuple[Opt, ...]:
    x, w, a, b = ctx.saved_tensors[6:]
    by_row, by_col = _saved(ctx, ctx.num_cols)
    grad_x = spmm(g, w, b, a, *by_col, *by_row) if ctx.needs_input_grad[0] else None
    grad_w = sddmm(g, x, a, b, *by_row, *by_col).to(w.dtype) if ctx.needs_w else None
    return grad_x, grad_w, *(None,) * 10


def _sddmm_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _save(ctx, inputs[4:], *inputs[:4])


def _sddmm_backward(ctx: Any, grad: Tensor) -> tuple[Opt, ...]:
    g, x, a, b = ctx.saved_tensors[6:]
    by_row, by_col = _saved(ctx, x.shape[0])
    grad_g = spmm(x, grad, a, b, *by_row, *by_col) if ctx.needs_input_grad[0] else None
    grad_x = spmm(g, grad, b, a, *by_col, *by_row) if ctx.needs_input_grad[1] else None
    return grad_g, grad_x, *(None,) * 10


def _segmax_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, m, *graph = inputs
    _save(ctx, graph, x, output, m)


def _segmax_backward(ctx: Any, g: Tensor) -> tuple[Opt, ...]:
    x, out, m = ctx.saved_tensors[6:]
    by_row, by_col = _saved(ctx, x.shape[0])
    if backend(x) == "triton" and runs_bare(x):
        return kernels(x).segmax_gradient(g, x, out, m, by_row, by_col), *(None,) * 9
    ties = winners(out, x, None, m, *by_row, *by_col)
    share = accumulable(g) / torch.where(ties > 0, ties, 1)
    return winners(x, out, share, m, *by_col, *by_row).to(x.dtype), *(None,) * 9


def _winners_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    own, other, _, m, *graph = inputs
    _save(ctx, graph, own, other, m)


def _winners_backward(ctx: Any, grad: Tensor) -> tuple[Opt, ...]:
    if not ctx.needs_input_grad[2]:
        return (None,) * 12
    own, other, m = ctx.saved_tensors[6:]
    by_row, by_col = _saved(ctx, other.shape[0])
    return None, None, winners(other, own, grad, m, *by_col, *by_row), *(None,) * 9


# Batching rules: a batch of features is more features, a batch of weights is more heads. --------

InDims = tuple[int | None, ...]


def _front(t: Tensor, dim: int | None, size: int) -> Tensor:
    """Move the batch to axis 1, right behind nodes or edges; make one where there is none."""
    return t.unsqueeze(1).expand(-1, size, *t.shape[1:]) if dim is None else t.movedim(dim, 1)


def _heads(t: Opt, dim: int | None, size: int, heads: int) -> Opt:
    """Fold a batch of ``[N, H or 1]`` factors into ``[N, size * H]``."""
    if t is None:
        return None
    return _front(t, dim, size).expand(-1, size, heads).reshape(-1, size * heads)


def _length(t: Tensor, dim: int | None) -> int:
    """Return the number of rows of each in a batch."""
    return t.shape[0] if dim is None else t.movedim(dim, 0).shape[1]


def _side_by_side(
    op: Callable[..., Tensor], info: Any, in_dims: InDims, args: tuple[Any, ...], num_sources: int
) -> tuple[Tensor, int]:
    """Run a batch of graphs as one, in which they stand side by side.

    Args:
        op: The operator.
        info: The size of the batch.
        in_dims: Where each argument has its batch, if it has one.
        args: What the operator takes: rows of nodes or edges, and the graph in both directions.
        num_sources: Number of sources of a graph.
    """
    size = info.batch_size
    flat = [
        stacked(t, d, size).flatten(0, 1) if isinstance(t, Tensor) else t
        for t, d in zip(args[:-8], in_dims[:-8], strict=True)
    ]
    graph: list[Any] = [
        stacked(t, d, size) if isinstance(t, Tensor) else t
        for t, d in zip(args[-8:], in_dims[-8:], strict=True)
    ]
    num_targets = graph[0].shape[1] - 1
    by_target = _united(CSR(*graph[:4]), num_sources)
    by_source = graph[4:] if graph[4] is None else _united(CSR(*graph[4:]), num_targets)
    out = op(*flat, *by_target, *by_source)
    return out.view(size, -1, *out.shape[1:]), 0


def _united(csr: CSR, num_cols: int) -> CSR:
    """Put graphs, with a batch in front, side by side: each has rows, columns and edges apart."""
    size, num_edges = csr.col.shape
    num_rows = csr.rowptr.shape[1] - 1
    dtype = index_dtype(size * num_edges, size * num_rows, size * num_cols)
    number = torch.arange(size, dtype=dtype, device=csr.col.device).unsqueeze(1)
    begin = (csr.rowptr[:, :-1] + number * num_edges).flatten()
    return CSR(
        torch.cat([begin, begin.new_full((1,), size * num_edges)]),
        (csr.col + number * num_cols).flatten(),
        None if csr.edge is None else (csr.edge + number * num_edges).flatten(),
        csr.longest,
    )


def _spmm_vmap(info: Any, in_dims: InDims, *args: Any) -> tuple[Tensor, int]:
    size = info.batch_size
    if any(d is not None for d in in_dims[4:]):
        return _side_by_side(spmm, info, in_dims, args, _length(args[0], in_dims[0]))
    x, w, a, b, *graph = args
    x = _front(x, in_dims[0], size)  # [S, B, H, F]
    heads, features = x.shape[2:]
    if all(d is None for d in in_dims[1:4]):
        wide = x.movedim(1, 2).reshape(-1, heads, size * features)
        out = spmm(wide, w, a, b, *graph)
        return out.view(-1, heads, size, features), 2
    w, a, b = (_heads(t, d, size, heads) for t, d in zip((w, a, b), in_dims[1:4], strict=True))
    out = spmm(x.reshape(-1, size * heads, features), w, a, b, *graph)
    return out.view(-1, size, heads, features), 1


def _sddmm_vmap(info: Any, in_dims: InDims, *args: Any) -> tuple[Tensor, int]:
    size = info.batch_size
    if any(d is not None for d in in_dims[4:]):
        return _side_by_side(sddmm, info, in_dims, args, _length(args[1], in_dims[1]))
    g, x, a, b, *graph = args
    g, x = _front(g, in_dims[0], size), _front(x, in_dims[1], size)
    heads, features = x.shape[2:]
    a, b = _heads(a, in_dims[2], size, heads), _heads(b, in_dims[3], size, heads)
    g, x = (t.reshape(-1, size * heads, features) for t in (g, x))
    return sddmm(g, x, a, b, *graph).view(-1, size, heads), 1


def _segmax_vmap(info: Any, in_dims: InDims, *args: Any) -> tuple[Tensor, int]:
    if any(d is not None for d in in_dims[1:]):
        return _side_by_side(segmax, info, in_dims, args, _length(args[0], in_dims[0]))
    x = _front(args[0], in_dims[0], info.batch_size)
    return segmax(x.flatten(1), *args[1:]).view(-1, *x.shape[1:]), 1


def _winners_vmap(info: Any, in_dims: InDims, *args: Any) -> tuple[Tensor, int]:
    if any(d is not None for d in in_dims[3:]):
        return _side_by_side(winners, info, in_dims, args, _length(args[1], in_dims[1]))
    flat = [
        None if t is None else _front(t, d, info.batch_size).flatten(1)
        for t, d in zip(args[:3], in_dims[:3], strict=True)
    ]
    out = winners(*flat, *args[3:])
    return out.view(len(out), info.batch_size, -1), 1


spmm = differentiable(_spmm, _spmm_context, _spmm_backward, _spmm_vmap, linear_in=(0, 1))
sddmm = differentiable(_sddmm, _sddmm_context, _sddmm_backward, _sddmm_vmap, linear_in=(0, 1))
segmax = differentiable(_segmax, _segmax_context, _segmax_backward, _segmax_vmap)
winners = differentiable(_winners, _winners_context, _winners_backward, _winners_vmap)
