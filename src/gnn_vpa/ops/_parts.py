"""Attention whose logits are a part of the source and a part of the target, as in GAT.

Where it is called plainly on the CPU, all of it is one step, forward and backward: with
``e_ij = exp(l_ij - max_j l_ij)``, attention divided by the norm of its weights is
``out_i = sum_j u_ij x_j`` with ``u_ij = e_ij / sqrt(sum_j e_ij^2)``, as the sum of the softmax
cancels. Numbers of edges are NumPy's, whose calls are cheap; features go through ``embedding_bag``.
"""

from collections.abc import Callable
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
from ._bags import rows_by_target
from ._counting import largest, transposed
from ._cpu import LONG, dots, whole_bags
from ._csr import CSR, compressed, is_plain
from ._differentiable import has_duals
from ._edges import from_sources, from_targets
from ._graph import Graph, trainable

Floats = NDArray[Any]
_MODERATE = 30.0  # logits within it need not be shifted: squares of exponentials are within 1e±27


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


def attend_by_vectors(
    x: Tensor,
    graph: Graph,
    source: Tensor,
    target: Tensor,
    slope: float,
    *,
    normed: bool = True,
) -> Tensor:
    """Attend by parts that are products of features with vectors: ``<x_j, source>`` of each head.

    Args:
        x: ``[num_nodes, heads, features]``.
        graph: The edges between these nodes.
        source: ``[1, heads, features]``.
        target: ``[1, heads, features]``.
        slope: Of the leaky ReLU where it is negative.
        normed: As of ``attend_by_parts``.
    """
    fits = len(x) == graph.num_targets and not torch.is_autocast_enabled("cpu")
    if fits and _is_short(x, graph, source, target):
        return _AttentionByVectors.apply(x, source, target, graph, slope, normed)  # type: ignore[no-any-return, no-untyped-call]
    x, s, t = _in_parts(x, source, target)
    return attend_by_parts(x, graph, s, t, slope, None, normed=normed)


Three = tuple[Tensor, Tensor, Tensor]


def _in_parts(x: Tensor, source: Tensor, target: Tensor) -> Three:
    """Return features, and their products with vectors."""
    return x, (x * source).sum(-1), (x * target).sum(-1)


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
        and observe.observer() is None
        and graph.multiplicity is None
        and backend(x) == "cpu"
        and x.shape[2] > 0
        and graph.is_whole
        and _by_target(graph, x.shape[1]).apart.longest <= LONG  # longer sums need more care
    )


class _Way(NamedTuple):
    """Edges in one order, by target or by source."""

    ends: Tensor  # where each row begins, and the last ends
    lengths: NDArray[Any]  # of each row, its number of edges
    other: NDArray[Any]  # of each edge, the node at its other end
    edge: NDArray[Any]  # of each edge, its place in the order by target
    apart: CSR  # every head of a node as a node by itself
    place: NDArray[Any] | None  # of each edge of these, its weight among those by target, [E, H]

    def over(self, values: Floats) -> Floats:
        """Give each edge the value of its row."""
        return values.repeat(self.lengths, axis=0)

    def sums(self, values: Floats) -> Floats:
        """Sum the values ``[E, H]`` of each row."""
        return self._reduced(values, "sum")

    def largest(self, values: Floats) -> Floats:
        """Return the largest values ``[E, H]`` of each row; of none minus infinity."""
        return self._reduced(values, "max")

    def _reduced(self, values: Floats, how: str) -> Floats:
        # Faster than embedding_bag for so few columns, and than NumPy's loops.
        return torch.segment_reduce(
            torch.from_numpy(values), how, offsets=self.ends, unsafe=True
        ).numpy()

    def summed(self, x: Tensor, weight: Floats) -> Tensor:
        """Sum ``x [S, H, F]`` with weights ``[E, H]`` in the order by target."""
        weight = weight.reshape(-1)
        weights = torch.from_numpy(weight if self.place is None else weight.take(self.place))
        out = whole_bags(x.reshape(-1, x.shape[2]), weights, self.apart)
        # Not a view: what a function makes may be changed in place only if it is none.
        return out.resize_(len(self.lengths), *x.shape[1:])


