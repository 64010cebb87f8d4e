"""A data set by levels, graph after graph: what steps on a GPU are planned from.

At level ``l`` a row stands for all nodes of one graph that ``l`` layers cannot tell apart. Rows of
different graphs are never one: a batch is then made of ranges of these tables, and nothing is
sorted or compared in a step. (On the CPU, where that is cheap, `levels.py` shares them.)
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from ..graphs import Features, GraphSet, Level, features, levels
from ..nn import GAT, GCN, SGC, Looped
from ..nn._heads import LevelsHead
from ..nn._model import Model
from ..ops import Graph
from ..ops._csr import CSR, rows
from .lanes import Form, exponent_of, form_of
from .resident import _NARROW, _kinds, _reach, _whole, log_merged, model_for
from .task import Task

_SHORT = 64  # columns up to which a matrix product is quicker than a lookup and its backward pass


class Links(NamedTuple):
    """Edges from S sources, rows of one level, to the T rows of the next: E edges.

    They stand graph after graph, grouped by target and by source. Where there is one entry more
    than edges, it is what a place reads that holds nothing.
    """

    ptr: Tensor  # [G + 1], the edges of each graph, in both groupings
    rowptr: Tensor  # [T + 1], edges of each target
    col: Tensor  # [E + 1], sources by target
    weight: Tensor | None  # [A, E + 1], for each task; [1, E + 1] for all alike
    back_ptr: Tensor  # [S * stride + 1], edges of each source
    back_col: Tensor  # [E + 1], targets by source
    back_edge: Tensor  # [E + 1], and where these edges stand by target
    longest: int
    back_longest: int
    stride: int  # how many sources a row of the level below is


class Rows(NamedTuple):
    """One level: C rows, graph after graph."""

    ptr: Tensor  # [G + 1], the rows of each graph
    largest: int  # rows of a graph, at most
    times: Tensor  # [C + 1], how many nodes a row stands for
    hop: Links | None  # from the level below
    own: Links | None  # the row below that each stems from, where ``hop`` does not hold it

    @property
    def links(self) -> list[Links]:
        """The links that there are."""
        return [links for links in (self.hop, self.own) if links is not None]


class Tables(NamedTuple):
    """A data set as the tasks of a family see it."""

    tasks: Sequence[Task]
    form: Form
    x: Tensor  # [A, C + 1, ...], features of the first level's rows; [1, …] for all tasks alike
    y: Tensor  # [G]
    size: Tensor  # [G], number of nodes
    levels: tuple[Rows, ...]
    read: int  # the first level that is read out
    power: Tensor  # [A], p of each task's scale N^(-p), see `lanes.py` …
    pooling: Tensor  # [A], … and that of its readout
    sets: bool  # whether the first level is a set of codes: its maxima are sums


def tables(
    graphs: GraphSet,
    tasks: Sequence[Task],
    model: Model,
    device: torch.device,
    dtype: torch.dtype,
    merging: bool = True,
) -> Tables:
    """Refine a data set level by level, as far as a model sees.

    Args:
        graphs: The data set.
        tasks: A family, see `lanes.py`.
        model: The model of one of them.
        device: Where.
        dtype: Type of features, weights and scales.
        merging: Whether rows stand for nodes that are alike; otherwise every node has its own.
    """
    form, own = form_of(tasks[0]), features(graphs, tasks[0].features)
    whole = _whole(graphs, isinstance(model, GAT | SGC), device)
    node_ptr, csr = graphs.node_ptr.to(device), whole.by_target
    kinds = _kinds(own) if merging else torch.arange(graphs.num_nodes)
    found = levels(
        node_ptr, csr.rowptr, csr.col, kinds.to(device), _reach(model),
        sets=form == "max", apart=True,
    )  # fmt: skip
    log_merged(graphs, len(found[-1].node))
    x = _features(own, device, dtype)
    if isinstance(model, SGC) and own.width <= _NARROW:
        # Its propagation has no weights: once for the data set, not once a step.
        found = found[-1:]
        x = torch.stack([_propagated(x, t, graphs, whole, dtype)[found[0].node] for t in tasks])
    else:
        found = found[1:] if isinstance(model, SGC) else found  # its weights hold degrees
        x = x[found[0].node].unsqueeze(0)
    sets = form == "max" and merging and not x.is_floating_point()
    power = torch.tensor([exponent_of(task) for task in tasks], dtype=dtype, device=device)
    made = [_rows(found[0], dtype)]
    for below, level in pairwise(found):
        linked = _Linked(level, below)
        hop, stems = linked.links(None), None
        if form == "sgc":
            hop = linked.normalised(csr.rowptr.diff().to(dtype), power)
        elif form in ("gin", "gcn") or (sets and below is found[0]):
            times = torch.ones_like(level.times) if sets else level.times
            hop = linked.with_self(times, power, 2 if isinstance(model, GCN) else 1)
        else:
            stems = linked.own()
            if form == "gat":
                hop = linked.links(level.times.to(dtype).unsqueeze(0))
        made.append(_rows(level, dtype, hop, stems))
    if sets:
        made[0] = made[0]._replace(times=made[0].times.clamp(max=1))
    pooling = 1 - 2 * power if form == "sgc" else power  # p = 1/2 is SGC's default, 1/4 is vpa
    return Tables(
        tasks,
        form,
        torch.nn.functional.pad(x, (0,) * (2 * x.dim() - 4) + (0, 1)),
        graphs.y.to(device),
        node_ptr.diff().to(dtype),
        tuple(made),
        0 if isinstance(model.head, LevelsHead) else len(made) - 1,
        power,
        pooling,
        sets,
    )


def _features(own: Features, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Return codes where they are many, else a matrix."""
    coded = own.dense is None and own.codes is not None and own.width > _SHORT
    return own.codes.to(device) if coded else own.matrix().to(device, dtype)  # type: ignore[union-attr]


