"""Sums and attention along edges that are not grouped, for a batch on a GPU that is used once.

Grouping the edges of a small batch would take longer than the sums over them: PyTorch's calls,
not the GPU, are what takes the time there. A layer is a few launches here, forward and backward,
and none waits for the device.
"""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import UsageError
from ._csr import is_plain
from ._graph import Graph
from ._parts import attend_by_parts


class UngroupedEdges(NamedTuple):
    """Edges as the kernels take them.

    ``source`` and ``target`` are ``[num_edges]``, int64, each contiguous. In a readout they are
    not listed: sources are the elements in their order, and ``source`` is not read.
    """

    source: Tensor
    target: Tensor
    num_edges: int
    num_sources: int
    num_targets: int
    is_listed: bool


class Faults:
    """What kernels have found wrong on a device: told to the host without waiting for it.

    They write where the host reads. So an edge out of range makes the results of its batch NaN,
    and the next batch, or the same one in its next layer, raises.
    """

    def __init__(self, device: torch.device) -> None:
        is_cuda = device.type == "cuda"
        self.told = torch.zeros(1, dtype=torch.int64, pin_memory=is_cuda)
        self._seen: NDArray[np.int64] = self.told.numpy()

    def look(self) -> None:
        """Raise if an edge was out of range since the last look."""
        if self._seen[0] == 0:
            return
        self._seen[0] = 0
        raise UsageError(
            "edge_index: an edge of this batch, or of one before it on this device, names a node "
            "that is not there, and what was computed with it is NaN. Mend the edges, or pass "
            "the right num_nodes; of a batch on the CPU the message says which node."
        )


@cache
def _faults_of(device: torch.device) -> Faults:
    return Faults(device)


class Ungrouped:
    """Edges, and how many each target has.

    Args:
        source: ``[num_edges]``, int64; None: the elements in their order, as in a readout.
        target: ``[num_edges]``, int64.
        num_sources: Number of sources.
        num_targets: Number of targets.
    """

    def __init__(
        self, source: Tensor | None, target: Tensor, num_sources: int, num_targets: int
    ) -> None:
        target = target.contiguous()
        listed = target if source is None else source.contiguous()
        sizes = len(target), num_sources, num_targets
        self.edges = UngroupedEdges(listed, target, *sizes, source is not None)
        self.faults = _faults_of(target.device)
        self.faults.look()
        self._counts: dict[bool, Tensor] = {}

    def counts(self, apart: bool = False) -> Tensor:
        """Count the edges of each target, ``[num_targets]``; apart: self-loops in a second row."""
        counts = self._counts.get(apart)
        if counts is None:
            counts = _kernels().count(self.edges, self.faults.told, apart)
            self._counts[apart] = counts
        return counts

    def sum(self, x: Tensor, exponent: float) -> Tensor:
        """Return ``N_i^(-exponent) * sum_j x_j`` of ``x [num_sources, ...]``."""
        return _along(x, Way(self, exponent))

    def sum_keeping(self, x: Tensor, exponent: float, eps: Tensor) -> Tensor:
        """Return ``(1 + eps) * x_i + N_i^(-exponent) * sum_j x_j``; ``eps [1]`` is a constant."""
        return _along(x, Way(self, exponent, "eps", eps))

    def normalised_sum(self, x: Tensor, fill: float | None) -> Tensor:
        """Return the sum of a degree normalisation, as ``ops.internal.normalised_sum`` does."""
        if fill is None:
            return _along(x, Way(self, 0.0, "roots"))
        return _along(x, Way(self, 0.0, "normalised", fill=float(fill)))

    def attend_by_vectors(
        self, x: Tensor, source: Tensor, target: Tensor, slope: float, has_loops: bool
    ) -> Tensor:
        """Attend by parts that are ``<x_j, source>`` and ``<x_i, target>``.

        Args:
            x: ``[num_nodes, heads, F]``.
            source: ``[1, heads, F]``.
            target: ``[1, heads, F]``.
            slope: Of ``leaky_relu`` below 0.
            has_loops: Whether each node has one self-loop, instead of any among the edges.
        """
        return _attend(x, source, target, self, slope, has_loops, True)  # type: ignore[no-any-return, no-untyped-call]

    def attend_by_parts(self, x: Tensor, source: Tensor, target: Tensor, slope: float) -> Tensor:
        """Return ``sum_j a_ij x_j / sqrt(sum_j a_ij^2)``; the root takes no gradient.

        The attention is ``a_ij = softmax_j leaky_relu(s_j + t_i)``.

        Args:
            x: ``[num_sources, heads, F]``.
            source: ``[num_sources, heads]``, the part ``s``.
            target: ``[num_targets, heads]``, the part ``t``.
            slope: Of ``leaky_relu`` below 0.
        """
        return _attend(x, source, target, self, slope, False, False)  # type: ignore[no-any-return, no-untyped-call]