def _by_target(graph: Graph, heads: int) -> _Way:
    known: _Way | None = graph.ways.get(("by target", heads))
    if known is None:
        ends, source = rows_by_target(graph)
        known = _way(ends, source, np.arange(len(source), dtype=source.dtype), heads)
        known = known._replace(place=None) if heads == 1 else known  # they are in order
        graph.ways["by target", heads] = known
    return known


def _by_source(graph: Graph, heads: int) -> _Way:
    known: _Way | None = graph.ways.get(("by source", heads))
    if known is None:
        to = _by_target(graph, heads)
        if graph.is_turned and graph.by_target.edge is None and graph.by_source.edge is not None:
            ends, target, place = (part.numpy() for part in graph.by_source[:3])  # type: ignore[union-attr]
        else:
            by_target = to.ends.numpy(), to.other, to.edge
            ends, target, place = transposed(*by_target, graph.num_sources)
        known = _way(ends, target, place, heads)
        graph.ways["by source", heads] = known
    return known


def _way(ptr: NDArray[Any], col: NDArray[Any], place: NDArray[Any], heads: int) -> _Way:
    """Put a way together; ``place`` says where each of its edges is in the order by target."""
    lengths = ptr[1:] - ptr[:-1]
    longest = largest(lengths)
    with trainable():
        whole = compressed(ptr, col, None, longest)
        if heads == 1:
            return _Way(whole.rowptr, lengths, col, place, whole, place)
        head = np.arange(heads)
        each = lengths.repeat(heads)  # a row for each head of a node
        ends = np.zeros(len(each) + 1, ptr.dtype)
        np.cumsum(each, out=ends[1:])
        first = (ptr[:-1, None] * heads + head).reshape(-1)  # of weights [E, heads] in this order
        own = (first - ends[:-1] * heads).repeat(each) + np.arange(len(col) * heads) * heads
        ends_of = (col[:, None] * heads + head).reshape(-1).take(own).astype(col.dtype)
        apart = compressed(ends, ends_of, None, longest)
    weight = (place[:, None] * heads + head).reshape(-1).take(own)
    return _Way(whole.rowptr, lengths, col, place, apart, weight)


class Made(NamedTuple):
    """What the forward pass makes of the logits, and the backward pass uses."""

    weight: Floats  # u_ij, [E, H] by target
    falls: Any  # where logits were negative
    share: Floats | None  # by how much u outweighs the softmax; None: not at all


def _weights(source: Tensor, target: Tensor, graph: Graph, slope: float, normed: bool) -> Made:
    """Return the weights: those of the softmax are ``u_ij / share_i``; without a share ``u_ij``."""
    way = _by_target(graph, source.shape[1])
    logits = source.numpy().take(way.other, axis=0)
    logits += way.over(target.numpy())
    falls = logits <= 0
    steepest = np.maximum if slope <= 1 else np.minimum
    steepest(logits, logits * slope, out=logits)
    if not _are_moderate(logits):
        logits -= way.over(way.largest(logits))
    mass = np.exp(logits, out=logits)
    if not normed:
        mass /= way.over(way.sums(mass))
        return Made(mass, falls, None)
    norm = np.sqrt(way.sums(mass * mass))
    share = way.sums(mass) / norm
    mass /= way.over(norm)
    return Made(mass, falls, share)


def _are_moderate(logits: Floats) -> bool:
    """Say whether neither a square of an exponential nor a sum of such is beyond any type."""
    low, high = logits.item(logits.argmin()), logits.item(logits.argmax())
    return bool(low > -_MODERATE and high < _MODERATE)


def attention(
    x: Tensor, source: Tensor, target: Tensor, graph: Graph, slope: float, normed: bool
) -> tuple[Tensor, Made]:
    """Attend; no row is longer than ``LONG``, and no derivative is asked for."""
    with np.errstate(all="ignore"):  # what is not finite stays so, as in PyTorch
        made = _weights(source, target, graph, slope, normed)
    return _by_target(graph, x.shape[1]).summed(x, made.weight), made


