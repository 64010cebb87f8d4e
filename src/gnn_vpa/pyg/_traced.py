"""Batches that a compiler traces.

On the CPU sums and attention are one call each. What has no such call (weights that take a
gradient, attention after a dropout) is a gather and an addition where the batch is small, which the
compiler fuses with what is around them, and goes by our kernels where it is large. As the compiler
adds in a row, many edges are added in float64.

On a GPU everything is a gather and an addition, which the compiler fuses: grouping the edges of a
batch that is used once would take longer. Large graphs go by our kernels there too.
"""

import math

import torch
from torch import Tensor

from .. import ops
from ..ops import Graph, observe
from ..ops.internal import check_below, define, traced_attention, traced_sum, weighted_sum
from ._gathered import Gathered, lined_up
from ._small import MOST, TYPES

_CPU, _GPU = "cpu", "cuda"
_MOST = 1 << 20  # numbers that a compiler gathers: of more, our kernels make up for Python
_MOST_IN_A_ROW = 1 << 12  # edges, of which all may be one sum, that it adds in their own type


class Traced:
    """Edges whose values nobody can read while they are traced.

    Args:
        edges: ``[2, num_edges]``; or ``[num_sources]``, the target of each source, as in a readout.
        num_sources: Number of sources.
        num_targets: Number of targets.
    """

    def __init__(self, edges: Tensor, num_sources: int, num_targets: int) -> None:
        self.edges, self.num_sources, self.num_targets = edges, num_sources, num_targets

    @property
    def target(self) -> Tensor:
        """The target of each edge."""
        return self.edges if self.edges.dim() == 1 else self.edges[1]

    def sum(self, x: Tensor, exponent: float, weight: Tensor | None = None) -> Tensor:
        """Return ``N_i^(-exponent) * sum_j weight_ij x_j``, as ``Gathered`` does."""
        if weight is None or not weight.requires_grad:
            return self._sum(x, exponent, weight, may_fuse=True)
        if self._is_small(x):
            return _ungrouped(self.edges, self.num_sources, self.num_targets).sum(
                x, exponent, weight
            )
        graph = self.grouped(self.num_sources)
        return weighted_sum(x, graph, weight, graph.scale(exponent, x.dtype))

    def sum_keeping(self, x: Tensor, exponent: float) -> Tensor:
        """Return the same sum, where nothing else keeps ``x`` for the backward pass."""
        return self._sum(x, exponent, None, may_fuse=False)

    def attend(self, x: Tensor, alpha: Tensor) -> Tensor:
        """Return ``sum_j alpha_ij x_j / sqrt(sum_j alpha_ij^2)``, as ``Gathered`` does."""
        if self._is_small(x):
            return _ungrouped(self.edges, self.num_sources, self.num_targets).attend(x, alpha)
        graph = self.grouped(self.num_sources)
        return ops.aggregate(x, graph, weight=alpha, normalizer_grad=False)

    def attend_by_parts(
        self, x: Tensor, source: Tensor, target: Tensor, slope: float, times: Tensor | None = None
    ) -> Tensor:
        """Attend by ``softmax_j leaky_relu(source_j + target_i)``, as ``Gathered`` does."""
        return traced_attention(x, self.edges, source, target, slope, times)

    def grouped(self, num_sources: int) -> Graph:
        """Return the same edges as a ``Graph``."""
        if self.edges.dim() == 1:
            return Graph.readout(self.edges, self.num_targets)
        return Graph(self.edges, (num_sources, self.num_targets))

    def _sum(self, x: Tensor, exponent: float, weight: Tensor | None, may_fuse: bool) -> Tensor:
        rows = x.flatten(1)
        call = torch.ops.gnn_vpa.power_sum
        out: Tensor = call(rows, self.edges, self.num_targets, exponent, weight, may_fuse)
        return out.view(self.num_targets, *x.shape[1:])

    def _is_small(self, x: Tensor) -> bool:
        return self.edges.shape[-1] * math.prod(x.shape[1:]) <= _MOST


