"""A user's own PyG graphs as one data set."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ..errors import GnnVpaError, UsageError
from .graphset import GraphSet


def from_pyg(graphs: Iterable[Data], name: str) -> GraphSet:
    """See `GraphSet.from_pyg`."""
    graphs = list(graphs)
    if not graphs:
        raise UsageError(f"{name}: there is no graph in it")
    for index, graph in enumerate(graphs):
        if (fault := _fault(graph, graphs[0])) is not None:
            raise UsageError(f"{name}, graph {index}: {fault}")
    classes = np.unique([_class(graph) for graph in graphs], return_inverse=True)[1]
    node_ptr = _pointers(torch.tensor([int(graph.num_nodes or 0) for graph in graphs]))
    nodes = int(node_ptr[-1])
    source, target = torch.cat(
        [graph.edge_index + first for graph, first in zip(graphs, node_ptr.tolist(), strict=False)],
        dim=1,
    ).cpu()
    order = (target * nodes + source).argsort(stable=True)
    attributes = _stack([graph.edge_attr for graph in graphs])
    try:
        return GraphSet(
            name=name,
            node_ptr=node_ptr,
            rowptr=_pointers(torch.bincount(target, minlength=nodes)),
            col=source[order].int(),
            y=torch.from_numpy(classes),
            node_attributes=_stack([graph.x for graph in graphs]),
            edge_attributes=None if attributes is None else attributes[order],
        )
    except GnnVpaError as error:  # a number that is not finite: the user's own
        raise UsageError(str(error)) from error


def _fault(graph: object, first: Data) -> str | None:
    """Say what is wrong with a graph, if anything."""
    if not isinstance(graph, Data):
        return f"expected a torch_geometric.data.Data, got {type(graph).__name__}"
    edges, nodes = graph.edge_index, graph.num_nodes or 0
    if edges is None or edges.dim() != 2 or len(edges) != 2 or edges.dtype != torch.int64:
        return "edge_index must be an int64 tensor [2, edges]"
    if edges.numel() and (edges.min() < 0 or edges.max() >= nodes):
        return f"edge_index goes from {edges.min()} to {edges.max()}, with {nodes} nodes"
    if _class(graph) is None:
        return f"y must be one whole number, the class, but is {graph.y}"
    for field, rows in (("x", nodes), ("edge_attr", edges.size(1))):
        value = graph.get(field)
        if _columns(value) != _columns(first.get(field)):
            return f"{field} has other columns than that of graph 0"
        if value is not None and len(value) != rows:
            return f"{field} must have {rows} rows, but has {len(value)}"
    return None


def _class(graph: Data) -> int | None:
    y = graph.y
    if isinstance(y, Tensor) and y.numel() == 1 and not y.is_floating_point():
        return int(y)
    return y if isinstance(y, int) else None


def _columns(value: Tensor | None) -> int | None:
    return None if value is None else value.shape[1:].numel()


def _stack(values: list[Tensor | None]) -> Tensor | None:
    tensors = [value for value in values if value is not None]
    if not tensors:
        return None
    rows = torch.cat(tensors).float().cpu()
    return rows.reshape(len(rows), rows.shape[1:].numel())


def _pointers(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