def attention_gradient(
    g: Tensor, x: Tensor, graph: Graph, slope: float, made: Made, to_parts: bool = True
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the gradients to ``x`` and, if asked ``to_parts``, to ``source`` and ``target``."""
    weight, falls, share = made
    heads = x.shape[1]
    to, back = _by_target(graph, heads), _by_source(graph, heads)
    grad_x = back.summed(g, weight)
    if not to_parts:
        return grad_x, None, None
    left, right = (part.reshape(-1, part.shape[2]) for part in (g, x))
    change = dots(left, right, to.apart).numpy()
    if heads == 1:
        change = change[:, None]
    else:
        assert to.place is not None
        ordered = np.empty_like(weight)
        ordered.reshape(-1)[to.place] = change
        change = ordered
    mean = to.sums(change * weight)
    with np.errstate(all="ignore"):  # a node without neighbours has a share of 0 / 0
        change -= to.over(mean if share is None else mean / share)
    change *= weight
    change *= falls * np.asarray(slope - 1, change.dtype) + 1
    turned = change.take(back.edge, axis=0)
    return grad_x, torch.from_numpy(back.sums(turned)), torch.from_numpy(to.sums(change))


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
        plain = x.detach(), source.detach(), target.detach()
        out, ctx.made = attention(*plain, graph, slope, normed)
        ctx.graph, ctx.slope, ctx.normed = graph, slope, normed
        ctx.save_for_backward(x, source, target)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, source, target = ctx.saved_tensors
        if torch.is_grad_enabled() or not is_plain(g):
            by = _traced_gradient(ctx, g, (x, source, target), lambda x, s, t: (x, s, t))
        else:
            to_parts = any(ctx.needs_input_grad[1:3])
            by = attention_gradient(g, x.detach(), ctx.graph, ctx.slope, ctx.made, to_parts)
        return *by, None, None, None


class _AttentionByVectors(torch.autograd.Function):
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
        plain, vectors = x.detach(), torch.cat([source.detach(), target.detach()])
        parts = torch.bmm(plain.transpose(0, 1), vectors.permute(1, 2, 0))  # [H, N, 2]
        s, t = parts.permute(2, 1, 0).unbind(0)
        out, ctx.made = attention(plain, s, t, graph, slope, normed)
        ctx.graph, ctx.slope, ctx.normed = graph, slope, normed
        ctx.save_for_backward(x, source, target)
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, source, target = ctx.saved_tensors
        if torch.is_grad_enabled() or not is_plain(g) or torch.is_autocast_enabled("cpu"):
            traced = _traced_gradient(ctx, g, (x, source, target), _in_parts)
            return *traced, None, None, None
        x, vectors = x.detach(), torch.cat([source.detach(), target.detach()])
        by = attention_gradient(g, x, ctx.graph, ctx.slope, ctx.made)
        grad_x, to_source, to_target = by
        assert to_source is not None
        assert to_target is not None
        change = torch.stack([to_source, to_target], 2).transpose(0, 1)  # [H, N, 2]
        grad_x.transpose(0, 1).baddbmm_(change, vectors.transpose(0, 1))
        grad = torch.bmm(change.transpose(1, 2), x.transpose(0, 1)).transpose(0, 1)  # [2, H, F]
        return grad_x, grad[:1], grad[1:], None, None, None


def _traced_gradient(
    ctx: Any,
    g: Tensor,
    inputs: Three,
    as_parts: Callable[[Tensor, Tensor, Tensor], Three],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return a derivative that has one itself, or one that is traced, through the general way."""
    with torch.enable_grad():
        # Views: inputs may hang on each other, and what comes through that is for others to add.
        one, two, three = inputs
        inputs = one.view_as(one), two.view_as(two), three.view_as(three)
        x, source, target = as_parts(*inputs)
        again = _general(x, source, target, ctx.graph, ctx.slope, None, ctx.normed)
        needed = [t for t in inputs if t.requires_grad]
        grads = iter(torch.autograd.grad(again, needed, g, create_graph=True))
    first, second, third = (next(grads) if t.requires_grad else None for t in inputs)
    return first, second, third