class Way(NamedTuple):
    """A sum along edges: what it adds up, and in which direction.

    ``own`` says what each node adds of its own features: nothing (``"none"``), ``1 + eps`` times
    these (``"eps"``), or its part in a degree normalisation (``"normalised"``), whose self-loops
    weigh ``fill``; with ``"roots"`` the edges alone are normalised.
    """

    edges: Ungrouped
    exponent: float
    own: str = "none"
    eps: Tensor | None = None
    fill: float = 1.0
    is_back: bool = False  # from targets to sources: the transpose

    def run(self, x: Tensor) -> Tensor:
        """Add up what ``x`` has."""
        counts = self.edges.counts(self.own == "normalised")
        edges, (exponent, own, eps, fill, is_back) = self.edges.edges, self[1:]
        return _kernels().sum_along(x, edges, counts, exponent, own, eps, fill, is_back)  # type: ignore[no-any-return]


def _along(x: Tensor, way: Way) -> Tensor:
    way.edges.faults.look()
    if x.requires_grad and torch.is_grad_enabled():
        return _sum(x, way)  # type: ignore[no-any-return, no-untyped-call]
    return way.run(x)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, way: Way) -> Tensor:
        ctx.way = way
        target = way.edges.edges.target  # of a readout that of the user
        ctx.save_for_backward(target, *([] if way.eps is None else [way.eps]))
        return way.run(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        _ = ctx.saved_tensors  # PyTorch refuses one that has changed
        way = ctx.way._replace(is_back=not ctx.way.is_back)
        return _along(g, way) if _is_plain(g) else _gathered(g, way), None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        source: Tensor,
        target: Tensor,
        way: Ungrouped,
        slope: float,
        has_loops: bool,
        by_vectors: bool,
    ) -> Tensor:
        way.faults.look()
        way.counts()  # which tells of edges that are out of range
        given = x, source, target
        x = x.contiguous()
        parts = source.contiguous(), target.contiguous()
        if by_vectors:
            parts = _attention().scores(x, *parts)
        kept = _attention().attend(x, parts, way.edges, slope, has_loops)
        ctx.save_for_backward(*given, *parts, *kept)
        ctx.rest = way, slope, has_loops, by_vectors
        return kept[0]  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, source, target, s, t, *kept = ctx.saved_tensors
        way, slope, has_loops, by_vectors = ctx.rest
        if torch.is_grad_enabled() or not _is_plain(g):  # it is differentiated again, or traced
            return (*_traced_gradients(ctx, g, (x, source, target)), None, None, None, None)
        x = x.contiguous()
        by_x, *by_parts = _attention().attend_back(g, x, (s, t), kept, way.edges, slope, has_loops)
        if by_vectors:
            by_parts = _through_vectors(by_x, by_parts, x, source, target)
        return (by_x, *by_parts, None, None, None, None)


_sum = super(torch.autograd.Function, _Sum).apply
_attend = super(torch.autograd.Function, _Attention).apply


