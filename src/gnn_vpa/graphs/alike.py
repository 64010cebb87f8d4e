"""Graphs that no message-passing network can tell apart, and the best accuracy that this leaves."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..errors import UsageError
from .colours import refine
from .features import FeatureKind, Features, features
from .graphset import GraphSet


class Ceiling(NamedTuple):
    """What message-passing networks of so many rounds can do at best.

    Attributes:
        rounds: How many rounds of message passing.
        distinct: How many graphs they can tell apart.
        right: How many graphs of the data set the best of them classifies as they are labelled.
        graphs: How many graphs there are.

    Example:
        >>> Ceiling(rounds=5, distinct=387, right=949, graphs=1500).accuracy
        0.6326666666666667
    """

    rounds: int
    distinct: int
    right: int
    graphs: int

    @property
    def accuracy(self) -> float:
        """The share of the graphs that the best network is right about."""
        return self.right / self.graphs


def ceiling(graphs: GraphSet, kind: FeatureKind = "auto", rounds: int = 5) -> list[Ceiling]:
    """Return the best accuracy that any network of 0, 1, ... `rounds` rounds can have.

    A network gives graphs of the same colours the same scores, so that it is right about one class
    of them at most: the largest. That is a bound on the accuracy over all graphs, training graphs
    among them, for networks that see nodes' features and edges, but no edge attributes.

    Args:
        graphs: The data set.
        kind: Node features, see `features`.
        rounds: The largest number of rounds.

    Raises:
        UsageError: The labels are no classes.

    Example:
        Two equal graphs of different classes, and a third one:

        >>> from torch_geometric.data import Data
        >>> pair, path = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> made = [Data(edge_index=pair, num_nodes=2, y=y) for y in (0, 1)]
        >>> made += [Data(edge_index=path, num_nodes=3, y=1)]
        >>> [(c.distinct, c.right) for c in ceiling(GraphSet.from_pyg(made), rounds=1)]
        [(2, 2), (2, 2)]
    """
    y = graphs.y
    if y.dim() != 1 or y.is_floating_point():
        raise UsageError(f"{graphs.name}: a best accuracy needs a class for each graph")
    return [
        Ceiling(number, _count(kinds), right_at_best(kinds, y), graphs.num_graphs)
        for number, kinds in enumerate(alike(graphs, kind, rounds))
    ]


def alike(graphs: GraphSet, kind: FeatureKind = "auto", rounds: int = 5) -> list[Tensor]:
    """Number the graphs so that those alike for 0, 1, ... `rounds` rounds have the same number.

    Two graphs are alike if they have as many nodes of each colour (`refine`): every network of so
    many rounds, whatever its readout, gives them the same scores. Exact, for any features.

    Returns:
        For each number of rounds, numbers from 0 on without gaps: [G].

    Example:
        >>> from torch_geometric.data import Data
        >>> pair, path = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> sizes = [(pair, 3), (path, 3), (pair, 3)]
        >>> made = [Data(edge_index=edges, num_nodes=n, y=0) for edges, n in sizes]
        >>> [kinds.tolist() for kinds in alike(GraphSet.from_pyg(made), rounds=1)]
        [[0, 0, 0], [0, 1, 0]]
    """
    node_ptr, rowptr, col = graphs.node_ptr, graphs.rowptr, graphs.col
    colour = node_kinds(features(graphs, kind))
    kinds = [graph_kinds(node_ptr, colour)]
    left = torch.arange(graphs.num_graphs)  # the graphs whose colours are refined
    for _ in range(rounds):
        # A graph that is alike with no other stays so, and nobody else's colours are about it.
        shared = torch.bincount(kinds[-1])[kinds[-1][left]] > 1
        if not bool(shared.all()):
            node_ptr, rowptr, col, colour = _kept(node_ptr, rowptr, col, colour, shared)
            left = left[shared]
        if len(left) == 0:
            kinds.append(kinds[-1])
            continue
        colour = refine(rowptr, col, colour, rounds=1)
        finer = kinds[-1].clone()
        finer[left] = graphs.num_graphs + graph_kinds(node_ptr, colour)
        kinds.append(_numbered(finer))
    return kinds


def _kept(
    node_ptr: Tensor, rowptr: Tensor, col: Tensor, colour: Tensor, chosen: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return some of the graphs on their own: pointers of nodes and edges, sources, and colours."""
    inside = torch.repeat_interleave(chosen, node_ptr.diff())
    number = inside.cumsum(0) - 1  # of a node among those that are kept
    degree = rowptr.diff()
    col = number[col[torch.repeat_interleave(inside, degree)].long()]
    return _pointers(node_ptr.diff()[chosen]), _pointers(degree[inside]), col, colour[inside]


def _pointers(lengths: Tensor) -> Tensor:
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def _numbered(values: Tensor) -> Tensor:
    """Number equal values alike, from 0 on without gaps."""
    number: Tensor = torch.unique(values, return_inverse=True)[1]
    return number


def node_kinds(own: Features) -> Tensor:
    """Number the nodes so that those of the same features, by value, have the same number: [N].

    Example:
        >>> node_kinds(Features(dense=torch.tensor([[0.5], [0.25], [0.5]]))).tolist()
        [1, 0, 1]
    """
    if own.dense is None:
        assert own.codes is not None
        return own.codes
    kinds: Tensor = torch.unique(own.dense.float(), dim=0, return_inverse=True)[1]
    return kinds if own.codes is None else kinds * own.num_codes + own.codes


def graph_kinds(node_ptr: Tensor, colour: Tensor) -> Tensor:
    """Number the graphs so that those with the same multiset of colours have the same number: [G].

    Example:
        >>> graph_kinds(torch.tensor([0, 2, 4, 5]), torch.tensor([7, 8, 8, 7, 7])).tolist()
        [0, 0, 1]
    """
    # A graph is one more node here, whose neighbours are the graph's own: one round names it by
    # their colours, exactly.
    nodes, graphs = len(colour), len(node_ptr) - 1
    none = torch.zeros(nodes, dtype=torch.int64)
    named = torch.cat([colour, torch.full((graphs,), -1)])
    kinds = refine(torch.cat([none, node_ptr]), torch.arange(nodes), named, rounds=1)[nodes:]
    return _numbered(kinds)


def right_at_best(kinds: Tensor, y: Tensor) -> int:
    """Return how many graphs are of the largest class among those of their kind.

    Example:
        >>> right_at_best(torch.tensor([0, 0, 0, 1]), torch.tensor([1, 1, 0, 0]))
        3
    """
    return int(members(kinds, y).max(dim=1).values.sum()) if len(y) else 0


def members(kinds: Tensor, y: Tensor, shape: tuple[int, int] | None = None) -> Tensor:
    """Count the graphs of each kind and class: [kinds, classes].

    Args:
        kinds: The kind of each graph.
        y: Its class.
        shape: Numbers of kinds and classes, by default those that occur.

    Example:
        >>> members(torch.tensor([0, 0, 1]), torch.tensor([1, 1, 0])).tolist()
        [[0, 2], [1, 0]]
    """
    rows, columns = shape or (_count(kinds), _count(y))
    return torch.bincount(kinds * columns + y, minlength=rows * columns).reshape(rows, columns)


def _count(numbers: Tensor) -> int:
    return int(numbers.max()) + 1 if len(numbers) else 0
