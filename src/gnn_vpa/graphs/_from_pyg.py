"""A user's own PyG graphs as one data set."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

from ..errors import GnnVpaError, UsageError
from .graphset import GraphSet
from .numbering import Numbering
from .targets import MISSING, NO_TARGET, TargetKind, Targets, targets_of

_OF_EDGES = ("edge_attr", "edge_weight")
_ALSO = frozenset({"feat", "batch", "node_type", "n_id", "tf"})  # tell PyG the number of nodes too
_READ = ("x", "edge_index", "y", "num_nodes", "pos", *_OF_EDGES)  # what else there is are columns


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
    stores = [graph.to_dict() if isinstance(graph, Data) else {} for graph in graphs]
    read = _read_all(graphs, stores) if all(map(_has_edges, stores)) else None
    if read is None or not _all_fit(read, stores, target):
        for index, graph in enumerate(graphs):
            if (fault := _fault(graph, graphs[0], target, first)) is not None:
                raise UsageError(f"{name}, graph {first + index}: {fault}")
    learned = _targets(graphs, name, target, kind)
    sizes, edges, counts = read or _read_all(graphs, stores)
    node_ptr = _pointers(sizes)
    nodes = int(node_ptr[-1])
    sources, targets = edges + torch.repeat_interleave(node_ptr[:-1], counts)
    if first:  # a batch of many: its own messages count from here
        name = f"{name} from {first} on"
    order = (targets * nodes + sources).argsort(stable=True)
    attributes, weights = (_stack([store.get(n) for store in stores]) for n in _OF_EDGES)
    try:
        return GraphSet(
            name=name if target in ("y", NO_TARGET) else f"{name}:{target}",
            node_ptr=node_ptr,
            rowptr=_pointers(torch.bincount(targets, minlength=nodes)),
            col=sources[order].int(),
            y=learned.y,
            node_attributes=_stack([store.get("x") for store in stores]),
            edge_attributes=None if attributes is None else attributes[order],
            class_names=learned.class_names,
            edge_weights=None if weights is None else weights[order],
            positions=_stack([store.get("pos") for store in stores]),
            columns={} if target == NO_TARGET else _single_values(graphs),
            numbering=Numbering(classes=learned.classes),
        )
    except GnnVpaError as error:  # a number that is not finite: the user's own
        raise UsageError(str(error)) from error


def num_nodes(graph: Data, store: Mapping[str, Any]) -> int:
    """Return how many nodes a graph has, quicker than PyG where ``x`` or a number says so.

    Example:
        >>> line = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
        >>> num_nodes(line, line.to_dict())
        3
    """
    if "num_nodes" in store:
        return int(store["num_nodes"] or 0)
    x = store.get("x")
    if type(graph) is Data and type(x) is Tensor and x.dim() > 0 and _ALSO.isdisjoint(store):
        return len(x)
    return int(graph.num_nodes or 0)


class _Read(NamedTuple):
    """What all graphs have, one after the other."""

    sizes: Tensor  # [G], numbers of nodes
    edges: Tensor  # [2, E], each graph's nodes counted from 0
    counts: Tensor  # [G], numbers of edges


def _read_all(graphs: list[Data], stores: Sequence[Mapping[str, Any]]) -> _Read:
    sizes = torch.tensor([num_nodes(*pair) for pair in zip(graphs, stores, strict=True)])
    parts = [store["edge_index"] for store in stores]
    counts = torch.tensor([part.shape[1] for part in parts])
    parts = [part.as_tensor() if isinstance(part, EdgeIndex) else part for part in parts]
    return _Read(sizes, torch.cat(parts, dim=1).cpu(), counts)


def _has_edges(store: Mapping[str, Any]) -> bool:
    edges = store.get("edge_index")
    return (
        isinstance(edges, Tensor)
        and edges.dtype == torch.int64
        and edges.dim() == 2
        and edges.shape[0] == 2
    )


def _all_fit(read: _Read, stores: Sequence[Mapping[str, Any]], target: str) -> bool:
    """Say whether `_fault` finds nothing in any graph; if not sure, no."""
    if target != NO_TARGET and any(store.get(target) is None for store in stores):
        return False
    rows = {"x": read.sizes, "pos": read.sizes, **dict.fromkeys(_OF_EDGES, read.counts)}
    for field, expected in rows.items():
        values = [store.get(field) for store in stores]
        if all(value is None for value in values):
            continue
        shapes = [value.shape for value in values if isinstance(value, Tensor) and value.dim() > 0]
        if len(shapes) < len(values):
            return False
        columns = shapes[0][1:]
        if [shape[0] for shape in shapes] != expected.tolist():
            return False
        if not all(shape[1:] == columns for shape in shapes):
            return False
        if field == "edge_weight" and columns.numel() != 1:
            return False
    limit = torch.repeat_interleave(read.sizes, read.counts)
    return bool((read.edges >= 0).all()) and bool((read.edges < limit).all())


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


def _single_values(graphs: list[Data]) -> dict[str, list[Any]]:
    """Return what every graph has one value of, by name."""
    found: dict[str, list[Any]] = {}
    for name in graphs[0].keys():  # noqa: SIM118  (a graph is no mapping)
        if name in _READ:
            continue
        values = [_single(graph.get(name)) for graph in graphs]
        if all(value is not None for value in values):
            found[name] = values
    return found


def _single(value: object) -> Any:
    if isinstance(value, Tensor) and value.numel() == 1:
        return value.item()
    return value if isinstance(value, bool | int | float | str) else None


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
    sizes = {"x": nodes, "pos": nodes, **dict.fromkeys(_OF_EDGES, edges.size(1))}
    for field, rows in sizes.items():
        value = graph.get(field)
        if _columns(value) != _columns(other.get(field)):
            return f"{field} has other columns than that of graph {number}"
        if value is not None and len(value) != rows:
            return f"{field} must have {rows} rows, but has {len(value)}"
    if _columns(graph.get("edge_weight")) not in (None, 1):
        return "edge_weight must be one number for each edge; give several as edge_attr"
    return None


def _columns(value: Tensor | None) -> int | None:
    return None if value is None else value.shape[1:].numel()


def _stack(values: list[Tensor | None]) -> Tensor | None:
    tensors = [value for value in values if value is not None]
    if not tensors:
        return None
    if any(tensor.shape[1:] != tensors[0].shape[1:] for tensor in tensors):  # [E] and [E, 1]
        tensors = [tensor.reshape(len(tensor), tensor.shape[1:].numel()) for tensor in tensors]
    rows = torch.cat(tensors).float().cpu()
    return rows.reshape(len(rows), rows.shape[1:].numel())


def _pointers(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