def _propagated(
    x: Tensor, task: Task, graphs: GraphSet, whole: Graph, dtype: torch.dtype
) -> Tensor:
    with torch.random.fork_rng(devices=[]):
        model = model_for(task, graphs).to(dtype)
    assert isinstance(model, SGC)
    return model.propagate(x, Looped(whole))


def _rows(
    level: Level, dtype: torch.dtype, hop: Links | None = None, own: Links | None = None
) -> Rows:
    ptr = level.graph_ptr
    return Rows(ptr, int(ptr.diff().max()), _ended(level.nodes.to(dtype)), hop, own)


class _Linked:
    """The links of a level to the one below."""

    def __init__(self, level: Level, below: Level) -> None:
        self.level, self.below = level, below
        self.row = rows(level.rowptr, len(level.col))  # the target of each edge
        self.size = len(level.node)

    def links(self, weight: Tensor | None) -> Links:
        """Return the edges to neighbours' colours, with weights ``[A, E]``."""
        return self._grouped(self.level.rowptr, self.level.col, weight, 1)

    def own(self) -> Links:
        """Return one edge for each row, to the row it stems from."""
        return self._grouped(
            torch.arange(self.size + 1, device=self.row.device), self.level.own, None, 1
        )

    def normalised(self, degree: Tensor, power: Tensor) -> Links:
        """Return edges with the weights ``m_ij (d_i d_j)^(-p)``, of all nodes' degrees."""
        ends = degree[self.level.node][self.row] * degree[self.below.node][self.level.col]
        return self.links(ends.pow(-power.unsqueeze(1)) * self.level.times)

    def with_self(self, times: Tensor, power: Tensor, stride: int) -> Links:
        """Return ``x_i + N_i^(-p) sum_j m_ij x_j`` as edges with weights.

        With a stride of 2 neighbours' are the even sources, and the row's own the odd ones.
        """
        level, target = self.level, torch.arange(self.size, device=self.row.device)
        degree = times.new_zeros(self.size).index_add_(0, self.row, times)
        scale = degree.clamp(min=1).to(power.dtype).pow(-power.unsqueeze(1))  # [A, T]
        weight = torch.cat([torch.ones_like(scale), times * scale[:, self.row]], 1)
        source = torch.cat([level.own * stride + stride - 1, level.col * stride])
        order = torch.cat([target, self.row]).sort(stable=True).indices
        rowptr = level.rowptr + torch.arange(self.size + 1, device=target.device)
        return self._grouped(rowptr, source[order], weight[:, order], stride)

    def _grouped(self, rowptr: Tensor, col: Tensor, weight: Tensor | None, stride: int) -> Links:
        sizes = (len(self.below.node) * stride, self.size)
        csr = CSR(rowptr.int(), col.int(), None, len(col))
        back = Graph.of(csr, None, sizes).by_source
        assert back.edge is not None
        return Links(
            rowptr[self.level.graph_ptr],
            csr.rowptr,
            _ended(csr.col),
            None if weight is None else _ended(weight),
            back.rowptr,
            _ended(back.col),
            _ended(back.edge),
            int(csr.rowptr.diff().max()),
            back.longest,
            stride,
        )


def _ended(values: Tensor) -> Tensor:
    """Put a 0 behind the last."""
    return torch.nn.functional.pad(values, (0, 1))
