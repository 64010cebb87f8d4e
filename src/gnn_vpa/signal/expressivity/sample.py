"""A random sample of a data set's graphs."""

import torch
from torch import Tensor

from ...errors import UsageError
from ...graphs import GraphSet


def sample(graphs: GraphSet, count: int, seed: int = 0) -> GraphSet:
    """Return ``count`` of the graphs, drawn without replacement, or all if there are no more.

    Example:
        >>> from gnn_vpa.signal import atlas
        >>> sample(atlas(), 100).num_graphs
        100
    """
    if count < 1:
        raise UsageError(f"count: expected at least 1 graph, got {count}")
    if count >= graphs.num_graphs:
        return graphs
    draw = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(graphs.num_graphs, generator=draw)[:count].sort().values
    node_ptr, node = _rows(graphs.node_ptr, chosen)
    rowptr, edge = _rows(graphs.rowptr, node)
    # A graph stays in one piece, so all of its numbers move by as much.
    moved = torch.repeat_interleave(node - torch.arange(len(node)), rowptr.diff())
    return GraphSet(
        name=graphs.name,
        node_ptr=node_ptr,
        rowptr=rowptr,
        col=graphs.col[edge] - moved.int(),
        y=graphs.y[chosen],
        node_labels=_of(graphs.node_labels, node),
        node_attributes=_of(graphs.node_attributes, node),
        edge_attributes=_of(graphs.edge_attributes, edge),
    )


def _rows(pointers: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pointers of some rows on their own, and where their content was."""
    length = pointers.diff()[chosen]
    begin = torch.cat([length.new_zeros(1), length.cumsum(0)])
    moved = torch.repeat_interleave(pointers[chosen] - begin[:-1], length)
    return begin, torch.arange(len(moved)) + moved


def _of(values: Tensor | None, chosen: Tensor) -> Tensor | None:
    return None if values is None else values[chosen]