class Fused(Gathered):
    """Edges of a GPU's batch: their rows are gathered, scaled and added in one kernel.

    A compiler checks what ``gather`` and ``scatter_add`` are given, as PyTorch does: an index out
    of range ends the program there. Before PyTorch 2.13 it takes -1 for the last row, if that is
    not made an index beyond it.
    """

    def sum(self, x: Tensor, exponent: float, weight: Tensor | None = None) -> Tensor:
        """Return ``sum_j N_i^(-exponent) weight_ij x_j``: nothing is left to do for the sum."""
        messages = self._messages(x, weight)
        if exponent != 0:
            messages = messages * self._rows(self.scale(exponent, messages), self.target)
        return self._added(messages)

    def _rows(self, x: Tensor, index: Tensor) -> Tensor:
        index = torch.where(index < 0, x.shape[0], index)
        return x.gather(0, lined_up(index, x).expand(-1, *x.shape[1:]))

    def _added(self, rows: Tensor) -> Tensor:
        out = rows.new_zeros(self.num_targets, *rows.shape[1:])
        return out.scatter_add(0, lined_up(self.target, rows).expand_as(rows), rows)


def traced(edges: Tensor, x: Tensor, num_targets: int) -> Traced | Gathered | None:
    """Return edges that a compiler traces, or None where this way does not serve.

    Args:
        edges: ``[2, num_edges]``; or ``[num_sources]``, the target of each source, as in a readout.
        x: What is summed, ``[num_sources, ...]``.
        num_targets: Number of targets.
    """
    if x.dtype not in TYPES or x.dim() not in (2, 3):
        return None
    if not (edges.dim() == 2 and len(edges) == 2) and edges.shape != x.shape[:1]:
        return None
    if is_exported(edges):
        return Gathered(*_ends(edges), num_targets)
    if may_be_traced(edges):
        return Traced(edges, len(x), num_targets)
    if may_be_fused(edges) and edges.shape[-1] * math.prod(x.shape[1:]) <= MOST:
        return Fused(*_ends(edges), num_targets)
    return None


def is_exported(edges: Tensor) -> bool:
    """Say whether these edges are of a program to keep: of PyTorch's own operators, if it can be.

    `torch.compiler.is_exporting()` is always true to a compiler before PyTorch 2.13.
    """
    return torch.compiler._is_exporting_flag and _may_be_seen(edges)


def may_be_traced(edges: Tensor) -> bool:
    """Say whether a compiler traces these edges on the CPU, and may sum by these calls."""
    return _may_be_traced(edges, _CPU)


def may_be_fused(edges: Tensor) -> bool:
    """Say whether a compiler traces these edges on a GPU, and may fuse a gather and an addition."""
    return _may_be_traced(edges, _GPU)


def _may_be_traced(edges: Tensor, device: str) -> bool:
    return (
        not torch.compiler._is_exporting_flag
        and edges.device.type == device
        and _may_be_seen(edges)
        and not torch.are_deterministic_algorithms_enabled()
    )


def _may_be_seen(edges: Tensor) -> bool:
    return (
        torch.compiler.is_compiling()
        and edges.dtype == torch.int64
        and observe.observer() is None
        and not torch._C._are_functorch_transforms_active()
    )


def _power_sum(
    x: Tensor,
    edges: Tensor,
    num_targets: int,
    exponent: float,
    weight: Tensor | None,
    may_fuse: bool,
) -> Tensor:
    # With one thread no addition is atomic.
    if may_fuse and torch.get_num_threads() == 1 and edges.shape[-1] <= _MOST_IN_A_ROW:
        return _ungrouped(edges, x.shape[0], num_targets).sum(x, exponent, weight)
    return traced_sum(x, edges, num_targets, exponent, weight)


def _ungrouped(edges: Tensor, num_sources: int, num_targets: int) -> Gathered:
    is_wide = edges.shape[-1] > _MOST_IN_A_ROW
    checked = torch.ops.gnn_vpa.checked(edges, num_sources, num_targets)
    return Gathered(*_ends(checked), num_targets, is_wide)


def _ends(edges: Tensor) -> tuple[Tensor | None, Tensor]:
    """Return the source and the target of each edge; of a readout the elements in their order."""
    if edges.dim() == 1:
        return None, edges
    source, target = edges.unbind(0)
    return source, target


def _checked(edges: Tensor, num_sources: int, num_targets: int) -> Tensor:
    """Return edges whose indices are in range: what a compiler makes takes -1 for the last node."""
    check_below(edges, num_sources, num_targets)
    return edges.clone()


def _checked_shapes(edges: Tensor, num_sources: int, num_targets: int) -> Tensor:
    return torch.empty_like(edges)


define(
    "checked(Tensor edges, SymInt num_sources, SymInt num_targets) -> Tensor",
    _checked,
    _checked_shapes,
)
# What chooses here is seen by no compiler: of a composite it sees what was chosen.
define(
    "power_sum(Tensor x, Tensor edges, SymInt num_targets, float exponent, Tensor? weight, "
    "bool may_fuse) -> Tensor",
    _power_sum,
    None,
)
