"""Edges whose rows are gathered, scaled and added by PyTorch's own functions.

A compiler fuses these with what is around them. As in PyG, additions on a GPU come in no fixed
order; ``torch.use_deterministic_algorithms(True)`` chooses our kernels, whose sums have one.
"""

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu
from torch_geometric.utils import softmax

from ..ops import Graph
from ..ops.internal import power, trainable


class Gathered:
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
        return self._added(torch.ones_like(self.target, dtype=dtype))

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
