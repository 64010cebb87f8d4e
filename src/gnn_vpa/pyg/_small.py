"""Small batches on a GPU, whose edges are not grouped.

In an ordinary loop over small batches a GPU waits for Python. Grouping the edges of a batch that is
used once would take more calls than the sums over them: here a layer is a few launches, forward
and backward (``ops/_ungrouped.py``), and none waits for the device. As in PyG, additions come in no
fixed order; ``torch.use_deterministic_algorithms(True)`` chooses grouped edges, which have one.
"""

import torch
from torch import Tensor

from .. import ops
from ..errors import UsageError
from ..ops import observe
from ..ops.internal import Mark, Memory, Ungrouped, UngroupedEdges, is_untraced, memorable
from ._gathered import Gathered

MOST = 1 << 25  # numbers that are gathered: of more, our kernels make up for grouping
TYPES = (torch.float32, torch.float64)  # half types are summed in float32, by our kernels

_MOST_USES = 8  # of the same edges: for more layers or steps, grouping pays

_known = Memory()


class Small(Gathered):
    """Edges of a small batch: sums without weights, and attention, are kernels of our own.

    Args:
        source: ``[num_edges]``, int64; None: the elements in their order, as in a readout.
        target: ``[num_edges]``, int64.
        num_sources: Number of sources.
        num_targets: Number of targets.
    """

    def __init__(
        self, source: Tensor | None, target: Tensor, num_sources: int, num_targets: int
    ) -> None:
        super().__init__(source, target, num_targets)
        self.uses = 0  # how often they were asked for
        self._way = Ungrouped(source, target, num_sources, num_targets)
        self._is_checked = False

    def sum(self, x: Tensor, exponent: float, weight: Tensor | None = None) -> Tensor:
        """Return ``N_i^(-exponent) * sum_j weight_ij x_j``."""
        if weight is None:
            return self._way.sum(x, exponent)
        self._check()
        return super().sum(x, exponent, weight)

    def sum_keeping(self, x: Tensor, exponent: float, eps: Tensor) -> Tensor:
        """Return ``(1 + eps) * x_i + N_i^(-exponent) * sum_j x_j``."""
        if eps.requires_grad or eps.dtype != x.dtype or eps.device != x.device:
            return (1 + eps) * x + self._way.sum(x, exponent)
        return self._way.sum_keeping(x, exponent, eps)

    def normalised_sum(self, x: Tensor, fill: float | None) -> Tensor:
        """Return the sum of a degree normalisation, as ``ops.internal.normalised_sum`` does."""
        return self._way.normalised_sum(x, fill)

    def attend(self, x: Tensor, alpha: Tensor, is_whole: bool = False) -> Tensor:
        """Return ``sum_j alpha_ij x_j / sqrt(sum_j alpha_ij^2)``, as ``Gathered`` does."""
        self._check()
        return super().attend(x, alpha, is_whole)

    def attend_by_parts(
        self, x: Tensor, source: Tensor, target: Tensor, slope: float, times: Tensor | None = None
    ) -> Tensor:
        """Attend by ``softmax_j leaky_relu(source_j + target_i)``, as ``Gathered`` does."""
        if times is None and source.dtype == target.dtype == x.dtype:
            return self._way.attend_by_parts(x, source, target, slope)
        self._check()
        return super().attend_by_parts(x, source, target, slope, times)

    def attend_by_vectors(
        self, x: Tensor, source: Tensor, target: Tensor, slope: float, has_loops: bool
    ) -> Tensor:
        """Attend by products of features with vectors, as ``ops.internal.attend_by_vectors`` does.

        With ``has_loops`` each node has one self-loop, instead of any among the edges.
        """
        return self._way.attend_by_vectors(x, source, target, slope, has_loops)

    def _check(self) -> None:
        """Raise unless all edges are in range: PyTorch's own functions would end the program."""
        if not self._is_checked:
            _check(self._way.edges)
            self._is_checked = True


def small(edge_index: Tensor, x: Tensor, num_targets: int) -> Small | None:
    """Return the edges of a small batch, or None where they are to be grouped.

    A graph that is kept comes again and again: that is grouped, once for all.

    Args:
        edge_index: ``[2, num_edges]``.
        x: What is gathered, ``[num_sources, ...]``.
        num_targets: Number of targets.
    """
    if not _serve_features(x) or not _are_few(edge_index, x):
        return None
    num_sources = x.shape[0]  # len(x) takes several times as long
    seen = (num_sources, num_targets, Mark(edge_index))
    known: tuple[object, Small] | None = _known.get(edge_index)
    if known is None or known[0] != seen:  # or all of this was looked at before
        if edge_index.dim() != 2 or len(edge_index) != 2 or not _serve_edges(edge_index):
            return None
        with torch.inference_mode(False):
            # A copy: a change of the user's tensor before the backward pass is none of these edges.
            source, target = edge_index.clone().unbind(0)
            known = (seen, Small(source, target, num_sources, num_targets))
        _known.put(edge_index, known)
    edges = known[1]
    edges.uses += 1
    return edges if edges.uses <= _MOST_USES else None


def may_be_small(edge_index: Tensor, width: int) -> bool:
    """Say whether edges are likely to be small for features of so many numbers a node."""
    return (
        not torch.compiler.is_compiling()
        and ops.backend(edge_index) == "triton"
        and _serve_edges(edge_index)
        and edge_index.shape[-1] * width <= MOST
    )


def small_readout(index: Tensor, x: Tensor, num_targets: int | None) -> Small | None:
    """Return the groups of a small batch's nodes, or None where they are to be grouped."""
    if index.dim() != 1 or len(index) != len(x) or not _serve_features(x):
        return None
    if not (_are_few(index, x) and _serve_edges(index)):
        return None
    if num_targets is None:
        num_targets = int(index.max()) + 1 if len(index) > 0 else 0
    return Small(None, index, len(x), num_targets)


def _serve_edges(edges: Tensor) -> bool:
    """Say whether these edges may take this way."""
    return edges.dtype == torch.int64 and memorable(edges) and type(edges) is Tensor


def _are_few(edges: Tensor, x: Tensor) -> bool:
    """Say whether edges are few for such features, and on the same device."""
    shape = x.shape
    width = shape[1] if len(shape) == 2 else shape[1] * shape[2]
    return edges.shape[-1] * width <= MOST and x.device == edges.device


def _serve_features(x: Tensor) -> bool:
    """Say whether these features may, and nobody has asked for another way."""
    return (
        x.dtype in TYPES
        and x.dim() in (2, 3)
        and observe.observer() is None
        and ops.backend(x) == "triton"
        and not torch.are_deterministic_algorithms_enabled()
        and is_untraced(x)
    )


def _check(edges: UngroupedEdges) -> None:
    """Raise unless every index lies in its range: on a GPU a wrong one ends the program."""
    is_captured = edges.target.is_cuda and torch.cuda.is_current_stream_capturing()
    if edges.num_edges == 0 or is_captured:
        return
    ends = torch.stack([edges.source, edges.target])
    low, high = torch.stack(torch.aminmax(ends, dim=1)).tolist()
    sizes = edges.num_sources, edges.num_targets
    for name, least, most, size in zip(("source", "target"), low, high, sizes, strict=True):
        if least < 0 or most >= size:
            raise UsageError(
                f"edge_index: {name} index {least if least < 0 else most} is out of range: "
                f"expected 0 to {size - 1} for {size} nodes. Pass the right num_nodes, or mend "
                "the edges."
            )
