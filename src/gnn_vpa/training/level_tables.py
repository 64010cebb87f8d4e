"""A data set by levels, with the weights of a model's sums: what both engines cut batches from.

At level ``l`` a row stands for all nodes that ``l`` layers cannot tell apart (a colour of 1-WL
after ``l`` rounds), over the whole data set or graph by graph. So a layer computes nothing twice.
"""

import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from ..aggregations import aggregation
from ..graphs import Features, GraphSet, Level, features, levels
from ..nn import Model, WeightedGraph, with_self_loops
from ..nn.internal import LevelsHead
from ..nn.sgc import SGC
from ..ops import Graph
from ..ops.internal import rows
from .task import Task

_log = logging.getLogger("gnn_vpa")
MAX_PROPAGATED_COLUMNS = 256  # columns that may be written out for every node and propagated


class Links(NamedTuple):
    """Edges from the rows of one level to the T rows of the next: E edges, target after target."""

    rowptr: Tensor  # [T + 1]
    col: Tensor  # [E], sources; see ``stride``
    weight: Tensor | None  # [A, E], for each task; [1, E] where all tasks have the same
    stride: int = 1  # how many sources a row of the level below is, see `_with_self`
    has_self: bool = False  # whether the weights are all of a sum, the row's own share among them


class LevelRows(NamedTuple):
    """One level: C rows."""

    size: int  # C
    graph_ptr: Tensor  # [G + 1], graph g holds ``row[graph_ptr[g]:graph_ptr[g + 1]]`` …
    row: Tensor  # [P] … of the rows: all rows in order, where levels are graph by graph
    multiplicity: Tensor  # [P], how many nodes of the graph a row stands for
    hop: Links | None  # from the level below; None on the first
    parent: Tensor | None  # [C], the row below that each stems from, where a model reads it


class LevelTables(NamedTuple):
    """A data set as the tasks of a family see it: A tasks, G graphs."""

    tasks: Sequence[Task]
    model: Model  # of one of the tasks
    x: Tensor  # [A or 1, C, in] features of the first level's rows, or their codes [A or 1, C]
    y: Tensor  # [G] or [G, T]
    num_nodes: Tensor  # [G]
    levels: tuple[LevelRows, ...]
    exponent: Tensor  # [A], p of the scale of each task's layers …
    pooling: Tensor  # [A] … and of its readout
    is_max: bool
    is_set: bool  # whether the first level is a set of codes: its maxima are sums

    @property
    def reads_all_levels(self) -> bool:
        """Whether all levels are read out, the input too, and not the last alone."""
        return isinstance(self.model.head, LevelsHead)


def model_for(task: Task, graphs: GraphSet) -> Model:
    """Build the model of a task for a data set, with weights from the global generator."""
    model = task.build(features(graphs, task.features).width, graphs.num_outputs)
    assert isinstance(model, Model)
    return model


def level_tables(
    graphs: GraphSet,
    tasks: Sequence[Task],
    model: Model,
    device: torch.device,
    dtype: torch.dtype,
    *,
    per_graph: bool,
    max_dense_columns: int = 0,
    merging: bool = True,
) -> LevelTables:
    """Refine a data set level by level, as far as a model sees.

    Args:
        graphs: The data set.
        tasks: A family, see `lanes.py`.
        model: The model of one of them.
        device: Where.
        dtype: Type of features, weights and scales.
        per_graph: Whether rows stand for nodes of one graph each. The rows of a graph are then
            numbered one after the other, and so are the graphs'.
        max_dense_columns: One-hot features of at most so many columns are written out; of more,
            they stay codes.
        merging: Whether rows stand for nodes that are alike; otherwise every node has its own.
    """
    node_features = features(graphs, tasks[0].features)
    is_max = aggregation(tasks[0].aggr).kind == "maximum"
    whole = _whole(graphs, model.mixes in ("attention", "propagation"), device)
    node_ptr, csr = graphs.node_ptr.to(device), whole.by_target
    start = _alike(node_features) if merging else torch.arange(graphs.num_nodes)
    refined = levels(
        node_ptr, csr.rowptr, csr.col, start.to(device), model.rounds,
        ignore_counts=is_max, per_graph=per_graph,
    )  # fmt: skip
    last = refined[-1]  # the levels before it have fewer rows
    _log.info(
        "%s: %s graphs, %s nodes; nodes that a network of this depth cannot tell apart are "
        "computed once (%s remain)",
        graphs.name, f"{graphs.num_graphs:,}", f"{graphs.num_nodes:,}", f"{len(last.node):,}",
    )  # fmt: skip
    x = _features(node_features, device, dtype, max_dense_columns)
    models = [_described(task, graphs) for task in tasks]
    exponent, pooling = (
        torch.tensor([_exponent(m, of) for m in models], dtype=dtype, device=device)
        for of in ("exponent", "pooling")
    )
    is_propagated = model.mixes == "propagation" and node_features.width <= MAX_PROPAGATED_COLUMNS
    if is_propagated:
        # Its propagation has no weights: once for the data set, not once a step.
        refined = refined[-1:]
        looped = WeightedGraph(whole, loops=True)
        propagated = [_propagated(x, task, graphs, looped, dtype) for task in tasks]
        x = torch.stack([own[refined[0].node] for own in propagated])
    else:
        # A propagation's first weights hold the degrees that one round tells apart.
        refined = refined[1:] if model.mixes == "propagation" else refined
        x = x[refined[0].node].unsqueeze(0)
    is_set = is_max and merging and per_graph and not x.is_floating_point()
    degree = csr.rowptr.diff().to(dtype)
    made = [_level(refined[0], dtype, None, None)]
    for below, level in pairwise(refined):
        sets_here = is_set and below is refined[0]
        parent = level.parent if is_max or model.mixes == "attention" else None
        if model.mixes == "propagation":
            hop = _normalised(level, below, degree, exponent)
        elif model.mixes == "attention":
            hop = Links(level.rowptr, level.col, level.multiplicity.to(dtype).unsqueeze(0))
        elif is_max and not sets_here:
            hop = Links(level.rowptr, level.col, None)
        else:
            stride = 2 if model.mixes == "root_and_neighbours" else 1
            hop, parent = _with_self(level, below, exponent, stride, sets_here), None
        made.append(_level(level, dtype, hop, level.parent if model.keeps_parent else parent))
    if is_set:
        made[0] = made[0]._replace(multiplicity=made[0].multiplicity.clamp(max=1))
    return LevelTables(
        tasks, model, x, graphs.y.to(device), node_ptr.diff().to(dtype), tuple(made), exponent,
        pooling, is_max, is_set,
    )  # fmt: skip


