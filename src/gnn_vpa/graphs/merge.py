"""Merge nodes that look alike: a smaller graph on which a network computes the same numbers."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .colours import refine


@dataclass(frozen=True, eq=False)
class Merged:
    """Graphs whose alike nodes were merged, each into the first of them.

    Attributes:
        node: The node that stands for each merged one: ``[M]``.
        node_times: How many nodes it stands for: ``[M]``.
        node_ptr: Graph g has the merged nodes ``node_ptr[g]`` to ``node_ptr[g + 1]``: ``[G + 1]``.
        edge_index: Sources above targets, in the order of the targets: ``[2, K]``.
        edge_times: How many edges of the target's node lead to nodes merged into the source: [K].

    Example:
        >>> star = torch.tensor([0, 3, 4, 5, 6]), torch.tensor([1, 2, 3, 0, 0, 0])
        >>> same = torch.zeros(4, dtype=torch.int64)
        >>> small = merge(torch.tensor([0, 4]), *star, same, rounds=2)
        >>> small.node_times, small.edge_index, small.edge_times
        (tensor([1, 3]), tensor([[1, 0],
                [0, 1]]), tensor([3, 1]))
    """

    node: Tensor
    node_times: Tensor
    node_ptr: Tensor
    edge_index: Tensor
    edge_times: Tensor


def merge(node_ptr: Tensor, rowptr: Tensor, col: Tensor, start: Tensor, rounds: int) -> Merged:
    """Merge the nodes of each graph that ``rounds`` rounds of colour refinement do not tell apart.

    A network of at most ``rounds`` layers computes the same on the merged graphs as on the whole
    ones, forward and backward, if it counts nodes and edges as often as they occur.

    Args:
        node_ptr: Graph g has the nodes ``node_ptr[g]`` to ``node_ptr[g + 1]``: ``[G + 1]``.
        rowptr: All graphs by target: ``[N + 1]``.
        col: Sources: ``[E]``.
        start: An integer for each node, equal where the features are: ``[N]``.
        rounds: Number of message-passing layers.

    Example:
        >>> pair = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
        >>> merge(torch.tensor([0, 2]), *pair, torch.tensor([0, 1]), rounds=1).node_times
        tensor([1, 1])
    """
    num_nodes, num_graphs = len(rowptr) - 1, len(node_ptr) - 1
    colour = refine(rowptr, col, start, rounds)
    device = rowptr.device
    graph = torch.repeat_interleave(node_ptr.diff())
    known = int(colour.max()) + 1 if num_nodes else 1
    # Nodes are numbered through the graphs, so merged ones are too, each behind the first of it.
    first = _first_of(graph * known + colour)
    node, merged = torch.unique(first, return_inverse=True)
    node_times = torch.bincount(merged, minlength=len(node))
    begin = torch.zeros(num_graphs + 1, dtype=torch.int64, device=device)
    begin[1:] = torch.bincount(graph[node], minlength=num_graphs).cumsum(0)

    length = (rowptr[1:] - rowptr[:-1])[node].long()
    owner = torch.repeat_interleave(length)
    skipped = rowptr[node].long() - (length.cumsum(0) - length)
    position = torch.arange(len(owner), device=device) + skipped[owner]
    key = owner * max(len(node), 1) + merged[col[position].long()]
    edges, edge_times = torch.unique(key, return_counts=True)
    target, source = edges // max(len(node), 1), edges % max(len(node), 1)
    return Merged(node, node_times, begin, torch.stack([source, target]), edge_times)


def _first_of(kind: Tensor) -> Tensor:
    """Return, for each node, the first node of its kind."""
    _, group = torch.unique(kind, return_inverse=True)
    count = int(group.max()) + 1 if len(group) else 0
    first = torch.full((count,), len(kind), device=kind.device)
    first.scatter_reduce_(0, group, torch.arange(len(kind), device=kind.device), "amin")
    return first[group]
