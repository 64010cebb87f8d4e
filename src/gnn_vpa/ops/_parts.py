"""Attention whose logits are a part of the source and a part of the target, as in GAT.

Where it is called plainly on the CPU, all of it is one step, forward and backward: with
``e_ij = exp(l_ij - max_j l_ij)``, attention divided by the norm of its weights is
``out_i = sum_j u_ij x_j`` with ``u_ij = e_ij / sqrt(sum_j e_ij^2)``, as the sum of the softmax
cancels. Numbers of edges are NumPy's, whose calls are cheap; features go through ``embedding_bag``.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import leaky_relu

from . import observe
from ._aggregate import aggregate
from ._attend import softmax
from ._backend import backend
from ._cpu import LONG, dots, whole_bags
from ._csr import is_plain
from ._differentiable import has_duals
from ._edges import from_sources, from_targets
from ._graph import Graph, trainable

Floats = NDArray[Any]


def attend_by_parts(
    x: Tensor,
    graph: Graph,
    source: Tensor,
    target: Tensor,
    slope: float,
    times: Tensor | None,
    *,
    normed: bool = True,
) -> Tensor:
    """Attend with logits ``leaky_relu(source_j + target_i)``, divided by the norm of its weights.

    No gradient flows through that norm.

    Args:
        x: ``[num_sources, heads, features]``.
        graph: The edges.
        source: ``[num_sources, heads]``.
        target: ``[num_targets, heads]``.
        slope: Of the leaky ReLU where it is negative.
        times: ``[num_edges]``, how often an edge counts; None: once.
        normed: Whether it is divided by the norm; otherwise the weights sum up to 1, as in GAT.
    """
    if times is None and _is_short(x, graph, source, target):
        return _Attention.apply(x, source, target, graph, slope, normed)  # type: ignore[no-any-return, no-untyped-call]
    return _general(x, source, target, graph, slope, times, normed)


def _general(
    x: Tensor,
    source: Tensor,
    target: Tensor,
    graph: Graph,
    slope: float,
    times: Tensor | None,
    normed: bool,
) -> Tensor:
    logits = leaky_relu(from_sources(source, graph) + from_targets(target, graph), slope)
    weight = softmax(logits, graph, times, x)
    aggr = "vpa" if normed else "sum"
    return aggregate(x, graph, aggr, weight, times, normalizer_grad=False)


def _is_short(x: Tensor, graph: Graph, *parts: Tensor) -> bool:
    return (
        is_plain(x)
        and x.dtype in (torch.float32, torch.float64)
        and all(is_plain(part) and part.dtype == x.dtype for part in parts)
        and not has_duals()
        and observe.observer is None
        and graph.multiplicity is None
        and backend(x) == "cpu"
        and x.shape[2] > 0
        and graph.is_whole
        and graph.by_target.longest <= LONG  # longer sums need more care
    )


class _Rows(NamedTuple):
    """Which edges are whose, in the order by target."""

    begin: NDArray[Any]  # of the rows that have edges, their first one
    some: NDArray[Any] | slice  # these rows
    row: NDArray[Any]  # of each edge, its row among these
    col: NDArray[Any]  # of each edge, its source

    def over(self, values: Floats) -> Floats:
        """Give each edge the value of its row."""
        return values.take(self.row, axis=0)


def _rows(graph: Graph) -> _Rows:
    known: _Rows | None = graph.ways.get("rows")
    if known is None:
        rowptr = graph.by_target.rowptr.numpy()
        known = _Rows(*_begins(rowptr), graph.by_target.col.numpy())
        graph.ways["rows"] = known
    return known


def _begins(rowptr: NDArray[Any]) -> tuple[Any, Any, Any]:
    lengths = rowptr[1:] - rowptr[:-1]
    if np.minimum.reduce(lengths) > 0:
        return rowptr[:-1], slice(None), np.arange(len(lengths)).repeat(lengths)
    some = lengths.nonzero()[0]
    return rowptr[some], some, np.arange(len(some)).repeat(lengths[some])


class _Columns(NamedTuple):
    """The same edges in the order by source."""

    begin: NDArray[Any]
    some: NDArray[Any] | slice
    place: NDArray[Any]  # of each edge, its place in the order by target


def _columns(graph: Graph) -> _Columns:
    known: _Columns | None = graph.ways.get("columns")
    if known is None:
        here, there = graph.by_target.edge, graph.by_source.edge
        place = np.arange(graph.num_edges)
        if here is not None:
            inverse = np.empty_like(place)
            inverse[here.numpy()] = place
            place = inverse
        if there is not None:
            place = place[there.numpy()]
        begin, some, _ = _begins(graph.by_source.rowptr.numpy())
        known = _Columns(begin, some, place)
        graph.ways["columns"] = known
    return known


def _weights(
    source: Tensor, target: Tensor, graph: Graph, slope: float, normed: bool
) -> tuple[Floats, Any, Floats | None]:
    """Return ``u [E, H]`` by target, where logits were negative, and by how much ``u`` outweighs.

    The softmax's weights are ``u_ij / share_i``; without a share they are ``u_ij``.
    """
    rows = _rows(graph)
    logits = source.numpy().take(rows.col, axis=0) + rows.over(target.numpy()[rows.some])
    falls = logits <= 0
    logits = np.where(falls, np.asarray(slope, logits.dtype) * logits, logits)
    logits -= rows.over(np.maximum.reduceat(logits, rows.begin))
    mass = np.exp(logits, out=logits)
    if not normed:
        mass /= rows.over(np.add.reduceat(mass, rows.begin))
        return mass, falls, None
    norm = np.sqrt(np.add.reduceat(mass * mass, rows.begin))
    share = np.add.reduceat(mass, rows.begin) / norm
    mass /= rows.over(norm)
    return mass, falls, share


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        source: Tensor,
        target: Tensor,
        graph: Graph,
        slope: float,
        normed: bool,
    ) -> Tensor:
        parts = source.detach(), target.detach()
        with np.errstate(all="ignore"):  # what is not finite stays so, as in PyTorch
            weight, falls, share = _weights(*parts, graph, slope, normed)
        ctx.graph, ctx.slope, ctx.normed, ctx.made = graph, slope, normed, (weight, falls, share)
        ctx.save_for_backward(x, source, target)
        return _sums(x.detach(), weight, graph.by_target)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, source, target = ctx.saved_tensors
        graph, slope = ctx.graph, ctx.slope
        if torch.is_grad_enabled() or not is_plain(g):
            with torch.enable_grad():
                # A derivative of higher order, or one that is traced: through the general way.
                again = _general(x, source, target, graph, slope, None, ctx.normed)
                inputs = [t for t in (x, source, target) if t.requires_grad]
                grads = iter(torch.autograd.grad(again, inputs, g, create_graph=True))
            found = (next(grads) if t.requires_grad else None for t in (x, source, target))
            return *found, None, None, None
        weight, falls, share = ctx.made
        rows, columns = _rows(graph), _columns(graph)
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = _sums(g, weight.take(columns.place, axis=0), graph.by_source)
        if not (ctx.needs_input_grad[1] or ctx.needs_input_grad[2]):
            return grad_x, None, None, None, None, None
        heads = range(x.shape[1])
        columns_of = [(g[:, h].contiguous(), x[:, h].contiguous()) for h in heads]
        products = [dots(*pair, graph.by_target).numpy() for pair in columns_of]
        change = weight * (products[0][:, None] if len(products) == 1 else np.stack(products, 1))
        mean = np.add.reduceat(change, rows.begin)
        change -= weight * rows.over(mean if share is None else mean / share)
        change *= np.where(falls, np.asarray(slope, change.dtype), np.asarray(1, change.dtype))
        grad_target, grad_source = torch.zeros_like(target), torch.zeros_like(source)
        grad_target.numpy()[rows.some] = np.add.reduceat(change, rows.begin)
        turned = change.take(columns.place, axis=0)
        grad_source.numpy()[columns.some] = np.add.reduceat(turned, columns.begin)
        return grad_x, grad_source, grad_target, None, None, None


def _sums(x: Tensor, weight: Floats, csr: Any) -> Tensor:
    """Sum ``x [S, H, F]`` with weights ``[E, H]`` in the order of ``csr``."""
    heads = range(x.shape[1])
    with trainable():
        weights = [torch.from_numpy(np.ascontiguousarray(weight[:, h])) for h in heads]
    parts = [whole_bags(x[:, h], weights[h], csr) for h in heads]
    return parts[0].unsqueeze(1) if len(parts) == 1 else torch.stack(parts, 1)
