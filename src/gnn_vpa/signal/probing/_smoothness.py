"""Oversmoothing: how different neighbours still are."""

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...ops import Graph, aggregate
from ...ops.internal import weighted_sum

_CLOSE = 0.05  # an energy below this share of its two parts has lost digits in float32
_PLAIN = 20  # numbers up to 2^20 or 2^-20 are multiplied as they are


class Smoothness(NamedTuple):
    r"""Two measures of the distance between neighbours, on an accelerator until somebody asks.

    Attributes:
        dirichlet: The Dirichlet energy ``1/n sum_i sum_{j in N(i)} |x_i - x_j|^2``, ``[]``.
        distance: The mean average distance ``mean_i mean_{j in N(i)} (1 - cos(x_i, x_j))`` over
            the nodes with neighbours, ``[]``; a row of zeros has cosine 0 with every other.
    """

    dirichlet: Tensor | float
    distance: Tensor | float


class Neighbours:
    """A graph without self-loops or multiplicities, with as many sources as targets."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._received = graph.degree.double()
        self._sent = torch.bincount(graph.by_target.col, minlength=graph.num_sources).double()

    def smoothness(self, x: Tensor) -> Smoothness | None:
        """Measure the features ``x [num_nodes, ...]``; None if no node has a neighbour."""
        if self._graph.num_edges == 0:
            return None
        x = x.detach().flatten(1)
        x = x.double() if x.dtype == torch.float64 or not x.is_cpu else x.float()
        found = Smoothness(self._energy(x) / len(x), self._distance(x))
        return Smoothness(*map(float, found)) if x.is_cpu else found

    def _energy(self, x: Tensor) -> Tensor:
        """Return ``sum_ij |x_i - x_j|^2``, with enough digits however alike neighbours are."""
        if not x.is_cpu:
            return self._difference(x)[1].clamp(min=0)
        x, size = _levelled(x)
        # The same for all that are connected, the mean takes nothing away but rounding.
        centred, rest = _levelled(self._centred(x))
        both, energy = self._difference(centred)
        energy = energy * rest * rest
        if x.dtype == torch.float32 and bool(energy <= _CLOSE * rest * rest * both):
            _, energy = self._difference(x.double())
        return energy.clamp(min=0) * size * size

    def _difference(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the energy as a difference, and the number that is diminished.

        ``sum_ij |x_i - x_j|^2 = sum_i (N_i + M_i) |x_i|^2 - 2 sum_i <x_i, sum_j x_j>``, where ``N``
        and ``M`` count in- and out-neighbours: no tensor of all edges is needed.
        """
        squares = torch.linalg.vector_norm(x, dim=1, dtype=torch.float64).square_()
        both = ((self._received + self._sent) * squares).sum()
        overlap = weighted_sum(x, self._graph).mul_(x).sum(1).sum(dtype=torch.float64)
        return both, both - 2 * overlap

    def _distance(self, x: Tensor) -> Tensor:
        """Return the mean average distance: the same product, of rows of length 1."""
        if x.dtype == torch.float64 and x.is_cpu:
            x, _ = _levelled(x)  # squares of these may be beyond float64
        lengths = torch.linalg.vector_norm(x, dim=1, dtype=torch.float64)
        # By the root twice: 1 over a small length may be beyond the type, its root is not.
        root = torch.where(lengths > 0, lengths.rsqrt(), 0).to(x.dtype).unsqueeze(1)
        x = (x * root).mul_(root)
        cosine = weighted_sum(x, self._graph).mul_(x).sum(1) / self._received.clamp(min=1)
        some = self._received > 0
        return torch.where(some, 1 - cosine, 0).sum() / some.sum()

    def _centred(self, x: Tensor) -> Tensor:
        """Take from each node the mean of all that it is connected with."""
        part, members = self._components
        return aggregate(x, members, "mean")[part].neg_().add_(x)

    @cached_property
    def _components(self) -> tuple[Tensor, Graph]:
        """The connected component of each node, and the graph that leads from nodes to them."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        rowptr, col = (part.numpy() for part in self._graph.by_target[:2])
        shape = (self._graph.num_targets,) * 2
        matrix = csr_array((np.ones(len(col), np.int8), col, rowptr), shape=shape)
        labels = torch.from_numpy(connected_components(matrix, directed=False)[1]).long()
        return labels, Graph.readout(labels)


def _levelled(x: Tensor) -> tuple[Tensor, float]:
    """Return ``x / 2^k`` and ``2^k``, so that products of its largest numbers are ordinary ones.

    Products of float32 below 1e-38 lose digits or become 0, from 1e38 on they are infinite. A power
    of 2 takes nothing away, and most features are of ordinary size and need no copy.
    """
    if x.numel() == 0:
        return x, 1.0
    low, high = torch.aminmax(x)
    largest = max(-float(low), float(high))
    exponent = math.frexp(largest)[1] - 1 if math.isfinite(largest) else 0
    if abs(exponent) <= _PLAIN:
        return x, 1.0
    # In two steps: the factor of a number such as 1e-40 is beyond float32.
    half = exponent // 2
    return (x * 2.0**-half).mul_(2.0 ** (half - exponent)), 2.0**exponent
