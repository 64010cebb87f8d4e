"""A user's own PyG graphs as one data set."""

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from ..errors import GnnVpaError, UsageError
from .graphset import GraphSet
from .numbering import Numbering
from .targets import MISSING, NO_TARGET, TargetKind, Targets, targets_of


def from_pyg(
    graphs: Iterable[Data],
    name: str,
    target: str = "y",
    kind: TargetKind | Literal["auto"] = "auto",
    first: int = 0,
) -> GraphSet:
    """See `GraphSet.from_pyg`; the first graph has this number in messages."""
    graphs = list(graphs)
    if not graphs:
        raise UsageError(f"{name}: there is no graph in it")
    for index, graph in enumerate(graphs):
        if (fault := _fault(graph, graphs[0], target, first)) is not None:
            raise UsageError(f"{name}, graph {first + index}: {fault}")
    learned = _targets(graphs, name, target, kind)
    node_ptr = _pointers(torch.tensor([int(graph.num_nodes or 0) for graph in graphs]))
    nodes = int(node_ptr[-1])
    sources, targets = torch.cat(
        [graph.edge_index + first for graph, first in zip(graphs, node_ptr.tolist(), strict=False)],
        dim=1,
    ).cpu()
    if first:  # a batch of many: its own messages count from here
        name = f"{name} from {first} on"
    order = (targets * nodes + sources).argsort(stable=True)
    attributes = _stack([graph.edge_attr for graph in graphs])
    try:
        return GraphSet(
            name=name if target in ("y", NO_TARGET) else f"{name}:{target}",
            node_ptr=node_ptr,
            rowptr=_pointers(torch.bincount(targets, minlength=nodes)),
            col=sources[order].int(),
            y=learned.y,
            node_attributes=_stack([graph.x for graph in graphs]),
            edge_attributes=None if attributes is None else attributes[order],
            class_names=learned.class_names,
            numbering=Numbering(classes=learned.classes),
        )
    except GnnVpaError as error:  # a number that is not finite: the user's own
        raise UsageError(str(error)) from error


def _targets(
    graphs: list[Data], name: str, target: str, kind: TargetKind | Literal["auto"]
) -> Targets:
    if target == NO_TARGET:
        return Targets(torch.full((len(graphs),), MISSING))
    nodes = [int(graph.num_nodes or 0) for graph in graphs]
    try:
        return targets_of([graph[target] for graph in graphs], kind, nodes, target)
    except ValueError as error:
        raise UsageError(f"{name}, {error}") from None


def _fault(graph: object, other: Data, target: str, number: int) -> str | None:
    """Say what is wrong with a graph, if anything, beside another with this number."""
    if not isinstance(graph, Data):
        return f"expected a torch_geometric.data.Data, got {type(graph).__name__}"
    edges, nodes = graph.edge_index, graph.num_nodes or 0
    if edges is None or edges.dim() != 2 or len(edges) != 2 or edges.dtype != torch.int64:
        return "edge_index must be an int64 tensor [2, edges]"
    if edges.numel() and (edges.min() < 0 or edges.max() >= nodes):
        return f"edge_index goes from {edges.min()} to {edges.max()}, with {nodes} nodes"
    if target != NO_TARGET and graph.get(target) is None:
        return f"it has no {target}, which is to be learned: give it, or NaN where it is missing"
    for field, rows in (("x", nodes), ("edge_attr", edges.size(1))):
        value = graph.get(field)
        if _columns(value) != _columns(other.get(field)):
            return f"{field} has other columns than that of graph {number}"
        if value is not None and len(value) != rows:
            return f"{field} must have {rows} rows, but has {len(value)}"
    return None


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
