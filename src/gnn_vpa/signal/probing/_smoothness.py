"""Oversmoothing: how different neighbours still are."""

from typing import NamedTuple

import torch
from torch import Tensor

from ...ops import Graph, aggregate

_CLOSE = 0.05  # an energy below this share of its two parts has lost digits in float32


class Smoothness(NamedTuple):
    r"""Two measures of the distance between neighbours, on the device until somebody asks.

    Attributes:
        dirichlet: The Dirichlet energy ``1/n sum_i sum_{j in N(i)} |x_i - x_j|^2``, ``[]``.
        distance: The mean average distance ``mean_i mean_{j in N(i)} (1 - cos(x_i, x_j))`` over
            the nodes with neighbours, ``[]``; a row of zeros has cosine 0 with every other.
    """

    dirichlet: Tensor
    distance: Tensor


class Neighbours:
    """A graph without self-loops, with as many sources as targets.

    Args:
        source: ``[num_edges]``.
        target: ``[num_edges]``.
        num_nodes: Number of nodes.
    """

    def __init__(self, source: Tensor, target: Tensor, num_nodes: int) -> None:
        self._source = source.long()
        self._graph = Graph(torch.stack([source, target]), num_nodes)
        self._received = self._graph.degree.double()
        self._sent = torch.bincount(self._source, minlength=num_nodes).double()

    def smoothness(self, x: Tensor) -> Smoothness | None:
        """Measure the features ``x [num_nodes, ...]``; None if no node has a neighbour.

        Neither measure needs a tensor of all edges. With the sum over neighbours ``S``,
        ``sum_ij |x_i - x_j|^2 = sum_i (N_i + M_i) |x_i|^2 - 2 sum_i <x_i, (S x)_i>``, where ``N``
        and ``M`` count in- and out-neighbours; the distance is such a product of rows of length 1.
        """
        if self._graph.num_edges == 0:
            return None
        x = x.detach().flatten(1)
        x = x.double() if x.dtype == torch.float64 or not x.is_cpu else x.float()
        lengths = torch.linalg.vector_norm(x, dim=1, dtype=torch.float64)
        both = ((self._received + self._sent) * lengths.square()).sum()
        energy = both - 2 * self._overlap(x)
        if x.dtype == torch.float32 and not bool(energy > _CLOSE * both):
            energy = both - 2 * self._overlap(x.double())
        inverse = torch.where(lengths > 0, lengths.reciprocal(), 0)
        around = aggregate(x, self._graph, "sum", inverse[self._source].to(x.dtype))
        cosine = around.mul_(x).sum(1).double() * inverse / self._received.clamp(min=1)
        some = self._received > 0
        distance = torch.where(some, 1 - cosine, 0).sum() / some.sum()
        return Smoothness(energy.clamp(min=0) / len(x), distance)

    def _overlap(self, x: Tensor) -> Tensor:
        """Return ``sum_i <x_i, sum_j x_j>``."""
        return aggregate(x, self._graph, "sum").mul_(x).sum(1).sum(dtype=torch.float64)