def _is_plain(g: Tensor) -> bool:
    """Say whether kernels can read a gradient: nothing traces it, and it is not one of many."""
    return is_plain(g) and not torch._C._functorch.is_legacy_batchedtensor(g)


def _gathered(x: Tensor, way: Way) -> Tensor:
    """Return the same sum as ``Way.run``, by PyTorch's own functions."""
    source, target, num_edges, num_sources, num_targets, is_listed = way.edges.edges
    if not is_listed:
        source = torch.arange(num_edges, device=target.device)
    counts = way.edges.counts(way.own == "normalised").double()
    own: Tensor | None = None if way.eps is None else 1 + way.eps
    if way.own in ("normalised", "roots"):
        mass, loops = counts, counts.new_zeros(0)
        if way.own == "normalised":
            mass, is_there = counts.view(2, num_targets)
            loops = torch.where(is_there > 0, 1.0, way.fill)
            mass = mass + loops.square()
        root = torch.where(mass > 0, mass, torch.inf).pow(-0.25)
        factor = root[source] * root[target]
        if way.own == "normalised":
            factor, own = factor * (source != target), loops * root.square()
    else:
        factor = counts.clamp(min=1).pow(-way.exponent)[target]
    begin, end, rows = source, target, num_targets
    if way.is_back:
        begin, end, rows = target, source, num_sources
    axes = [1] * (x.dim() - 1)
    messages = x.index_select(0, begin) * factor.to(x.dtype).view(-1, *axes)
    out = x.new_zeros(rows, *x.shape[1:]).index_add(0, end, messages)
    return out if own is None else out + own.to(x.dtype).view(-1, *axes) * x


def _traced_gradients(ctx: Any, g: Tensor, given: tuple[Tensor, ...]) -> Iterator[Tensor | None]:
    """Return gradients that have derivatives, or are traced, by operators that have them."""
    asked = ctx.needs_input_grad[: len(given)]
    with torch.enable_grad():
        # Views: inputs may hang on each other, and what comes through that is for others to add.
        given = tuple(one.view_as(one) for one in given)
        out = _by_plain(*ctx.rest, *given)
        needed = [one for one, is_asked in zip(given, asked, strict=True) if is_asked]
        found = iter(torch.autograd.grad(out, needed, g, create_graph=True))
    return iter([next(found) if is_asked else None for is_asked in asked])


def _through_vectors(
    by_x: Tensor, by_scores: list[Tensor], x: Tensor, *vectors: Tensor
) -> list[Tensor]:
    """Add to ``by_x`` what comes through the scores; return the gradients of the vectors."""
    if x.shape[1] > 1:
        for by_score, vector in zip(by_scores, vectors, strict=True):
            by_x.addcmul_(by_score.unsqueeze(2), vector)
        return [(one.unsqueeze(2) * x).sum(0, keepdim=True) for one in by_scores]
    both = torch.cat(by_scores, 1)  # [num_nodes, 2]
    by_x.squeeze(1).addmm_(both, torch.cat([one.view(1, -1) for one in vectors]))
    return list(torch.mm(both.t(), x.squeeze(1)).view(2, 1, 1, -1).unbind(0))


def _by_plain(
    way: Ungrouped, slope: float, has_loops: bool, by_vectors: bool, *given: Tensor
) -> Tensor:
    """Attend by operators that have derivatives of every order."""
    x, s, t = given
    if by_vectors:
        s, t = (x * s).sum(-1), (x * t).sum(-1)
    source, target, _, num_sources, num_targets, _ = way.edges
    if has_loops:
        others = source != target
        nodes = torch.arange(num_targets, device=target.device)
        source, target = torch.cat([source[others], nodes]), torch.cat([target[others], nodes])
    graph = Graph(torch.stack([source, target]), (num_sources, num_targets))
    return attend_by_parts(x, graph, s, t, slope, None)


@cache
def _kernels() -> ModuleType:
    return import_module("._triton_edges", __package__)  # which needs Triton


@cache
def _attention() -> ModuleType:
    return import_module("._triton_edge_attention", __package__)
