"""A data set as a network of some depth sees it: every distinct node and every distinct graph once.

Nodes of the same colour after ``k`` rounds of 1-WL get the same features from every network of
``k`` layers, in whichever graph they are, and graphs with the same colours get the same output. So
one of each is computed, and what it stands for is counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...graphs import FeatureKind, Features, GraphSet, features, merge, refine
from ...graphs.alike import graph_kinds, node_kinds
from ...ops import Graph


@dataclass(frozen=True, eq=False)
class Quotient:
    """The distinct nodes and graphs of a data set, as ``depth`` layers see them.

    Attributes:
        depth: Number of layers, and of rounds of 1-WL.
        x: Features of the ``M`` distinct nodes: ``[M, F]``.
        edge_index: Sources above targets: ``[2, K]``.
        edge_times: How many edges each of them stands for: ``[K]``.
        members: Distinct nodes above the distinct graphs that have them: ``[2, R]``.
        member_times: How often a graph has the node: ``[R]``.
        times: How many graphs of the data set each of the ``C`` distinct ones stands for: ``[C]``.
    """

    depth: int
    x: Tensor
    edge_index: Tensor
    edge_times: Tensor
    members: Tensor
    member_times: Tensor
    times: Tensor

    @property
    def pairs(self) -> int:
        """Number of pairs of graphs that 1-WL tells apart in so many rounds."""
        return pairs_among(self.times)

    def operands(self, draw: torch.Generator, device: torch.device) -> tuple[Tensor, Graph, Graph]:
        """Return what a model is called with, nodes and edges in a random order.

        The graphs keep their order, so that outputs can be compared.
        """
        nodes, edges, members = (
            torch.randperm(n, generator=draw)
            for n in (len(self.x), len(self.edge_times), len(self.member_times))
        )
        place = nodes.argsort()  # node v comes to stand here
        node, owner = self.members[:, members]
        graph = Graph(place[self.edge_index[:, edges]], len(nodes), self.edge_times[edges])
        sizes = (len(nodes), len(self.times))
        readout = Graph(torch.stack([place[node], owner]), sizes, self.member_times[members])
        return self.x[nodes].to(device), graph.to(device), readout.to(device)


def quotients(graphs: GraphSet, depths: Sequence[int], kind: FeatureKind) -> Iterator[Quotient]:
    """Yield the data set as networks of each depth see it, the shallowest first."""
    own = features(graphs, kind)
    colour, done = node_kinds(own), 0
    for depth in sorted(set(depths)):
        colour = refine(graphs.rowptr, graphs.col, colour, depth - done)
        done = depth
        yield _quotient(graphs, own, colour, depth)


def pairs_among(times: Tensor) -> int:
    """Return the number of pairs of different things, of which ``times`` of each are there."""
    return (int(times.sum()) ** 2 - int(times.square().sum())) // 2


def _quotient(graphs: GraphSet, own: Features, colour: Tensor, depth: int) -> Quotient:
    num_nodes = graphs.num_nodes
    everything = torch.tensor([0, num_nodes])  # as one graph: alike nodes of different ones too
    small = merge(everything, graphs.rowptr, graphs.col, colour, rounds=0)
    size = len(small.node)
    place = torch.empty(size, dtype=torch.int64)
    place[colour[small.node]] = torch.arange(size)

    first, times, number = _distinct_graphs(graphs, colour)
    owner = torch.repeat_interleave(torch.arange(graphs.num_graphs), graphs.node_ptr.diff())
    chosen = first[number[owner]] == owner  # nodes of the graphs that stand for others
    key = number[owner[chosen]] * max(size, 1) + place[colour[chosen]]
    members, member_times = torch.unique(key, return_counts=True)
    members = torch.stack([members % max(size, 1), members // max(size, 1)])
    x = own.matrix(small.node)
    return Quotient(depth, x, small.edge_index, small.edge_times, members, member_times, times)


def _distinct_graphs(graphs: GraphSet, colour: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first graph of each kind, how many there are of it, and each graph's kind."""
    number = graph_kinds(graphs.node_ptr, colour)
    times = torch.bincount(number)
    first = torch.full((len(times),), graphs.num_graphs)
    first.scatter_reduce_(0, number, torch.arange(graphs.num_graphs), "amin")
    return first, times, number
