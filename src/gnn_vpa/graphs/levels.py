"""A data set by depth: what a network can know of its nodes after each layer, and nothing twice."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from .colours import refinements


class Level(NamedTuple):
    """The colours that nodes of a data set have after so many rounds of refinement.

    Attributes:
        node: The first node of each colour: ``[C]``.
        parent: Its colour one level below: ``[C]``.
        rowptr: Colour c has neighbours of the colours ``col[rowptr[c]:rowptr[c + 1]]`` of the level
            below, without repetition: ``[C + 1]``.
        col: Colours of the level below: ``[K]``.
        multiplicity: How many neighbours have that colour: ``[K]``.
        graph_ptr: Graph g holds the colours ``held[graph_ptr[g]:graph_ptr[g + 1]]``, without
            repetition: ``[G + 1]``.
        held: Colours of this level: ``[P]``.
        held_multiplicity: How many nodes of the graph have that colour: ``[P]``.

    Example:
        >>> pair = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
        >>> _, after = levels(torch.tensor([0, 2]), *pair, torch.tensor([5, 5]), rounds=1)
        >>> after.node, after.held_multiplicity
        (tensor([0]), tensor([2]))
    """

    node: Tensor
    parent: Tensor
    rowptr: Tensor
    col: Tensor
    multiplicity: Tensor
    graph_ptr: Tensor
    held: Tensor
    held_multiplicity: Tensor


def levels(
    node_ptr: Tensor,
    rowptr: Tensor,
    col: Tensor,
    start: Tensor,
    rounds: int,
    *,
    ignore_counts: bool = False,
    per_graph: bool = False,
) -> list[Level]:
    """Return the colours of all graphs before the first round of refinement and after each.

    Layer ``l`` of a message-passing network gives nodes of one colour of level ``l`` the same
    features, in whatever graph they are. So it needs to be computed once for each colour that
    occurs, from the features of the neighbours' colours one level below.

    Args:
        node_ptr: Graph g has the nodes ``node_ptr[g]`` to ``node_ptr[g + 1]``: ``[G + 1]``.
        rowptr: All graphs by target: ``[N + 1]``.
        col: Sources: ``[E]``.
        start: An integer for each node, equal where the features are: ``[N]``.
        rounds: Number of message-passing layers.
        ignore_counts: Whether neighbours' colours count as a set: enough for a network that takes
            the maximum. ``multiplicity`` is then that of the colour's first node.
        per_graph: Whether nodes of different graphs have different colours. The colours of a graph
            are then numbered one after the other, those of few neighbours first, and so are the
            graphs'.

    Returns:
        ``rounds + 1`` levels; the first one has neither parents nor neighbours.

    Example:
        A star of three leaves: one colour, then two, of which the leaf's occurs three times.

        >>> star = torch.tensor([0, 3, 4, 5, 6]), torch.tensor([1, 2, 3, 0, 0, 0])
        >>> same = torch.zeros(4, dtype=torch.int64)
        >>> first, second = levels(torch.tensor([0, 4]), *star, same, rounds=1)
        >>> first.held_multiplicity, second.held_multiplicity, second.multiplicity
        (tensor([4]), tensor([1, 3]), tensor([3, 1]))
    """
    graph = torch.repeat_interleave(node_ptr.diff())
    if per_graph and len(start) > 0:
        start = graph * (int(start.max()) + 1) + start
    colours = list(refinements(rowptr, col, start, rounds, ignore_counts=ignore_counts))
    out: list[Level] = []
    for depth, colour in enumerate(colours):
        known, node = _known(colour), _first_nodes(colour)
        if per_graph and depth > 0:
            length = _neighbours(node, rowptr.long(), col.long(), colours[depth - 1])[0].diff()
            colour = colours[depth] = _by_length(colour, graph[node], length)
            node = _first_nodes(colour)
        held, count = _occurring(graph * max(known, 1) + colour)
        graph_ptr, held = _rows(held, len(node_ptr) - 1, known)
        parent, below = node.new_empty(0), (node.new_zeros(1), node.new_empty(0), node.new_empty(0))
        if depth > 0:
            parent = colours[depth - 1][node]
            below = _neighbours(node, rowptr.long(), col.long(), colours[depth - 1])
        out.append(Level(node, parent, *below, graph_ptr, held, count))
    return out


def _first_nodes(colour: Tensor) -> Tensor:
    """Return the first node of each colour."""
    number = torch.arange(len(colour), device=colour.device)
    node = number.new_full((_known(colour),), len(colour))
    return node.scatter_reduce_(0, colour, number, "amin")


def _by_length(colour: Tensor, graph: Tensor, length: Tensor) -> Tensor:
    """Number colours anew, by their graph and in it by their number of neighbours.

    A GPU sums rows side by side, and all of them take as long as the longest.

    Args:
        colour: Of each node, ``[N]``.
        graph: Of each colour, ``[C]``.
        length: Neighbours of each colour, ``[C]``.
    """
    order = length.argsort(stable=True)
    order = order[graph[order].argsort(stable=True)]
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device)
    return rank[colour]


def _neighbours(
    node: Tensor, rowptr: Tensor, col: Tensor, colour: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return, for each node, its neighbours' colours and how often each occurs."""
    length = rowptr[node + 1] - rowptr[node]
    owner = torch.repeat_interleave(length)
    begin = rowptr[node] - (length.cumsum(0) - length)
    position = torch.arange(len(owner), device=owner.device) + begin[owner]
    known = _known(colour)
    key, times = _occurring(owner * max(known, 1) + colour[col[position]])
    return *_rows(key, len(node), known), times


def _occurring(key: Tensor) -> tuple[Tensor, Tensor]:
    """Return the different values, sorted, and how often each occurs."""
    # NumPy sorts them several times as fast as PyTorch, which sorts their places along.
    key = torch.from_numpy(np.sort(key.numpy())) if key.is_cpu else key.sort().values
    values, count = torch.unique_consecutive(key, return_counts=True)
    return values, count


def _rows(key: Tensor, num_rows: int, known: int) -> tuple[Tensor, Tensor]:
    """Take sorted numbers ``row * known + colour`` apart: pointers of rows, and colours."""
    row = key // max(known, 1)
    pointer = key.new_zeros(num_rows + 1)
    pointer[1:] = torch.bincount(row, minlength=num_rows).cumsum(0)
    return pointer, key - row * known


def _known(colour: Tensor) -> int:
    return int(colour.max()) + 1 if len(colour) > 0 else 0
