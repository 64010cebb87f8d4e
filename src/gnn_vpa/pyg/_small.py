"""Small batches on a GPU: PyTorch's own gather and add, without grouping.

In an ordinary loop over small batches a GPU waits for Python. Grouping edges takes ten calls for a
batch that is used once, and the backward pass of our kernels goes through Python, 0.2 ms for each
layer. Here a sum is a gather and an addition in place, whose derivatives are PyTorch's own, and how
many neighbours a node has is counted once for all layers. As in PyG, additions on a GPU come in no
fixed order; ``torch.use_deterministic_algorithms(True)`` chooses our kernels, whose sums have one.
"""

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu
from torch_geometric.utils import softmax

from .. import ops
from ..errors import UsageError
from ..ops import Graph, observe
from ..ops.internal import Mark, Memory, is_untraced, memorable, power, trainable
from ._small_attention import attend

_MOST = 1 << 25  # numbers that are gathered: of more, our kernels make up for grouping
TYPES = (torch.float32, torch.float64)  # half types are summed in float32, by our kernels

_MOST_USES = 8  # of the same edges: for more layers or steps, grouping pays

_known = Memory()


class Small:
    """Edges that are not grouped: for each its source and its target.

    Args:
        source: ``[num_edges]``, int64; None: the elements in their order, as in a readout.
        target: ``[num_edges]``, int64.
        num_targets: Number of targets.
        is_wide: Whether to sum in float64, whatever the type.
    """

    def __init__(
        self, source: Tensor | None, target: Tensor, num_targets: int, is_wide: bool = False
    ) -> None:
        self.source, self.target, self.num_targets = source, target, num_targets
        self.is_wide = is_wide
        self.uses = 0  # how often they were asked for
        self._scales: dict[tuple[float, torch.dtype, int], Tensor] = {}

    def sum(self, x: Tensor, exponent: float, weight: Tensor | None = None) -> Tensor:
        """Return ``N_i^(-exponent) * sum_j weight_ij x_j``.

        Args:
            x: ``[num_sources, ...]``.
            exponent: Of the number of neighbours.
            weight: ``[num_edges]``.
        """
        wide = x.double() if self.is_wide else x
        out = self._added(self._messages(wide, weight))
        if exponent != 0:
            out = out * self.scale(exponent, out)
        return out.to(x.dtype) if self.is_wide else out

    def sum_with(self, own: Tensor, x: Tensor, exponent: float) -> Tensor:
        """Return ``own_i + N_i^(-exponent) * sum_j x_j``, in one call less."""
        if self.is_wide or exponent == 0:
            return own + self.sum(x, exponent)
        out = self._added(self._messages(x, None))
        return torch.addcmul(own, out, self.scale(exponent, out))

    def attend(self, x: Tensor, alpha: Tensor, is_whole: bool = False) -> Tensor:
        """Return ``sum_j alpha_ij x_j / sqrt(sum_j alpha_ij^2)``; the root takes no gradient.

        Args:
            x: ``[num_sources, heads, F]``.
            alpha: ``[num_edges, heads]``, attention after its dropout.
            is_whole: Whether nothing was dropped: the attention of a target sums up to 1.
        """
        wide = x.double() if self.is_wide else x
        if is_whole:  # some square is at least 1 / N^2, or there is no neighbour and no sum
            squares = self._added(alpha.detach().square())
            scale = squares.clamp_(min=torch.finfo(squares.dtype).tiny).rsqrt_()
        else:  # in float64 no square is too small, whatever a dropout leaves of an attention
            scale = power(self._added(alpha.detach().double().square()), 0.5).to(x.dtype)
        out = self._added(self._messages(wide, alpha))
        return (out * lined_up(scale, out)).to(x.dtype)

    def attend_by_parts(
        self, x: Tensor, source: Tensor, target: Tensor, slope: float, times: Tensor | None = None
    ) -> Tensor:
        """Attend by ``softmax_j leaky_relu(source_j + target_i)``, parts ``[nodes, heads]``.

        Edges whose ``times`` are 0 count for nothing; some edge of their target counts.
        """
        if times is None and not (self.is_wide or torch.compiler.is_compiling()):
            assert self.source is not None
            edges = self.source, self.target

            def plain(x: Tensor, source: Tensor, target: Tensor) -> Tensor:
                return self._attend_by_parts(x, source, target, slope, None)

            return attend(x, source, target, slope, edges, plain)
        return self._attend_by_parts(x, source, target, slope, times)

    def _attend_by_parts(
        self, x: Tensor, source: Tensor, target: Tensor, slope: float, times: Tensor | None
    ) -> Tensor:
        assert self.source is not None
        logits = self._rows(source, self.source) + self._rows(target, self.target)
        logits = leaky_relu(logits, slope)
        if times is not None:
            logits = logits.masked_fill((times == 0).unsqueeze(1), -torch.inf)
        alpha: Tensor = softmax(logits, self.target, num_nodes=self.num_targets)
        return self.attend(x, alpha, is_whole=True)

    def grouped(self, num_sources: int) -> Graph:
        """Return the same edges as a ``Graph``."""
        if self.source is None:
            return Graph.readout(self.target, self.num_targets)
        return Graph(torch.stack([self.source, self.target]), (num_sources, self.num_targets))

    def _messages(self, x: Tensor, weight: Tensor | None) -> Tensor:
        messages = x if self.source is None else self._rows(x, self.source)
        return messages if weight is None else messages * lined_up(weight, x)

    def _rows(self, x: Tensor, index: Tensor) -> Tensor:
        """Return the row of ``x`` for each edge."""
        return x.index_select(0, index)

    def _added(self, rows: Tensor) -> Tensor:
        """Add the rows of each target up."""
        out = rows.new_zeros(self.num_targets, *rows.shape[1:])
        return out.index_add_(0, self.target, rows)

    def _counts(self, dtype: torch.dtype) -> Tensor:
        """Count the edges of each target."""
        if torch.compiler.is_compiling():  # which fuses this, and does not know the other way
            return self._added(torch.ones_like(self.target, dtype=dtype))
        out = self.target.new_zeros(self.num_targets, dtype=dtype)
        return out.scatter_(0, self.target, 1, reduce="add")

    def scale(self, exponent: float, out: Tensor) -> Tensor:
        """Return ``N_i^(-exponent)`` as a factor of ``out``."""
        key = (exponent, out.dtype, out.dim())
        scale = self._scales.get(key)
        if scale is None:
            with trainable():
                scale = lined_up(_power_of_count(self._counts(out.dtype), exponent), out)
            self._scales[key] = scale
        return scale


