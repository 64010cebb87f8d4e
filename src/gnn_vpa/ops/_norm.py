"""The norm of each target's weights, for weights of any size: nothing else squares weights."""

from typing import NamedTuple

import torch
from torch import Tensor

from ._dtypes import accumulable
from ._edges import incidence
from ._graph import Graph
from ._operators import segmax, spmm
from ._shapes import flat


class Normed(NamedTuple):
    r"""Weights in parts: ``w_ij / sqrt(sum_j m_ij w_ij^2) = unit_ij * inverse_i``.

    In float32 the square of 1e-23 is 0, that of 1e20 infinite, and the gradient of an inverse root
    goes with its cube. So weights are divided by the size of their target's largest one first. The
    quotient does not depend on that size, which takes no gradient, and a power of 2 rounds nothing.

    Attributes:
        unit: ``w_ij / size_i``, ``[num_edges, H]``, between -4 and 4; 0 where ``m_ij`` is 0.
        size: A power of 2 for each target, ``[num_targets, H]``, a constant; its inverse is finite.
        inverse: ``1 / sqrt(sum_j m_ij unit_ij^2)``, ``[num_targets, H]``. Where all weights are 0
            (or there are none) it is 0, and so is its gradient.
    """

    unit: Tensor
    size: Tensor
    inverse: Tensor

    @property
    def inverse_norm(self) -> Tensor:
        """``1 / sqrt(sum_j m_ij w_ij^2)``; infinite if that is beyond the type."""
        return self.inverse / self.size


def normed(weight: Tensor, graph: Graph, multiplicity: Tensor | None = None) -> Normed:
    """Return the parts of weights ``[num_edges, ...]``, in float32 for half types."""
    wide = flat(accumulable(weight), 1)
    if multiplicity is not None:
        multiplicity = multiplicity.unsqueeze(1)
        wide = wide.masked_fill(multiplicity <= 0, 0)  # might be of another size altogether
    by_target = incidence(graph)
    size = _size(segmax(wide.detach().abs(), None, *by_target))
    unit = wide / size.index_select(0, graph.edge_targets)
    squares = unit.square() if multiplicity is None else unit.square() * multiplicity
    total = spmm(squares.unsqueeze(1), None, None, None, *by_target).squeeze(1)
    return Normed(unit, size, torch.where(total > 0, total, torch.inf).rsqrt())


def _size(largest: Tensor) -> Tensor:
    """Return the power of 2 that is not above, within the range whose inverse is a normal number.

    Below that range, where numbers have fewer digits, quotients are still far from underflow.
    """
    tiny = torch.finfo(largest.dtype).tiny
    within = largest.clamp(tiny, 1 / tiny)
    return within / (2 * torch.frexp(within).mantissa)
