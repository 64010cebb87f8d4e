"""A user's own PyG graphs as one data set."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data

from ..errors import GnnVpaError, UsageError
from ..ops.internal import by_row, transposed
from .graphset import GraphSet
from .numbering import Numbering
from .targets import MISSING, NO_TARGET, TargetKind, Targets, targets_of

_OF_EDGES = ("edge_attr", "edge_weight")
_ALSO = frozenset({"feat", "batch", "node_type", "n_id", "tf"})  # tell PyG the number of nodes too
_READ = ("x", "edge_index", "y", "num_nodes", "pos", *_OF_EDGES)  # what else there is are columns


class Seen(NamedTuple):
    """A graph whose attributes were looked up once."""

    graph: Data
    store: Mapping[str, Any]
    nodes: int
    edges: int  # 0 where ``edge_index`` is no tensor, too


def seen(graph: Data) -> Seen:
    """Look a graph's attributes up.

    Example:
        >>> line = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
        >>> seen(line).nodes, seen(line).edges
        (3, 2)
    """
    # What ``to_dict`` makes a copy of, which takes a third of all that a look takes.
    store = graph._store._mapping if type(graph) is Data else graph.to_dict()
    edges = store.get("edge_index")
    count = edges.shape[-1] if isinstance(edges, Tensor) and edges.dim() > 0 else 0
    return Seen(graph, store, num_nodes(graph, store), count)


def from_pyg(
    graphs: Iterable[Data],
    name: str,
    target: str = "y",
    kind: TargetKind | Literal["auto"] = "auto",
) -> GraphSet:
    """See `GraphSet.from_pyg`."""
    graphs = list(graphs)
    for index, graph in enumerate(graphs):
        if (fault := not_one_graph(graph)) is not None:
            raise UsageError(f"{name}, graph {index}: {fault}")
    return from_seen([seen(graph) for graph in graphs], name, target, kind)


def from_seen(
    found: Sequence[Seen],
    name: str,
    target: str = "y",
    kind: TargetKind | Literal["auto"] = "auto",
    first: int = 0,
) -> GraphSet:
    """See `GraphSet.from_pyg`; the first graph has this number in messages."""
    if not found:
        raise UsageError(f"{name}: there is no graph in it")
    graphs, stores, sizes, counts = (list(column) for column in zip(*found, strict=True))
    parts = [store.get("edge_index") for store in stores]
    edges = torch.cat(_plain(parts), dim=1).cpu() if _have_edges(parts) else None
    fit = edges is not None and _all_fit(stores, sizes, counts, edges, target)
    if not fit:
        for index, graph in enumerate(graphs):
            if (fault := _fault(graph, graphs[0], target, first)) is not None:
                raise UsageError(f"{name}, graph {first + index}: {fault}")
    assert edges is not None  # a graph without them is at fault
    learned = _targets(graphs, name, target, kind)
    node_ptr = _pointers(torch.tensor(sizes))
    ends = edges + torch.repeat_interleave(node_ptr[:-1], torch.tensor(counts))
    rowptr, col, order = _by_target(ends, int(node_ptr[-1]))
    if first:  # a batch of many: its own messages count from here
        name = f"{name} from {first} on"
    stacked = {
        field: _stack([store.get(field) for store in stores], alike=fit)
        for field in ("x", "pos", *_OF_EDGES)
    }
    attributes, weights = stacked["edge_attr"], stacked["edge_weight"]
    try:
        return GraphSet(
            name=name if target in ("y", NO_TARGET) else f"{name}:{target}",
            node_ptr=node_ptr,
            rowptr=rowptr,
            col=col,
            y=learned.y,
            node_attributes=stacked["x"],
            edge_attributes=None if attributes is None else attributes[order],
            class_names=learned.class_names,
            edge_weights=None if weights is None else weights[order],
            positions=stacked["pos"],
            columns={} if target == NO_TARGET else _single_values(graphs),
            numbering=Numbering(classes=learned.classes, from_list=True),
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
        return x.shape[0]
    return int(graph.num_nodes or 0)


def _have_edges(parts: Sequence[object]) -> bool:
    """Say whether all are int64 tensors ``[2, edges]``."""
    if not all(isinstance(part, Tensor) for part in parts):
        return False
    shapes = [part.shape for part in parts]  # type: ignore[attr-defined]
    same = {part.dtype for part in parts} == {torch.int64}  # type: ignore[attr-defined]
    return same and all(len(shape) == 2 and shape[0] == 2 for shape in shapes)


def _plain(parts: list[Tensor]) -> list[Tensor]:
    return [part.as_tensor() if isinstance(part, EdgeIndex) else part for part in parts]


def _by_target(edges: Tensor, nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``rowptr`` and ``col`` of edges, and their order: by target, then by source."""
    kind = np.int32 if max(edges.shape[1], nodes) < 1 << 31 else np.int64
    source, target = edges.numpy().astype(kind)
    begin, targets, order = by_row(source, target, nodes)
    rowptr, col, order = transposed(begin, targets, order, nodes)
    return (
        torch.from_numpy(rowptr).long(),
        torch.from_numpy(col.astype(np.int32, copy=False)),
        torch.from_numpy(order).long(),
    )