def _described(task: Task, graphs: GraphSet) -> Model:
    """Build a model for what it says of itself, without weights."""
    with torch.device("meta"):
        return model_for(task, graphs)


def _exponent(model: Model, of: str) -> float:
    exponent = getattr(model, of)
    if exponent is None:
        assert aggregation(model.aggr).kind == "maximum"
        return 0.0  # unused: the maximum has no scale
    return float(exponent)


def _whole(graphs: GraphSet, looped: bool, device: torch.device) -> Graph:
    """Return all edges in the order of their targets, with a self-loop for each node if asked."""
    target = rows(graphs.rowptr.to(device), graphs.num_edges)
    whole = Graph(torch.stack([graphs.col.to(device).long(), target]), graphs.num_nodes)
    if not looped:
        return whole
    csr = with_self_loops(whole).graph.by_target
    target = rows(csr.rowptr, csr.col.shape[0])
    return Graph(torch.stack([csr.col, target]), graphs.num_nodes)


def _alike(node_features: Features) -> Tensor:
    """Return a number for each node, equal where the features are."""
    if node_features.dense is None and node_features.codes is not None:
        return node_features.codes
    number: Tensor = torch.unique(node_features.matrix(), dim=0, return_inverse=True)[1]
    return number


def _features(
    node_features: Features, device: torch.device, dtype: torch.dtype, max_dense_columns: int
) -> Tensor:
    """Return codes where they are many, else a matrix."""
    codes = node_features.codes if node_features.dense is None else None
    if codes is not None and node_features.width > max_dense_columns:
        return codes.to(device)
    return node_features.matrix().to(device, dtype)


def _propagated(
    x: Tensor, task: Task, graphs: GraphSet, looped: WeightedGraph, dtype: torch.dtype
) -> Tensor:
    model = _described(task, graphs).to(dtype)
    assert isinstance(model, SGC)
    return model.propagate(x, looped)


def _level(level: Level, dtype: torch.dtype, hop: Links | None, parent: Tensor | None) -> LevelRows:
    multiplicity = level.held_multiplicity.to(dtype)
    return LevelRows(len(level.node), level.graph_ptr, level.held, multiplicity, hop, parent)


def _normalised(level: Level, below: Level, degree: Tensor, exponent: Tensor) -> Links:
    """Return edges with the weights ``m_ij (d_i d_j)^(-p)``, of all nodes' degrees."""
    target = rows(level.rowptr, len(level.col))
    ends = degree[level.node][target] * degree[below.node][level.col]
    weight = ends.pow(-exponent.unsqueeze(1)) * level.multiplicity
    return Links(level.rowptr, level.col, weight, has_self=True)


def _with_self(
    level: Level, below: Level, exponent: Tensor, stride: int, ignore_counts: bool
) -> Links:
    """Return ``x_i + N_i^(-p) sum_j m_ij x_j`` as edges with weights.

    Each row's parent is among its sources: with a stride of 1 merged with neighbours of the same
    colour; with a stride of 2 neighbours are the even sources, and parents the odd ones.
    """
    size, num_edges = len(level.node), len(level.col)
    target = rows(level.rowptr, num_edges)
    times = torch.ones_like(level.multiplicity) if ignore_counts else level.multiplicity
    degree = times.new_zeros(size).index_add_(0, target, times)
    scale = degree.clamp(min=1).to(exponent.dtype).pow(-exponent.unsqueeze(1))  # [A, T]

    # Edges stand in the order of their targets and sources: where does each parent go?
    width = len(below.node) * stride
    key = target * width + level.col * stride
    parents = torch.arange(size, device=key.device)
    parent_key = parents * width + level.parent * stride + stride - 1
    at = torch.searchsorted(key, parent_key)
    is_new = torch.nn.functional.pad(key, (0, 1), value=-1)[at] != parent_key
    inserted = key.new_zeros(num_edges + 1).index_add_(0, at, is_new.long()).cumsum(0)
    place = torch.arange(num_edges, device=key.device) + inserted[:-1]
    rank = is_new.cumsum(0)
    parent_place = torch.where(is_new, at + rank - 1, torch.nn.functional.pad(place, (0, 1))[at])

    total = num_edges + int(inserted[-1])
    col, weight = key.new_empty(total), scale.new_zeros(len(scale), total)
    col[place], col[parent_place] = level.col * stride, level.parent * stride + stride - 1
    weight[:, place] = times * scale[:, target]
    weight[:, parent_place] += 1
    rowptr = level.rowptr + torch.nn.functional.pad(rank, (1, 0))
    return Links(rowptr, col, weight, stride, has_self=True)
