"""Kernels for CUDA along edges that are not grouped: a program takes a few edges, and adds.

For a batch that is used once. No tensor has a row for each edge, a layer is two or three launches,
and nothing waits for the device. As PyTorch's ``index_add_`` they add in no fixed order. An edge
out of range is never followed: it makes results NaN, and ``fault`` is set.
"""

# mypy: ignore-errors
# Triton's language shares Python's grammar, not its types.

from functools import partial

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launch import ceil_div, on_device_of, power_of_2

_TILE = 2048  # numbers that a program reads at a time
_MOST_EDGES = 128  # of a program, however narrow the features
ALONE = 512  # edges of a program that reads no features
# Of these versions it was seen how they launch what they have compiled.
_IS_KNOWN = tuple(map(int, triton.__version__.split(".")[:2])) in ((3, 6), (3, 7))
# All arguments that are no constants: what is compiled does not depend on their values.
GIVEN = (
    "target", "source", "counts", "fault", "num_edges", "num_sources", "num_targets", "x", "out",
    "eps", "size", "fill", "sent", "received", "num_nodes", "heads", "width", "top", "norms",
    "gradient", "by_x", "by_sent", "by_received",
)  # fmt: skip
_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # as Triton itself asks for it


class Launched:
    """A kernel that is compiled for types and constants alone, and launched as it was compiled.

    Triton looks at every argument of each launch, which takes longer than the launch. To be called
    as ``kernel[programs](constants, *others)``, the constants, which stand last in the function, in
    their order.
    """

    def __init__(self, kernel):
        self.kernel = kernel
        self.compiled = {}

    def __getitem__(self, programs):
        return partial(self._launch, programs)

    def _launch(self, programs, constants, x, *arguments):
        device = x.get_device()
        known = self.compiled.get((x.dtype, device, constants))
        if known is not None:
            run, *compiled = known
            stream = _stream(device)
            run(*programs, stream, *compiled, None, None, None, x, *arguments, *constants)
            return
        made = self.kernel[programs](x, *arguments, *constants)
        if _IS_KNOWN and hasattr(made, "packed_metadata"):  # and is not interpreted
            compiled = made.run, made.function, made.packed_metadata
            self.compiled[x.dtype, device, constants] = compiled


@triton.jit
def edge_ends(source, target, number, num_edges, num_sources, num_targets, LISTED: tl.constexpr):
    """Read the ends of edges: where they are, and whether they are edges in range.

    Behind the edges come those of each node to itself. Without a list of sources these are the
    numbers of the edges, as in a readout. An end out of range is taken for the other one: its node
    is of the same graph, so that this graph's results are NaN.
    """
    is_edge = number < num_edges
    t = tl.load(target + number, mask=is_edge, other=0)
    if LISTED:
        s = tl.load(source + number, mask=is_edge, other=0)
    else:
        s = tl.minimum(number, num_edges).to(tl.int64)
    # Sums and products: the compiler fails on several choices in a row.
    begins = (is_edge & (s >= 0) & (s < num_sources)).to(tl.int64)
    ends = (is_edge & (t >= 0) & (t < num_targets)).to(tl.int64)
    fits = begins * ends == is_edge.to(tl.int64)
    s = s * begins
    t = t * ends
    begin = s + tl.minimum(t, num_sources - 1) * (1 - begins)
    end = t + tl.minimum(s, num_targets - 1) * (1 - ends)
    own = tl.maximum(number - num_edges, 0)
    return begin + own, end + own, is_edge, fits


@triton.jit
def _power(count, EXPONENT: tl.constexpr):
    """Return ``count^-EXPONENT``, and 1 where there is nothing to count."""
    some = tl.maximum(count, 1)
    if EXPONENT == 0.5:
        return 1 / tl.sqrt(some)
    if EXPONENT == 1:
        return 1 / some
    return tl.exp2(-EXPONENT * tl.log2(some))


@triton.jit
def _mass(counts, node, num_nodes, fill, mask, ACC: tl.constexpr):
    """Return ``q_i``, the sum of squared weights of a node's edges, its self-loop included."""
    others = tl.load(counts + node, mask=mask, other=0).to(ACC)
    loops = tl.load(counts + num_nodes + node, mask=mask, other=0)
    own = tl.where(loops > 0, 1.0, fill).to(ACC)
    return others + own * own, own