def _all_fit(
    stores: Sequence[Mapping[str, Any]],
    sizes: list[int],
    counts: list[int],
    edges: Tensor,
    target: str,
) -> bool:
    """Say whether `_fault` finds nothing in any graph; if not sure, no."""
    if target != NO_TARGET and any(store.get(target) is None for store in stores):
        return False
    rows = {"x": sizes, "pos": sizes, **dict.fromkeys(_OF_EDGES, counts)}
    for field, expected in rows.items():
        values = [store.get(field) for store in stores]
        if all(value is None for value in values):
            continue
        if not all(isinstance(value, Tensor) and value.dim() > 0 for value in values):
            return False
        shapes = [value.shape for value in values]  # type: ignore[union-attr]
        columns = {shape[1:] for shape in shapes}
        if len(columns) > 1 or [shape[0] for shape in shapes] != expected:
            return False
        if field == "edge_weight" and columns.pop().numel() != 1:
            return False
    limit = torch.repeat_interleave(torch.tensor(sizes), torch.tensor(counts))
    return bool((edges >= 0).all()) and bool((edges < limit).all())


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


def not_one_graph(graph: object) -> str | None:
    """Say what is wrong with what should be one graph of PyG's, if anything.

    Example:
        >>> not_one_graph("MUTAG")
        'expected a torch_geometric.data.Data, got str'
    """
    if type(graph) is Data:
        return None
    if not isinstance(graph, Data):
        return f"expected a torch_geometric.data.Data, got {type(graph).__name__}"
    if isinstance(graph, Batch):  # it is a Data too, and would count as one graph
        return (
            f"it is a batch of {graph.num_graphs} graphs: give the graphs, batch.to_data_list(), "
            "or what a DataLoader was made from"
        )
    return None


def _fault(graph: Data, other: Data, target: str, number: int) -> str | None:
    """Say what is wrong with a graph, if anything, beside another with this number."""
    edges, nodes = graph.edge_index, graph.num_nodes or 0
    if not isinstance(edges, Tensor) or not _have_edges([edges]):
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


def _stack(values: list[Tensor | None], alike: bool) -> Tensor | None:
    """Return the rows of all values that are there; ``alike``: all have the same columns."""
    tensors = [value for value in values if value is not None]
    if not tensors:
        return None
    if not alike:  # [E] and [E, 1]
        tensors = [tensor.reshape(len(tensor), tensor.shape[1:].numel()) for tensor in tensors]
    rows = torch.cat(tensors).float().cpu()
    return rows.reshape(len(rows), rows.shape[1:].numel())


def _pointers(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