def _power_of_count(count: Tensor, exponent: float) -> Tensor:
    """Return ``N^(-exponent)`` in the place of ``N``, and 1 for 0: nothing is summed there."""
    some = count.clamp_(min=1)
    if exponent == 0.5:
        return some.rsqrt_()
    return some.reciprocal_() if exponent == 1 else some.pow_(-exponent)


def lined_up(values: Tensor, x: Tensor) -> Tensor:
    """Give ``values`` the axes of ``x`` that they do not have."""
    return values.view(*values.shape, *[1] * (x.dim() - values.dim()))


def small(edge_index: Tensor, x: Tensor, num_targets: int) -> Small | None:
    """Return the edges of a small batch, or None where they are to be grouped.

    Args:
        edge_index: ``[2, num_edges]``.
        x: What is gathered, ``[num_sources, ...]``.
        num_targets: Number of targets.
    """
    return ungrouped(edge_index, x, num_targets) if edge_index.is_cuda else None


def ungrouped(edge_index: Tensor, x: Tensor, num_targets: int) -> Small | None:
    """Return edges as they are, on any device, or None where this way does not serve.

    A graph that is kept comes again and again: that is grouped, once for all.
    """
    if not _serve_features(x) or not _are_few(edge_index, x):
        return None
    seen = (len(x), num_targets, Mark(edge_index))
    known: tuple[object, Small] | None = _known.get(edge_index)
    if known is None or known[0] != seen:  # or all of this was looked at before
        if edge_index.dim() != 2 or len(edge_index) != 2 or not _serve_edges(edge_index):
            return None
        with torch.inference_mode(False):
            _check(edge_index, len(x), num_targets)
            # A copy: a change of the user's tensor before the backward pass is none of these edges.
            source, target = edge_index.clone().unbind(0)
            known = (seen, Small(source, target, num_targets))
        _known.put(edge_index, known)
    edges = known[1]
    edges.uses += 1
    return edges if edges.uses <= _MOST_USES else None


def may_be_small(edge_index: Tensor, width: int) -> bool:
    """Say whether edges are likely to be small for features of so many numbers a node."""
    return edge_index.is_cuda and edge_index.shape[-1] * width <= _MOST


def small_readout(index: Tensor, x: Tensor, num_targets: int | None) -> Small | None:
    """Return the groups of a small batch's nodes, or None where they are to be grouped."""
    if not index.is_cuda or index.dim() != 1 or len(index) != len(x):
        return None
    if not (_serve_features(x) and _are_few(index, x) and _serve_edges(index)):
        return None
    if num_targets is None:
        num_targets = int(index.max()) + 1 if len(index) > 0 else 0
    return Small(None, index, num_targets)  # an index out of range fails where it is added


def _serve_edges(edges: Tensor) -> bool:
    """Say whether these edges may take this way."""
    return edges.dtype == torch.int64 and memorable(edges) and type(edges) is Tensor


def _are_few(edges: Tensor, x: Tensor) -> bool:
    """Say whether edges are few for such features, and on the same device."""
    shape = x.shape
    width = shape[1] if len(shape) == 2 else shape[1] * shape[2]
    return edges.shape[-1] * width <= _MOST and x.device == edges.device


def _serve_features(x: Tensor) -> bool:
    """Say whether these features may, and nobody has asked for another way."""
    return (
        x.dtype in TYPES
        and x.dim() in (2, 3)
        and observe.observer is None
        and ops.backend(x) != "reference"
        and not torch.are_deterministic_algorithms_enabled()
        and is_untraced(x)
    )


def _check(edge_index: Tensor, *sizes: int) -> None:
    """Raise unless every index lies in its range: on a GPU a wrong one ends the program."""
    is_captured = edge_index.is_cuda and torch.cuda.is_current_stream_capturing()
    if edge_index.shape[1] == 0 or is_captured:
        return
    bounds = edge_index.new_empty(2, 2)
    torch.aminmax(edge_index, dim=1, out=tuple(bounds))
    low, high = bounds.tolist()
    for name, least, most, size in zip(("source", "target"), low, high, sizes, strict=True):
        if least < 0 or most >= size:
            raise UsageError(
                f"edge_index: {name} index {least if least < 0 else most} is out of range: "
                f"expected 0 to {size - 1} for {size} nodes. Pass the right num_nodes, or mend "
                "the edges."
            )
