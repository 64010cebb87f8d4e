"""Attention along edges that are not grouped, in Triton: as ``_triton_edges`` sums along them."""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

import math

import triton
import triton.language as tl
from torch import Tensor

from ._triton_edges import ALONE, GIVEN, Launched, edge_ends, shape_of
from .launch import ceil_div, on_device_of


@Launched
@triton.jit(do_not_specialize=GIVEN, do_not_specialize_on_alignment=GIVEN)
def _scores_kernel(
    x, source, target, sent, received, num_nodes, heads, width,
    NODES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Multiply each node's features with two vectors of each head."""
    node = (tl.program_id(0) * NODES + tl.arange(0, NODES)).to(tl.int64)
    head = tl.program_id(1)
    live = node < num_nodes
    first = tl.zeros([NODES], x.dtype.element_ty)
    second = tl.zeros([NODES], x.dtype.element_ty)
    for begin in range(0, width, BLOCK):
        f = begin + tl.arange(0, BLOCK)
        inside = f < width
        place = (node * heads + head)[:, None] * width + f[None, :]
        row = tl.load(x + place, mask=live[:, None] & inside[None, :], other=0)
        first += tl.sum(row * tl.load(source + head * width + f, mask=inside, other=0)[None, :], 1)
        second += tl.sum(row * tl.load(target + head * width + f, mask=inside, other=0)[None, :], 1)
    tl.store(sent + node * heads + head, first, mask=live)
    tl.store(received + node * heads + head, second, mask=live)


@triton.jit
def _logits(sent, received, source, target, number, head, num_edges, num_sources, num_targets,
            heads, SLOPE: tl.constexpr, LOOPS: tl.constexpr):  # fmt: skip
    """Read edges and their logits; with ``LOOPS`` every node has one self-loop and no other."""
    s, t, is_edge, fits = edge_ends(
        source, target, number, num_edges, num_sources, num_targets, True
    )
    live = is_edge
    if LOOPS:
        is_loop = is_edge & fits & (s == t)
        live = (number < num_edges + num_targets) & (is_loop == 0)
        fits = fits | (is_edge == 0)
    total = tl.load(sent + s * heads + head, mask=live, other=0)
    total += tl.load(received + t * heads + head, mask=live, other=0)
    return s, t, live, fits, total, tl.where(total > 0, total, total * SLOPE)


@Launched
@triton.jit(do_not_specialize=GIVEN, do_not_specialize_on_alignment=GIVEN)
def _top_kernel(
    x, sent, received, source, target, top, norms, num_edges, num_sources, num_targets, heads,
    SLOPE: tl.constexpr, LOOPS: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Find the largest logit of each target."""
    number = tl.program_id(0) * EDGES + tl.arange(0, EDGES)
    head = tl.program_id(1)
    _, t, live, fits, _, logit = _logits(
        sent, received, source, target, number, head, num_edges, num_sources, num_targets, heads,
        SLOPE, LOOPS,
    )  # fmt: skip
    tl.atomic_max(top + t * heads + head, logit, mask=live & fits, sem="relaxed")


@Launched
@triton.jit(do_not_specialize=GIVEN, do_not_specialize_on_alignment=GIVEN)
def _norms_kernel(
    x, sent, received, source, target, top, norms, num_edges, num_sources, num_targets, heads,
    SLOPE: tl.constexpr, LOOPS: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Add up each target's exponentials, and their squares."""
    number = tl.program_id(0) * EDGES + tl.arange(0, EDGES)
    head = tl.program_id(1)
    _, t, live, fits, _, logit = _logits(
        sent, received, source, target, number, head, num_edges, num_sources, num_targets, heads,
        SLOPE, LOOPS,
    )  # fmt: skip
    live = live & fits
    value = tl.exp(logit - tl.load(top + t * heads + head, mask=live, other=0))
    tl.atomic_add(norms + t * heads + head, value, mask=live, sem="relaxed")
    place = (num_targets + t) * heads + head
    tl.atomic_add(norms + place, value * value, mask=live, sem="relaxed")


@Launched
@triton.jit(do_not_specialize=GIVEN, do_not_specialize_on_alignment=GIVEN)
def _attend_kernel(
    x, sent, received, source, target, top, norms, num_edges, num_sources, num_targets, heads, out,
    width,
    SLOPE: tl.constexpr, LOOPS: tl.constexpr, EDGES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add ``c_ij x_j`` to ``out_i``, the attention over the root of the sum of its squares."""
    number = tl.program_id(0) * EDGES + tl.arange(0, EDGES)
    head = tl.program_id(1)
    s, t, live, fits, _, logit = _logits(
        sent, received, source, target, number, head, num_edges, num_sources, num_targets, heads,
        SLOPE, LOOPS,
    )  # fmt: skip
    value = tl.exp(logit - tl.load(top + t * heads + head, mask=live & fits, other=0))
    squares = tl.load(norms + (num_targets + t) * heads + head, mask=live & fits, other=1)
    weight = tl.where(fits, value / tl.sqrt(squares), float("nan"))
    for first in range(0, width, BLOCK):
        f = first + tl.arange(0, BLOCK)
        inside = live[:, None] & (f < width)[None, :]
        row = tl.load(x + (s * heads + head)[:, None] * width + f[None, :], mask=inside, other=0)
        place = (t * heads + head)[:, None] * width + f[None, :]
        tl.atomic_add(out + place, row * weight[:, None], mask=inside, sem="relaxed")


@Launched
@triton.jit(do_not_specialize=GIVEN, do_not_specialize_on_alignment=GIVEN)
def _attend_back_kernel(
    x, sent, received, source, target, top, norms, num_edges, num_sources, num_targets, heads,
    gradient, out, by_x, by_sent, by_received, width,
    SLOPE: tl.constexpr, LOOPS: tl.constexpr, EDGES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add up the gradients of what is attended to, and of the parts of the logits.

    With ``c_ij`` the attention and ``r_i`` the root, which takes no gradient: the gradient of a
    logit is ``c_ij (<g_i, x_j> / r_i - <g_i, out_i>)``.
    """
    number = tl.program_id(0) * EDGES + tl.arange(0, EDGES)
    head = tl.program_id(1)
    s, t, live, fits, total, logit = _logits(
        sent, received, source, target, number, head, num_edges, num_sources, num_targets, heads,
        SLOPE, LOOPS,
    )  # fmt: skip
    live = live & fits
    value = tl.exp(logit - tl.load(top + t * heads + head, mask=live, other=0))
    share = value / tl.load(norms + t * heads + head, mask=live, other=1)
    weight = value / tl.sqrt(tl.load(norms + (num_targets + t) * heads + head, mask=live, other=1))
    met = tl.zeros([EDGES], x.dtype.element_ty)
    rest = tl.zeros([EDGES], x.dtype.element_ty)
    for first in range(0, width, BLOCK):
        f = first + tl.arange(0, BLOCK)
        inside = live[:, None] & (f < width)[None, :]
        at_source = (s * heads + head)[:, None] * width + f[None, :]
        at_target = (t * heads + head)[:, None] * width + f[None, :]
        g = tl.load(gradient + at_target, mask=inside, other=0)
        met += tl.sum(g * tl.load(x + at_source, mask=inside, other=0), 1)
        rest += tl.sum(g * tl.load(out + at_target, mask=inside, other=0), 1)
        tl.atomic_add(by_x + at_source, g * weight[:, None], mask=inside, sem="relaxed")
    through = weight * met - share * rest
    through = tl.where(total > 0, through, through * SLOPE)
    tl.atomic_add(by_sent + s * heads + head, through, mask=live, sem="relaxed")
    tl.atomic_add(by_received + t * heads + head, through, mask=live, sem="relaxed")


def scores(x: Tensor, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``<x_i, source>`` and ``<x_i, target>`` of each head, ``[num_nodes, heads]`` both."""
    num_nodes, heads, width = x.shape
    sent, received = x.new_empty(2, num_nodes, heads).unbind(0)
    if x.numel() > 0:
        few, block = shape_of(width)
        programs = ceil_div(num_nodes, few), heads, 1
        with on_device_of(x):
            _scores_kernel[programs]((few, block), x, source, target, sent, received, *x.shape)
    return sent, received


def attend(x: Tensor, parts: tuple[Tensor, Tensor], edges, slope: float, has_loops: bool):
    """Return what is attended to, and what the backward pass needs besides.

    That is the largest logit of each target, and the sums of its exponentials and their squares.
    """
    source, target, num_edges, _, num_targets, _ = edges
    heads, width = x.shape[1:]
    top = x.new_full((num_targets, heads), -math.inf)
    out, norms = _zeros(x, (num_targets, heads, width), (2, num_targets, heads))
    total = num_edges + has_loops * num_targets
    if total == 0 or out.numel() == 0 or x.numel() == 0:
        return out, top, norms
    few, block = shape_of(width)
    along = x, *parts, source, target, top, norms, *edges[2:5], heads
    whole, alone = (ceil_div(total, few), heads, 1), (ceil_div(total, ALONE), heads, 1)
    slope = float(slope)
    with on_device_of(x):
        _top_kernel[alone]((slope, has_loops, ALONE), *along)
        _norms_kernel[alone]((slope, has_loops, ALONE), *along)
        _attend_kernel[whole]((slope, has_loops, few, block), *along, out, width)
    return out, top, norms


def attend_back(
    g: Tensor, x: Tensor, parts: tuple[Tensor, Tensor], kept, edges, slope: float, has_loops: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of ``x``, without what comes through the parts, and of these."""
    source, target, num_edges, _, num_targets, _ = edges
    heads, width = x.shape[1:]
    out, top, norms = kept
    gradients = _zeros(x, x.shape, parts[0].shape, parts[1].shape)
    total = num_edges + has_loops * num_targets
    if total == 0 or out.numel() == 0 or x.numel() == 0:
        return gradients
    few, block = shape_of(width)
    programs = ceil_div(total, few), heads, 1
    along = x, *parts, source, target, top, norms, *edges[2:5], heads
    with on_device_of(x):
        _attend_back_kernel[programs](
            (float(slope), has_loops, few, block), *along, g.contiguous(), out, *gradients, width
        )
    return gradients


def _zeros(x: Tensor, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return tensors of zeros, which one call makes."""
    sizes = [math.prod(shape) for shape in shapes]
    parts = x.new_zeros(sum(sizes)).split(sizes)
    return tuple(part.view(shape) for part, shape in zip(parts, shapes, strict=True))
