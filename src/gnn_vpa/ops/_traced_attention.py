"""Attention whose logits are in parts on the CPU under a compiler: one call each way, as outside.

As in ``_traced``, one call groups a batch for all layers; the attention is that of ``_parts``.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._cpu import LONG
from ._csr import CSR, index_dtype, longest_of
from ._define import define
from ._graph import Graph
from ._parts import Made, attention, attention_gradient

_WAYS = "Tensor ends, Tensor col, Tensor t_ends, Tensor t_col, Tensor t_place"


def traced_attention(
    x: Tensor,
    edges: Tensor,
    source: Tensor,
    target: Tensor,
    slope: float,
    times: Tensor | None,
) -> Tensor:
    """Attend with logits ``leaky_relu(source_j + target_i)``, divided by the norm of its weights.

    Args:
        x: ``[num_sources, heads, F]``, float32 or float64.
        edges: ``[2, num_edges]``.
        source: ``[num_sources, heads]``, of the type of ``x``.
        target: ``[num_targets, heads]``, of the type of ``x``.
        slope: Of the leaky ReLU where it is negative.
        times: ``[num_edges]``: edges of 0 count for nothing, others once; None: all count.
    """
    call = torch.ops.gnn_vpa
    ways = call.ways(edges, len(x), len(target), times)
    out: Tensor = call.attend_by_parts(x, source, target, *ways, slope)[0]
    return out


def _ways(
    edges: Tensor, num_sources: int, num_targets: int, times: Tensor | None
) -> tuple[Tensor, ...]:
    """Group the edges that count by target, and by source; number them as they come by target.

    What is returned is as long as ``edges``: behind those that count there is nothing to read.
    """
    num_edges = edges.shape[1]
    counting = edges if times is None else edges[:, times != 0]
    graph = Graph(counting, (num_sources, num_targets))
    place = np.arange(graph.num_edges, dtype=graph.by_target.col.numpy().dtype)
    if graph.by_target.edge is not None:
        order = graph.by_target.edge.numpy()
        inverse = np.empty_like(place)
        inverse[order] = place
        place = inverse
    if graph.by_source.edge is not None:
        place = place[graph.by_source.edge.numpy()]
    ends, col = graph.by_target[:2]
    t_ends, t_col = graph.by_source[:2]
    return (
        ends,
        _as_long(col, num_edges),
        t_ends,
        _as_long(t_col, num_edges),
        _as_long(torch.from_numpy(place), num_edges),
    )


def _as_long(values: Tensor, length: int) -> Tensor:
    if len(values) == length:
        return values
    out = values.new_zeros(length, *values.shape[1:])
    out[: len(values)] = values
    return out


def _ways_shapes(
    edges: Tensor, num_sources: int, num_targets: int, times: Tensor | None
) -> tuple[Tensor, ...]:
    num_edges = edges.shape[1]
    dtype = index_dtype(num_edges, num_sources, num_targets)
    sizes = (num_targets + 1, num_edges, num_sources + 1, num_edges, num_edges)
    return tuple(edges.new_empty(size, dtype=dtype) for size in sizes)


def _graph(ways: tuple[Tensor, ...]) -> Graph:
    ends, col, t_ends, t_col, t_place = ways
    owned = int(ends[-1])
    by_target = CSR(ends, col[:owned], None, longest_of(ends.numpy()))
    by_source = CSR(t_ends, t_col[:owned], t_place[:owned], longest_of(t_ends.numpy()))
    return Graph.from_csr(by_target, by_source, (len(t_ends) - 1, len(ends) - 1))


def _wide(graph: Graph, *values: Tensor) -> tuple[Tensor, ...]:
    """Attention over so many neighbours is formed in float64."""
    is_short = graph.by_target.longest <= LONG
    return values if is_short else tuple(value.double() for value in values)


def _attend(x: Tensor, source: Tensor, target: Tensor, *others: Any) -> tuple[Tensor, ...]:
    *ways, slope = others
    graph = _graph(tuple(ways))
    heads, num_edges = x.shape[1], len(ways[1])
    if x.shape[2] == 0 or graph.num_edges == 0:
        weight = x.new_zeros(num_edges, heads)
        falls, share = weight.bool(), x.new_ones(graph.num_targets, heads)
        return x.new_zeros(graph.num_targets, *x.shape[1:]), weight, falls, share
    x_wide, to, of = (part.contiguous() for part in _wide(graph, x, source, target))
    out, made = attention(x_wide, to, of, graph, slope, normed=True)
    weight, falls, share = (_tensor(part) for part in made)
    weight, falls = _as_long(weight, num_edges), _as_long(falls, num_edges)
    return out.to(x.dtype), weight.to(x.dtype), falls, share.to(x.dtype)


def _tensor(values: NDArray[Any] | None) -> Tensor:
    assert values is not None
    return torch.from_numpy(values)


def _attend_shapes(x: Tensor, source: Tensor, target: Tensor, *others: Any) -> tuple[Tensor, ...]:
    edges = (others[1].shape[0], x.shape[1])
    return (
        x.new_empty(target.shape[0], *x.shape[1:]),
        x.new_empty(edges),
        x.new_empty(edges, dtype=torch.bool),
        x.new_empty(target.shape),
    )


def _gradient(
    g: Tensor, x: Tensor, weight: Tensor, falls: Tensor, share: Tensor, *others: Any
) -> tuple[Tensor, ...]:
    *ways, slope = others
    graph = _graph(tuple(ways))
    if x.shape[2] == 0 or graph.num_edges == 0:
        return torch.zeros_like(x), x.new_zeros(x.shape[:2]), x.new_zeros(share.shape)
    owned = graph.num_edges
    g, wide, weight, share = _wide(graph, g, x, weight[:owned], share)
    made = Made(weight.numpy(), falls[:owned].numpy(), share.numpy())
    found = attention_gradient(g.contiguous(), wide.contiguous(), graph, slope, made)
    return tuple(part.to(x.dtype) for part in found if part is not None)


def _gradient_shapes(
    g: Tensor, x: Tensor, weight: Tensor, falls: Tensor, share: Tensor, *others: Any
) -> tuple[Tensor, ...]:
    return x.new_empty(x.shape), x.new_empty(x.shape[:2]), x.new_empty(share.shape)


def _context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, _, _, *ways, slope = inputs
    _, weight, falls, share = output
    ctx.slope = slope
    ctx.save_for_backward(x, weight, falls, share, *ways)


def _backward(ctx: Any, g: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    found = torch.ops.gnn_vpa.attend_by_parts_gradient(g, *ctx.saved_tensors, ctx.slope)
    return *found, *(None,) * 6


define(
    "ways(Tensor edges, SymInt num_sources, SymInt num_targets, Tensor? times) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    _ways,
    _ways_shapes,
)
define(
    f"attend_by_parts(Tensor x, Tensor source, Tensor target, {_WAYS}, float slope) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    _attend,
    _attend_shapes,
)
define(
    "attend_by_parts_gradient(Tensor g, Tensor x, Tensor weight, Tensor falls, Tensor share, "
    f"{_WAYS}, float slope) -> (Tensor, Tensor, Tensor)",
    _gradient,
    _gradient_shapes,
)
torch.library.register_autograd("gnn_vpa::attend_by_parts", _backward, setup_context=_context)
