"""A data set on a device, ready to be cut into batches: nothing is collated but numbers."""

import logging
from dataclasses import dataclass

import torch
from torch import Tensor

from ..graphs import Features, GraphSet, features, merge
from ..nn import SGC, Looped, build_model, with_self_loops
from ..nn._model import Model
from ..ops import Graph
from ..ops._csr import rows
from .task import Task

_log = logging.getLogger("gnn_vpa")
_WORTHWHILE = 0.9  # merge if at most this share of the nodes remains: counting costs a little too
_NARROW = 256  # columns that may be written out for every node, one-hot or not


@dataclass(frozen=True, eq=False)
class Resident:
    """All graphs of a data set, as one model sees them.

    Attributes:
        x: Features of all nodes: codes ``[N]``, or ``[N, in_channels]``.
        times: How many nodes each stands for, ``[N]``; None: itself alone.
        graph: All edges, in the order of their targets; None where the model needs none.
        node_ptr: Graph g has the nodes ``node_ptr[g]`` to ``node_ptr[g + 1]``, ``[G + 1]``.
        y: Class of each graph, ``[G]``.
        numbered: Whether edges carry values, so that both groupings must agree on their numbers.
        looped: Whether the edges hold a self-loop for each node.
        largest: Number of nodes of the largest graph.
    """

    x: Tensor
    times: Tensor | None
    graph: Graph | None
    node_ptr: Tensor
    y: Tensor
    numbered: bool
    looped: bool
    largest: int


def model_for(task: Task, graphs: GraphSet) -> Model:
    """Build the model of a task for a data set, with weights from the global generator."""
    width = features(graphs, task.features).width
    return build_model(
        task.model, width, graphs.num_classes, task.aggr, task.variant, **dict(task.options)
    )


def resident(
    graphs: GraphSet,
    task: Task,
    model: Model,
    device: torch.device,
    dtype: torch.dtype,
    merging: bool = True,
) -> Resident:
    """Put a data set on a device as ``model`` needs it, alike nodes merged where that pays."""
    own = features(graphs, task.features)
    looped = task.model.lower() in ("gat", "sgc")
    whole = _whole(graphs, looped, device)
    codes = own.codes if own.dense is None else None
    x = (own.matrix().to(dtype) if codes is None else codes).to(device)
    graph: Graph | None = whole
    node_ptr, times, small = graphs.node_ptr.to(device), None, None
    if merging:
        csr = whole.by_target
        small = merge(node_ptr, csr.rowptr, csr.col, _kinds(own).to(device), _reach(model))
    if isinstance(model, SGC) and own.width <= _NARROW:
        # Its propagation has no weights: once for the data set, not once a step.
        x, graph = model.propagate(x, Looped(whole)), None
    if small is not None and len(small.node) <= _WORTHWHILE * graphs.num_nodes:
        x, times, node_ptr = x[small.node], small.node_times.to(torch.float32), small.node_ptr
        if graph is not None:
            graph = Graph(small.edge_index, len(small.node), small.edge_times)
        log_merged(graphs, len(small.node))
    if graph is not None:
        graph.by_source  # noqa: B018 - made here, once
    return Resident(
        x,
        times,
        graph,
        node_ptr,
        graphs.y.to(device),
        numbered=task.model.lower() == "gat" or (graph is not None and times is not None),
        looped=looped,
        largest=int(node_ptr.diff().max()),
    )


def log_merged(graphs: GraphSet, remaining: int) -> None:
    """Say how large a data set is, and how many of its nodes are left to compute."""
    _log.info(
        "%s: %s graphs, %s nodes; nodes that a network of this depth cannot tell apart are "
        "computed once (%s remain)",
        graphs.name, f"{graphs.num_graphs:,}", f"{graphs.num_nodes:,}", f"{remaining:,}",
    )  # fmt: skip


def _reach(model: Model) -> int:
    """Return how many rounds of refinement know all that the model can know of a node."""
    if isinstance(model, SGC):
        return model.K + 1  # the last hop sees its neighbours' degrees, one round further
    return len(model.convs)  # type: ignore[arg-type]


def _whole(graphs: GraphSet, looped: bool, device: torch.device) -> Graph:
    """Return all edges in the order of their targets, with a self-loop for each node if asked."""
    target = rows(graphs.rowptr.to(device), graphs.num_edges)
    whole = Graph(torch.stack([graphs.col.to(device).long(), target]), graphs.num_nodes)
    if not looped:
        return whole
    csr = with_self_loops(whole).graph.by_target
    target = rows(csr.rowptr, csr.col.shape[0])
    return Graph(torch.stack([csr.col, target]), graphs.num_nodes)


def _kinds(own: Features) -> Tensor:
    """Return a number for each node, equal where the features are."""
    if own.dense is None and own.codes is not None:
        return own.codes
    kinds: Tensor = torch.unique(own.matrix(), dim=0, return_inverse=True)[1]
    return kinds
