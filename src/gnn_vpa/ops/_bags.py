"""Sums on the CPU by ``embedding_bag``, all constants put together as one weight for each edge.

A node's own features come along an edge to itself: to add them afterwards would be to go through
all features once more.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._cache import Mark
from ._counting import Ints, by_row, largest
from ._cpu import LONG, whole_bags
from ._csr import CSR, compressed, longest_of
from ._graph import Graph, trainable
from ._operators import spmm
from ._power import power_of_lengths

Rows = tuple[Tensor | None, CSR]  # edges in one order with their weights; None: all are 1


class Bags(ABC):
    """A sum over a graph and its transpose.

    Args:
        ends: Source and target of each edge.
        value: Of each of them; None: all are 1, and the edges are those of the graph.
        longest: An upper bound of the number of edges of a target.
        graph: That the sum is over.
    """

    def __init__(
        self, graph: Graph, ends: tuple[Ints, Ints], value: NDArray[Any] | None, longest: int
    ) -> None:
        self.ends, self.value = ends, value
        source, target = ends
        self.to_targets: Rows = (
            (None, graph.by_target)
            if value is None
            else _grouped(target, source, graph.num_targets, value, longest)
        )
        self.to_sources: Rows | None = None  # made when a gradient is asked for

    def there(self, x: Tensor, graph: Graph) -> Tensor:
        """Sum the features of sources."""
        return whole_bags(x, *self.to_targets)

    def back(self, g: Tensor, graph: Graph) -> Tensor:
        """Return the gradient to these features."""
        if self.to_sources is None:
            with trainable():
                self.to_sources = self._turned(graph)
        return whole_bags(g, *self.to_sources)

    @abstractmethod
    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        """Return the same, where it is differentiated again, or traced."""

    def _turned(self, graph: Graph) -> Rows:
        if self.value is None:
            return None, graph.by_source
        if graph.is_readout:  # each node is the source of one edge
            return torch.from_numpy(self.value), graph.by_source
        source, target = self.ends
        return _grouped(source, target, graph.num_sources, self.value)


class Powers(Bags):
    """``N_i^(-exponent) * sum_j weight_ij x_j + own * x_i``; ``mark`` is that of the weights."""

    def __init__(
        self,
        graph: Graph,
        exponent: float,
        dtype: Any,
        weight: Tensor | None,
        mark: Mark | None,
        own: float,
    ) -> None:
        self.exponent, self.weight, self.mark, self.own = exponent, weight, mark, own
        if exponent == 0 and weight is None and not own:
            super().__init__(graph, graph.ends, None, 0)
            return
        ends = _with_loops(*graph.ends, graph) if own else graph.ends
        counts = np.bincount(graph.ends[1], minlength=graph.num_targets)
        longest = largest(counts)
        value = power_of_lengths(counts, longest, exponent, dtype).take(ends[1])
        if weight is not None:  # a change of it before the backward pass is none of this sum
            value[: graph.num_edges] *= weight.numpy()
        if own:
            value[graph.num_edges :] = own
        super().__init__(graph, ends, value, longest + 1)

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        factor = None if self.exponent == 0 else graph.scale(self.exponent, g.dtype)
        out = turned_sum(g, graph, self.weight, factor)
        return out + self.own * g if self.own else out


class Normalised(Bags):
    """``sum_j w_ij x_j / (q_i q_j)^(1/4)``, with a self-loop for each node among the edges.

    ``q_i`` is the sum of squared weights. An edge weighs 1, and so does a self-loop that stands for
    some that were there; another one weighs ``fill``.
    """

    def __init__(self, graph: Graph, fill: int, dtype: Any) -> None:
        source, target = graph.ends
        is_loop = source == target
        own: Any = fill
        self.others: Tensor | None = None  # of each edge whether it is no self-loop; None: all
        if is_loop.any():
            own = np.full(graph.num_targets, fill)
            own[source[is_loop]] = 1
            source, target = source[~is_loop], target[~is_loop]
            self.others = torch.from_numpy(~is_loop)
        counts = np.bincount(target, minlength=graph.num_targets) + own * own
        longest = largest(counts)
        self.root = power_of_lengths(counts, longest, 0.25, dtype)
        self.own = own * self.root * self.root
        source, target = ends = _with_loops(source, target, graph)
        value = self.root.take(source)
        value *= self.root.take(target)
        value[-graph.num_targets :] = self.own
        super().__init__(graph, ends, value, longest)

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        root, own = (torch.from_numpy(part).to(g).unsqueeze(1) for part in (self.root, self.own))
        others = None if self.others is None else self.others.to(g.dtype)
        return root * turned_sum(g, graph, others, root) + own * g


def turned_sum(g: Tensor, graph: Graph, weight: Tensor | None, factor: Tensor | None) -> Tensor:
    """Return ``sum_i factor_i weight_ij g_i`` for each source, by an operator that has derivatives.

    Args:
        g: ``[num_targets, F]``.
        graph: The edges.
        weight: ``[num_edges]``; None: 1.
        factor: ``[num_targets, 1]``; None: 1.
    """
    weight = None if weight is None else weight.unsqueeze(1)
    operands = (*graph.by_source, *graph.by_target)
    return spmm(g.unsqueeze(1), weight, None, factor, *operands).squeeze(1)


def _with_loops(source: Ints, target: Ints, graph: Graph) -> tuple[Ints, Ints]:
    """Put an edge from each node to itself behind edges."""
    assert graph.num_sources == graph.num_targets
    nodes = np.arange(graph.num_targets, dtype=target.dtype)
    return np.concatenate([source, nodes]), np.concatenate([target, nodes])


def _grouped(
    row: Ints, col: Ints, num_rows: int, value: NDArray[Any], longest: int | None = None
) -> Rows:
    """Group edges with their weights by row."""
    ends, other, value = by_row(row, col, num_rows, value)
    if longest is None:
        longest = len(other) if len(other) <= LONG else longest_of(ends)
    return torch.from_numpy(value), compressed(ends, other, None, longest)
