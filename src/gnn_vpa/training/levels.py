"""A data set by levels, with the weights of one model's aggregation: what batches are made of."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..graphs import GraphSet, Level, features, levels
from ..nn import GAT, GCN, GIN, SGC, Looped
from ..nn._checks import one_hot
from ..nn._heads import LevelsHead
from ..nn._model import Model
from ..ops import Graph, aggregate
from ..ops._aggregate import weighted_sum
from ..ops._csr import CSR
from .resident import _NARROW, _kinds, _reach, _whole, log_merged
from .task import Task

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

_EXPONENTS = {"mean": 1.0, "vpa": 0.5}  # of N in the scale of a sum over N


class Rows(NamedTuple):
    """Sparse rows: row i has ``data[ptr[i]:ptr[i + 1]]`` in the columns ``col``."""

    ptr: Ints
    col: Ints
    data: Floats
    longest: int


class LevelTable(NamedTuple):
    """One level: its colours, and what a model sums over them.

    Attributes:
        size: Number of colours.
        own: Each colour's colour one level below; None where ``hop`` counts it.
        hop: Colours one level below, a row for each colour; None on the first level.
        held: Colours of each graph, and how many of its nodes have them.
        pool: By ``held``, what a colour weighs in the graph's readout.
    """

    size: int
    own: Ints | None
    hop: Rows | None
    held: Rows
    pool: Floats


class Levels(NamedTuple):
    """All levels of a data set that a model needs.

    Attributes:
        x: Features of the first level's colours: codes ``[C]``, or ``[C, in_channels]``.
        y: Class of each graph.
        levels: The levels, from the features on.
        first: Readout of the features of each graph, ``[G, in_channels]``; None where only the
            last level is read out.
        is_max: Whether layers and readout take the maximum, and are no sums.
        looped: Whether hops hold self-loops, and multiplicities in the place of weights.
        stride: How many results a row sends on. Where there are two (GCN), a hop's even columns
            are those for neighbours, and the odd ones those for the row itself.
    """

    x: Tensor
    y: Tensor
    levels: list[LevelTable]
    first: Tensor | None
    is_max: bool
    looped: bool
    stride: int


def can_layer(model: Model) -> bool:
    """Say whether batches by levels serve a model."""
    narrow = isinstance(model, SGC) and model.in_channels <= _NARROW
    return narrow or type(model) in (GIN, GCN, GAT)


def by_levels(graphs: GraphSet, task: Task, model: Model, dtype: torch.dtype) -> Levels:
    """Refine a data set level by level, as far as a model sees."""
    own = features(graphs, task.features)
    is_max, looped = task.aggr == "max", isinstance(model, GAT | SGC)
    whole = _whole(graphs, looped, torch.device("cpu"))
    csr = whole.by_target
    found = levels(graphs.node_ptr, csr.rowptr, csr.col, _kinds(own), _reach(model), sets=is_max)
    log_merged(graphs, len(found[-1].node))  # the levels before it have fewer
    x = own.matrix().to(dtype) if own.dense is not None or own.codes is None else own.codes
    if isinstance(model, SGC):
        # Its propagation has no weights: once for the data set, not once a step.
        x, found = model.propagate(x, Looped(whole)), found[-1:]
    power = _EXPONENTS.get(task.aggr, 0.0)
    stride = 2 if isinstance(model, GCN) and not is_max else 1
    made = []
    for number, level in enumerate(found):
        linked = None
        if number > 0:
            below = len(found[number - 1].node)
            linked = (
                _rows(level.rowptr, level.col, level.times, dtype)
                if is_max or looped
                else _sums(level, below, power, stride, dtype)
            )
        held = _rows(level.graph_ptr, level.colour, level.nodes, dtype)
        size = np.add.reduceat(np.append(held.data, 0), held.ptr[:-1]).clip(min=1)
        pool = held.data * np.repeat(size**-power, np.diff(held.ptr)).astype(held.data.dtype)
        below_own = level.own.numpy() if is_max or looped else None
        made.append(LevelTable(len(level.node), below_own, linked, held, pool))
    x = x[found[0].node]
    first = None
    if isinstance(model.head, LevelsHead):
        first = _pooled(
            x if x.is_floating_point() else one_hot(x, own.width, dtype), made[0], is_max
        )
    return Levels(x, graphs.y, made, first, is_max, looped, stride)


def _pooled(x: Tensor, table: LevelTable, is_max: bool) -> Tensor:
    """Read the features of each graph out."""
    ptr, col, pool = (torch.from_numpy(a) for a in (table.held.ptr, table.held.col, table.pool))
    by_graph = Graph.of(CSR(ptr, col, None, table.held.longest), None, (len(x), len(ptr) - 1))
    return aggregate(x, by_graph, "max") if is_max else weighted_sum(x, by_graph, pool)


def _rows(ptr: Tensor, col: Tensor, data: Tensor, dtype: torch.dtype) -> Rows:
    longest = int(ptr.diff().max()) if len(ptr) > 1 else 0
    return Rows(ptr.numpy(), col.numpy(), data.to(dtype).numpy(), longest)


def _sums(level: Level, below: int, power: float, stride: int, dtype: torch.dtype) -> Rows:
    """Return ``x_i + N_i^(-p) sum_j m_ij x_j`` as one weighted sum."""
    from scipy.sparse import coo_array

    size = len(level.node)
    row = torch.repeat_interleave(level.rowptr.diff())
    degree = torch.zeros(size, dtype=torch.float64).index_add_(0, row, level.times.double())
    scale = degree.clamp(min=1).pow(-power)
    target = torch.cat([row, torch.arange(size)]).numpy()
    source = torch.cat([level.col * stride, level.own * stride + stride - 1]).numpy()
    weight = torch.cat([level.times * scale[row], torch.ones(size, dtype=scale.dtype)]).numpy()
    matrix = coo_array((weight, (target, source)), shape=(size, below * stride)).tocsr()
    ptr, col, data = (torch.from_numpy(a) for a in (matrix.indptr, matrix.indices, matrix.data))
    return _rows(ptr.long(), col.long(), data, dtype)
