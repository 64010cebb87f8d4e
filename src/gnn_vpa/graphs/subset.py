"""Some graphs of a data set as a data set."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .graphset import GraphSet


def subset(graphs: GraphSet, ids: Tensor) -> GraphSet:
    """Return the data set of some graphs, in the order in which they are asked for.

    Args:
        graphs: The data set.
        ids: Which graphs: [K], int64.

    Example:
        >>> from torch_geometric.data import Data
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> some = [Data(edge_index=pair, num_nodes=2 + i, y=i) for i in range(3)]
        >>> subset(GraphSet.from_pyg(some, "toy"), torch.tensor([2, 0]))
        GraphSet('toy', graphs=2, classes=3, nodes=6, edges=4)
    """
    count = graphs.node_ptr.diff()[ids]
    nodes = _ranges(graphs.node_ptr[ids], count)
    degree = graphs.rowptr.diff()[nodes]
    edges = _ranges(graphs.rowptr[nodes], degree)
    node_ptr = _pointers(count)
    moved = torch.repeat_interleave(node_ptr[:-1] - graphs.node_ptr[ids], count)  # of each node
    col = graphs.col[edges] + torch.repeat_interleave(moved, degree)
    rows = {
        "node_labels": nodes,
        "node_attributes": nodes,
        "positions": nodes,
        "edge_attributes": edges,
        "edge_weights": edges,
        "graph_attributes": ids,
        "weights": ids,
    }
    kept: dict[str, Any] = {}
    for name, places in rows.items():
        tensor = getattr(graphs, name)
        kept[name] = None if tensor is None else tensor[places]
    return replace(
        graphs,
        node_ptr=node_ptr,
        rowptr=_pointers(degree),
        col=col.int(),
        y=graphs.y[ids],
        columns={
            name: [values[i] for i in ids.tolist()] for name, values in graphs.columns.items()
        },
        **kept,
    )


def _ranges(first: Tensor, count: Tensor) -> Tensor:
    """Return ``first``, ``first + 1``, … of each range, ``count`` of them, one after the other."""
    ends = count.cumsum(0)
    return torch.repeat_interleave(first - (ends - count), count) + torch.arange(int(count.sum()))


def _pointers(count: Tensor) -> Tensor:
    return torch.cat([count.new_zeros(1), count.cumsum(0)])
