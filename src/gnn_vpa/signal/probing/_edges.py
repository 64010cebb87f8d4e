"""The graphs that a network's messages travel on, and which rows of a tensor belong to them."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ...ops import Graph
from ..theory import predicted_variance
from ._groups import Groups
from ._smoothness import Neighbours

_REMEMBERED = 4  # a network has few graphs: one, or one for each level of pooling


class Flows(NamedTuple):
    """Messages of one source to targets of one group: what they share, and how many they are."""

    source: Tensor
    times: Tensor
    groups: Groups


class Edges:
    """The edges of one call of a layer, in the order of its messages.

    Args:
        source: ``[num_edges]``.
        target: ``[num_edges]``.
        sizes: Number of sources and of targets.
        times: How many neighbours each edge stands for, ``[num_edges]``; None: one.
    """

    def __init__(
        self, source: Tensor, target: Tensor, sizes: tuple[int, int], times: Tensor | None = None
    ) -> None:
        self.source, self.target = source.long(), target.long()
        self.num_sources, self.num_targets = sizes
        self._times = times
        self.graph_size: Tensor | None = None  # [num_targets]: the size of each node's graph
        self.graph: Graph | None = None  # the same edges, if somebody has grouped them

    @cached_property
    def neighbours(self) -> Neighbours | None:
        """The graph without its self-loops; None if sources are not the targets."""
        if self.num_sources != self.num_targets:
            return None
        kept = self.source != self.target
        if bool(kept.all()) and self.graph is not None and self.graph.multiplicity is None:
            return Neighbours(self.graph)
        edges = torch.stack([self.source[kept], self.target[kept]])
        return Neighbours(Graph(edges, self.num_targets))

    @cached_property
    def degree(self) -> Tensor:
        """Number of in-neighbours of each target other than itself, ``[num_targets]``."""
        times = torch.ones_like(self.target) if self._times is None else self._times
        if self.num_sources == self.num_targets:
            times = times * (self.source != self.target)
        degree = times.new_zeros(self.num_targets)
        return degree.index_add_(0, self.target, times).round().long()

    @cached_property
    def received(self) -> Tensor:
        """Number of messages that each target gets, ``[num_targets]``."""
        return torch.bincount(self.target, minlength=self.num_targets)

    def expected_gain(self, aggr: str) -> float:
        """Return what an aggregation makes of the variance of independent messages, on average.

        A target without messages gets 0, and counts.
        """
        counts = torch.bincount(self.received).tolist()
        known = ((n, times) for n, times in enumerate(counts) if n and times)
        total = math.fsum(times * predicted_variance(aggr, n) for n, times in known)
        return total / max(1, self.num_targets)

    @cached_property
    def flows(self) -> Flows:
        """The messages put together by where they come from and the groups they go to."""
        present, group = torch.unique(self.nodes.labels, return_inverse=True)
        number = group[self.target] * self.num_sources + self.source
        counts = torch.bincount(number, minlength=len(present) * self.num_sources)
        (kinds,) = counts.nonzero(as_tuple=True)
        group, source = kinds // max(1, self.num_sources), kinds % max(1, self.num_sources)
        groups = self.nodes._replace(unit="edge", labels=present[group])
        return Flows(source, counts[kinds], groups)

    @cached_property
    def nodes(self) -> Groups:
        """The groups of the targets."""
        return Groups.of("node", self.degree, self.graph_size)

    @cached_property
    def messages(self) -> Groups:
        """The groups of the messages: those of the nodes they go to."""
        return self.nodes._replace(unit="edge", labels=self.nodes.labels[self.target])

    def same_as(self, source: Tensor, target: Tensor, sizes: tuple[int, int]) -> bool:
        """Tell whether these are the edges of another call too."""
        return (
            (self.num_sources, self.num_targets) == sizes
            and self.target.shape == target.shape
            and self.target.device == target.device
            and torch.equal(self.target, target)
            and torch.equal(self.source, source)
        )


class Atlas:
    """Every graph met so far, and the number of nodes in each graph of the batch.

    Args:
        batch: The graph of each node, ``[num_nodes]``, where it is known.
    """

    def __init__(self, batch: Tensor | None = None) -> None:
        self._known: list[Edges] = []
        self._of_graph: WeakKeyDictionary[Graph, Edges] = WeakKeyDictionary()
        self._node_size: Tensor | None = None
        self._graphs: Groups | None = None  # of the batch
        if batch is not None and batch.numel() > 0:
            with suppress(RuntimeError):  # a vector of that name that numbers no graphs
                sizes = torch.bincount(batch)
                self._node_size = sizes[batch]
                self._graphs = Groups.of("graph", None, sizes)

    def edges(
        self,
        source: Tensor,
        target: Tensor,
        sizes: tuple[int, int],
        times: Tensor | None = None,
    ) -> Edges:
        """Return the record of these edges, which layers share."""
        for known in reversed(self._known):
            if known.same_as(source, target, sizes):
                self._known.remove(known)
                self._known.append(known)
                return known
        fresh = Edges(source, target, sizes, times)
        if self._node_size is not None and len(self._node_size) == sizes[1]:
            fresh.graph_size = self._node_size
        self._known = [*self._known[1 - _REMEMBERED :], fresh]
        return fresh

    def edges_of(self, graph: Graph) -> Edges:
        """Return the record of a graph's edges, in the order in which they were given."""
        if graph not in self._of_graph:
            _, source, edge, _ = graph.by_target
            if edge is not None:
                source = torch.empty_like(source).scatter_(0, edge.long(), source)
            sizes = (graph.num_sources, graph.num_targets)
            target = graph.edge_targets
            found = self.edges(source.long(), target.long(), sizes, graph.multiplicity)
            found.graph = graph
            self._of_graph[graph] = found
        return self._of_graph[graph]

    def groups(self, count: int, inside: Edges | None = None) -> Groups | None:
        """Say what ``count`` rows stand for, or None where nobody knows.

        Args:
            count: Number of rows.
            inside: The edges whose messages are just being made, if any are.
        """
        if inside is not None and count == len(inside.target):
            return inside.messages
        for known in reversed(self._known):
            if count == known.num_targets:
                return known.nodes
        if self._graphs is not None and count == len(self._graphs.labels):
            return self._graphs
        for known in reversed(self._known):
            if count == len(known.target):
                return known.messages
        return None

    def neighbours(self, count: int) -> Neighbours | None:
        """Return the latest graph of ``count`` nodes, without self-loops."""
        found = (known for known in reversed(self._known) if count == known.num_targets)
        return next((known.neighbours for known in found), None)
