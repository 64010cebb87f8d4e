"""Two small graphs that are always the same: a network is known by what it computes for them."""

import torch
from torch import Tensor

from .batches import Inputs

_EDGES = [[1, 2, 3, 0, 0, 0, 5, 4, 6, 5], [0, 0, 0, 1, 2, 3, 4, 5, 5, 6]]  # a star and a path
_ONE_WAY = [[1, 2, 3, 4, 5], [0, 0, 0, 5, 6]]  # the same: an edge has a source and a target
_SIZES = [4, 3]  # nodes of each
_LARGE = 16.0  # numbers by which a bound between the layers shows


def two_graphs(
    width: int,
    columns: int | None = None,
    positions: int | None = None,
    *,
    has_weights: bool = False,
    copies: int = 1,
    one_way: bool = False,
) -> Inputs:
    """Return the two graphs with all that a network may see.

    Args:
        width: Features of nodes.
        columns: Features of edges; None for none. One column is the edges' weight too.
        positions: Coordinates of nodes; None for none.
        has_weights: Whether edges have a weight of their own.
        copies: How often the two graphs are there.
        one_way: Whether edges have one direction alone, and features of nodes are large.

    Example:
        >>> two_graphs(2, copies=3).ptr
        tensor([ 0,  4,  7, 11, 14, 18, 21])
    """
    edges, sizes = torch.tensor(_ONE_WAY if one_way else _EDGES), torch.tensor(_SIZES)
    shift = torch.arange(copies).repeat_interleave(edges.shape[1]) * int(sizes.sum())
    edges, sizes = edges.repeat(1, copies) + shift, sizes.repeat(copies)
    batch = torch.repeat_interleave(sizes)
    edge_attr = None if columns is None else _numbers(edges.shape[1], columns)
    weight = edge_attr[:, 0] if edge_attr is not None and columns == 1 else None
    return Inputs(
        _numbers(len(batch), width) * (_LARGE if one_way else 1.0),
        edges,
        batch,
        torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
        edge_attr,
        _numbers(edges.shape[1], 1)[:, 0] if has_weights else weight,
        None if positions is None else _numbers(len(batch), positions),
    )


def _numbers(rows: int, columns: int) -> Tensor:
    """Return numbers between 0 and 1 that are all different."""
    count = torch.arange(1, rows * columns + 1, dtype=torch.float64)
    return (count * 0.6180339887498949 % 1).view(rows, columns).float()