@Launched
@triton.jit(do_not_specialize=GIVEN, do_not_specialize_on_alignment=GIVEN)
def _count_kernel(
    target, source, counts, fault, num_edges, num_sources, num_targets,
    LISTED: tl.constexpr, APART: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    """Count the edges of each target, self-loops apart where asked; tell of edges out of range."""
    number = tl.program_id(0) * EDGES + tl.arange(0, EDGES)
    s, t, is_edge, fits = edge_ends(
        source, target, number, num_edges, num_sources, num_targets, LISTED
    )
    place = t
    if APART:
        place = tl.where(s == t, num_targets + t, t)
    tl.atomic_add(counts + place, 1, mask=is_edge & fits, sem="relaxed")
    is_wrong = is_edge & (fits == 0)
    tl.store(fault + number * 0, 1, mask=is_wrong)


@Launched
@triton.jit(do_not_specialize=GIVEN, do_not_specialize_on_alignment=GIVEN)
def _sum_kernel(
    x, out, source, target, counts, eps, num_edges, num_sources, num_targets, size, fill,
    LISTED: tl.constexpr, BACK: tl.constexpr, EXPONENT: tl.constexpr, OWN: tl.constexpr,
    EDGES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add ``a_i x_j`` to ``out_i`` for each edge; backwards ``a_i x_i`` to ``out_j``."""
    ACC: tl.constexpr = x.dtype.element_ty
    number = tl.program_id(0) * EDGES + tl.arange(0, EDGES)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    s, t, is_edge, fits = edge_ends(
        source, target, number, num_edges, num_sources, num_targets, LISTED
    )
    live = is_edge
    if OWN == "eps" or OWN == "normalised":
        live = number < num_edges + num_targets
        fits = fits | (is_edge == 0)
    if BACK:
        begin, end = t, s
    else:
        begin, end = s, t
    inside = live[:, None] & (d < size)[None, :]
    value = tl.load(x + begin[:, None] * size + d[None, :], mask=inside & fits[:, None], other=0)
    if OWN == "normalised":
        q_s, own = _mass(counts, s, num_targets, fill, live, ACC)
        q_t, own = _mass(counts, t, num_targets, fill, live, ACC)
        weight = 1 / tl.sqrt(tl.sqrt(q_s) * tl.sqrt(q_t))
        is_loop = is_edge & (s == t) & fits
        weight = tl.where(is_edge, weight, weight * own)
        inside = inside & (is_loop == 0)[:, None]
        value *= weight[:, None]
    elif OWN == "roots":
        weight = _power(tl.load(counts + t, mask=live & fits, other=1).to(ACC), 0.5)
        others = tl.load(counts + s, mask=live & fits, other=1).to(ACC)
        # A source that no edge leads to weighs nothing, as in PyG.
        weight = tl.where(others > 0, tl.sqrt(weight * _power(others, 0.5)), 0.0)
        value *= weight[:, None]
    elif EXPONENT != 0:
        weight = _power(tl.load(counts + t, mask=live, other=1).to(ACC), EXPONENT)
        if OWN == "eps":
            weight = tl.where(is_edge, weight, 1 + tl.load(eps).to(ACC))
        value *= weight[:, None]
    elif OWN == "eps":
        value *= tl.where(is_edge, 1.0, 1 + tl.load(eps).to(ACC)).to(ACC)[:, None]
    value = tl.where(fits[:, None], value, float("nan"))
    tl.atomic_add(out + end[:, None] * size + d[None, :], value, mask=inside, sem="relaxed")


def count(edges, fault: Tensor, apart: bool) -> Tensor:
    """Count the edges of each target, ``[num_targets]``; self-loops in a second row where apart."""
    source, target, num_edges, _, num_targets, is_listed = edges
    counts = target.new_zeros((1 + apart) * num_targets, dtype=torch.int32)
    if num_edges > 0:
        programs = ceil_div(num_edges, ALONE), 1, 1
        with on_device_of(target):
            _count_kernel[programs](
                (is_listed, apart, ALONE), target, source, counts, fault, *edges[2:5]
            )
    return counts


def sum_along(
    x: Tensor, edges, counts: Tensor, exponent: float, own: str, eps: Tensor | None, fill: float,
    is_back: bool,
) -> Tensor:  # fmt: skip
    """Return a sum along edges, or against them, as a ``Way`` of ``_ungrouped`` describes it."""
    source, target, num_edges, num_sources, num_targets, is_listed = edges
    rows = num_sources if is_back else num_targets
    out = x.new_zeros(rows, *x.shape[1:])
    total = num_edges if own in ("none", "roots") else num_edges + num_targets
    if total == 0 or out.numel() == 0:
        return out
    size = out.numel() // rows
    few, block = shape_of(size)
    programs = ceil_div(total, few), ceil_div(size, block), 1
    constants = is_listed, is_back, float(exponent), own, few, block
    with on_device_of(x):
        _sum_kernel[programs](constants, x.contiguous(), out, source, target, counts,
             x if eps is None else eps, *edges[2:5], size, fill)  # fmt: skip
    return out


def shape_of(width: int) -> tuple[int, int]:
    """Return how many edges and how many features a program reads at a time."""
    block = min(64, power_of_2(width))
    return min(_MOST_EDGES, _TILE // block), block
