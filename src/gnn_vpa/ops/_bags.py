"""Sums on the CPU by ``embedding_bag``, all constants put together as one weight for each edge.

A node's own features come along an edge to itself: to add them afterwards would be to go through
all features once more. Calls of NumPy are few, as a batch is used once.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ._cache import Mark
from ._counting import Ints, by_row, largest, transposed
from ._cpu import LONG, whole_bags
from ._csr import CSR, compressed, longest_of, looped
from ._graph import Graph, trainable
from ._operators import spmm
from ._power import power_of_lengths

WIDE = {torch.float32: np.float32, torch.float64: np.float64}  # summed in their own type
_MANY = 16  # edges of a node
_MOST_USES = 16  # of a way that is made quickly: by more layers or steps
Rows = tuple[Tensor | None, CSR]  # edges in one order with their weights; None: all are 1


class Bags(ABC):
    """A sum over a graph and its transpose.

    Args:
        graph: The graph.
        rows: Pointers, sources and weights by target; None: the graph's, and all weights are 1.
        longest: An upper bound of the number of edges of a target.
        mark: That of the weights that the sum was given, if any.
    """

    def __init__(
        self,
        graph: Graph,
        rows: tuple[Ints, Ints, NDArray[Any]] | None,
        longest: int = 0,
        mark: Mark | None = None,
    ) -> None:
        self.rows, self.mark = rows, mark
        self.is_spent = False  # whether another way is better from now on
        self.to_targets = (None, graph.by_target) if rows is None else _as_rows(*rows, longest)
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
        if self.rows is None:
            return None, graph.by_source
        ends, target, value = transposed(*self.rows, graph.num_sources)
        longest = len(target) if len(target) <= LONG else longest_of(ends)
        return _as_rows(ends, target, value, longest)


class Factored(Bags):
    """``after_i * sum_j before_j x_j + own_i * x_i``: where a node has many edges.

    Nodes are then fewer than edges by far, and it takes less to make factors of theirs than edges'
    weights. To sum takes more, up to a quarter: a graph that is kept gets weights after some uses.
    As in the kernels, the sum comes first, so that it must be finite before it is scaled.

    Args:
        graph: The graph.
        after: ``[num_targets, 1]``; None: 1.
        before: ``[num_sources, 1]``; None: 1.
        own: A number, or ``[num_targets, 1]``.
    """

    def __init__(
        self,
        graph: Graph,
        after: Tensor | None,
        before: Tensor | None = None,
        own: float | Tensor = 0.0,
    ) -> None:
        self.after, self.before, self.own = after, before, own
        self._uses = 0
        super().__init__(graph, None)

    @staticmethod
    def fits(graph: Graph) -> bool:
        """Say whether a node of the graph has many edges; in a readout it has one."""
        return graph.num_edges > _MANY * max(graph.num_sources, graph.num_targets)

    def there(self, x: Tensor, graph: Graph) -> Tensor:
        """Sum the features of sources."""
        self._uses += 1
        self.is_spent = self._uses >= _MOST_USES
        return self._summed(x, self.before, graph.by_target, self.after)

    def back(self, g: Tensor, graph: Graph) -> Tensor:
        """Return the gradient to these features."""
        return self._summed(g, self.after, graph.by_source, self.before)

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        """Return the same, where it is differentiated again, or traced."""
        out = turned_sum(g, graph, None, self.after)
        out = out if self.before is None else out * self.before
        return out + self.own * g if self._has_own else out

    @property
    def _has_own(self) -> bool:
        return isinstance(self.own, Tensor) or self.own != 0

    def _summed(self, x: Tensor, first: Tensor | None, csr: CSR, last: Tensor | None) -> Tensor:
        out = whole_bags(x if first is None else x * first, None, csr)
        if last is not None:
            out.mul_(last)
        if isinstance(self.own, Tensor):
            return out.addcmul_(x, self.own)
        return out.add_(x, alpha=self.own) if self._has_own else out


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
        self.exponent, self.own = exponent, own
        # A change of the weights before the backward pass is none of this sum.
        self.weight = None if weight is None else weight.clone()
        if exponent == 0 and weight is None and not own:
            super().__init__(graph, None)
            return
        if graph.is_grouped and not own:
            csr = graph.by_target
            ends, source = csr.rowptr.numpy(), csr.col.numpy()
            lengths = ends[1:] - ends[:-1]
            value = power_of_lengths(lengths, csr.longest, exponent, dtype).repeat(lengths)
            if weight is not None:
                order = None if csr.edge is None else csr.edge.numpy()
                value *= weight.numpy() if order is None else weight.numpy().take(order)
            super().__init__(graph, (ends, source, value), csr.longest, mark)
            return
        source, target = graph.ends
        counts = np.bincount(target, minlength=graph.num_targets)
        longest = largest(counts)
        num_loops = 0
        if own:
            num_loops = graph.num_targets
            source, target = looped(source, target, num_loops)
        value = power_of_lengths(counts, longest, exponent, dtype).take(target)
        if weight is not None:
            value[num_loops:] *= weight.numpy()
        if own:
            value[:num_loops] = own
        rows = by_row(target, source, graph.num_targets, value)
        super().__init__(graph, rows, longest + 1, mark)
        if graph.is_readout:
            self.to_sources = torch.from_numpy(value), graph.by_source

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        factor = None if self.exponent == 0 else graph.scale(self.exponent, g.dtype)
        out = turned_sum(g, graph, self.weight, factor)
        return out + self.own * g if self.own else out


class Normalised(Bags):
    """``sum_j w_ij x_j / (q_i q_j)^(1/4)``, with a self-loop for each node among the edges.

    ``q_i`` is the sum of squared weights. An edge weighs 1, and so does a self-loop that stands for
    some that were there; another one weighs ``fill``. Where that is None, the edges are those that
    there are, and a node without any counts for nothing.
    """

    def __init__(self, graph: Graph, fill: int | None, dtype: Any) -> None:
        source, target = graph.ends
        self.others: Tensor | None = None  # of each edge whether it is no self-loop; None: all
        if fill is None:
            self.own: Any = 0
            counts = np.bincount(target, minlength=graph.num_targets)
            longest = largest(counts)
            self.root = power_of_lengths(counts, longest, 0.25, dtype)
            value = self.root.take(source)
            value *= self.root.take(target)
            super().__init__(graph, by_row(target, source, graph.num_targets, value), longest)
            return
        is_loop = source == target
        self.own = fill  # the weight of a self-loop: of all, or of each
        if is_loop.any():
            self.own = np.full(graph.num_targets, fill)
            self.own[source[is_loop]] = 1
            source, target = source[~is_loop], target[~is_loop]
            self.others = torch.from_numpy(~is_loop)
        counts = np.bincount(target, minlength=graph.num_targets)
        mass = fill * fill  # of a self-loop, at most
        longest = largest(counts) + mass
        if self.others is None:
            self.root = power_of_lengths(counts, longest, 0.25, dtype, mass)
        else:
            self.root = power_of_lengths(counts + self.own * self.own, longest, 0.25, dtype)
        source, target = looped(source, target, graph.num_targets)
        value = self.root.take(source)
        value *= self.root.take(target)
        if fill != 1:
            value[: graph.num_targets] *= self.own
        super().__init__(graph, by_row(target, source, graph.num_targets, value), longest)

    def back_traced(self, g: Tensor, graph: Graph) -> Tensor:
        loops = self.own * self.root * self.root
        root, own = (torch.from_numpy(part).to(g).unsqueeze(1) for part in (self.root, loops))
        others = None if self.others is None else self.others.to(g.dtype)
        return root * turned_sum(g, graph, others, root) + own * g


def powers(
    graph: Graph,
    exponent: float,
    dtype: torch.dtype,
    weight: Tensor | None,
    mark: Mark | None,
    own: float,
    is_kept: bool,
) -> Powers | Factored:
    """Return the way of a sum that is scaled by a power of the number of neighbours."""
    if weight is None and not is_kept and Factored.fits(graph):
        return Factored(graph, _factor(graph, exponent, dtype) if exponent != 0 else None, own=own)
    return Powers(graph, exponent, WIDE[dtype], weight, mark, own)


def normalised(
    graph: Graph, fill: int | None, dtype: torch.dtype, is_kept: bool
) -> Normalised | Factored:
    """Return the way of a degree normalisation."""
    if not is_kept and Factored.fits(graph):
        if fill is None:
            root = _factor(graph, 0.25, dtype)
            return Factored(graph, root, root)
        source, target = graph.ends
        if not (source == target).any():
            root = _factor(graph, 0.25, dtype, fill * fill)
            return Factored(graph, root, root, fill * root * root)
    return Normalised(graph, fill, WIDE[dtype])


def _factor(graph: Graph, exponent: float, dtype: torch.dtype, more: int = 0) -> Tensor:
    """Return ``(N_i + more)^(-exponent)`` of each target, ``[num_targets, 1]``."""
    csr = graph.by_target
    ends = csr.rowptr.numpy()
    lengths = ends[1:] - ends[:-1]
    powers = power_of_lengths(lengths, csr.longest + more, exponent, WIDE[dtype], more)
    return torch.from_numpy(powers).unsqueeze(1)


def _as_rows(ends: Ints, other: Ints, value: NDArray[Any], longest: int) -> Rows:
    return torch.from_numpy(value), compressed(ends, other, None, longest)


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


def rows_by_target(graph: Graph) -> tuple[Ints, Ints]:
    """Return pointers and sources by target."""
    if graph.is_grouped:
        return graph.by_target.rowptr.numpy(), graph.by_target.col.numpy()
    source, target = graph.ends
    nothing = np.empty(len(source), np.int8)  # stands for values that nobody reads
    ends, source, _ = by_row(target, source, graph.num_targets, nothing)
    return ends, source
