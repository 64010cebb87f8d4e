"""Many steps' batches at once, each of one shape: what captured steps read.

A batch is a list of graphs for each lane. A lane owns as many blocks of rows as its nodes need, and
a step has room for the same number of blocks and edges, so that a captured step fits all batches
of a size. Rows that hold no node belong to no graph; edges that are none belong to no row.

Nothing here looks at a value on the host, and a call plans as many steps as memory allows: its
hundred small kernels are shared by all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..nn import Blocks, Looped, Scaled, WithSelf
from ..ops import Graph, backend
from ..ops._csr import CSR
from .batch import Batch
from .lanes import Form, exponent_of, form_of
from .resident import Resident
from .task import Task

_Edges = tuple[
    Tensor | None, Tensor | None, Tensor | None, Tensor | None, Tensor | None, Tensor | None
]


class Shape(NamedTuple):
    """Room of a step, for all lanes together."""

    blocks: int
    size: int  # rows of a block
    most: int  # blocks of a lane, at most
    edges: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.blocks * self.size


class Tables(NamedTuple):
    """A data set as planning reads it. N nodes, G graphs, E edges with those to oneself."""

    data: Resident
    x: Tensor  # features of all nodes; those of SGC's forms one after the other
    shift: Tensor  # [L], where each lane's features begin in x
    exponent: Tensor  # [L], p of each lane's scale N^(-p), see `lanes.py`
    graph: Graph | None  # with one more edge, the first of its row, where GIN adds a node itself
    degree: Tensor | None  # [N], neighbours of each node, multiplicities counted
    size: Tensor  # [G], nodes of each graph, multiplicities counted
    form: Form

    @property
    def owned(self) -> bool:
        """Whether the first edge of every row is the node's own."""
        return self.form == "gin"


def tables(residents: dict[Task, Resident], tasks: Sequence[Task], dtype: torch.dtype) -> Tables:
    """Prepare a data set for planning.

    Args:
        residents: The data set as each of the tasks sees it; they may differ in ``x`` alone.
        tasks: The task of each lane.
        dtype: Type of the scales.
    """
    data, form = next(iter(residents.values())), form_of(tasks[0])
    device = data.x.device
    x = torch.cat([own.x for own in residents.values()]) if len(residents) > 1 else data.x
    begin = {task: number * len(data.x) for number, task in enumerate(residents)}
    shift = torch.tensor([begin.get(task, 0) for task in tasks], device=device)
    exponent = torch.tensor([exponent_of(task) for task in tasks], dtype=dtype, device=device)
    graph, degree = data.graph, None
    if graph is not None:
        degree = graph.count.to(dtype)
    if graph is not None and form == "gin":
        graph = _with_own_edges(graph)
    member = torch.repeat_interleave(data.node_ptr.diff(), output_size=len(data.x))
    times = torch.ones_like(member, dtype=dtype) if data.times is None else data.times.to(dtype)
    size = torch.zeros(len(data.y), dtype=dtype, device=device).index_add_(0, member, times)
    return Tables(data, x, shift, exponent, graph, degree, size, form)


def _with_own_edges(graph: Graph) -> Graph:
    """Put an edge to itself in front of every row."""
    nodes = graph.num_targets
    own = torch.arange(nodes, device=graph.device)
    csr = graph.by_target
    assert csr.edge is None
    target = torch.repeat_interleave(csr.rowptr.diff(), output_size=len(csr.col))
    ends = torch.stack([torch.cat([own, csr.col.long()]), torch.cat([own, target])])
    order = ends[1].sort(stable=True).indices
    times = graph.multiplicity
    if times is not None:
        times = torch.cat([torch.ones_like(own, dtype=times.dtype), times])[order]
    return Graph(ends[:, order], nodes, times)


class Plan(NamedTuple):
    """K steps, each with L lanes of B graphs, C blocks and R rows, E edges in all.

    What a model does not need is None.
    """

    x: Tensor  # [K, R] or [K, R, in]
    nodes: Tensor  # [K, R]
    lane: Tensor  # [K, C], of each block
    block: Tensor  # [K, L + 1], the first block of each lane
    y: Tensor  # [K, L * B]
    real: Tensor  # [K, L, B]
    ptr: Tensor  # [K, L * B + 1], the readout by graph …
    row: Tensor  # [K, R]
    back_row: Tensor  # [K, R + 1], … and by row
    member: Tensor  # [K, R]
    times: Tensor | None  # [K, R], multiplicities of the readout
    pool: Tensor | None  # [K, L * B], its scale
    rowptr: Tensor | None  # [K, R + 1], edges by target …
    col: Tensor | None  # [K, E]
    weight: Tensor | None  # [K, E], multiplicities, or all of an edge's weight
    back_ptr: Tensor | None  # … and by source
    back_col: Tensor | None
    back_edge: Tensor | None
    scale: Tensor | None  # [K, R], scale or power of each target

    def step(self, number: int) -> "Plan":
        """Return one of the steps, without the axis K."""
        return Plan(*(None if part is None else part[number] for part in self))  # type: ignore[arg-type]


def plan(known: Tables, ids: Tensor, shape: Shape) -> Plan:
    """Plan K steps.

    Args:
        known: The data set.
        ids: The graphs of each step and lane, ``[K, L, B]``, ``EMPTY`` where there is none.
        shape: The steps' room; what does not fit is cut off, so it must be large enough.
    """
    data = known.data
    steps, rows, device = len(ids), shape.rows, ids.device
    real, safe = ids >= 0, ids.clamp(min=0)
    first = data.node_ptr[safe]
    count = torch.where(real, data.node_ptr[safe + 1] - first, 0)
    end = count.cumsum(2)
    block = _pointers(blocks(end[..., -1], shape.size))
    lane, _ = _spread(block.diff(), shape.blocks)
    lane = lane.clamp(max=ids.shape[1] - 1)
    row_lane = lane.repeat_interleave(shape.size, dim=1)

    begin = (end - count + (block[:, :-1] * shape.size).unsqueeze(2)).flatten(1)
    owner, place = _spread(count.flatten(1), rows)  # of the rows that hold a node, in order
    there = owner < begin.shape[1]
    row = torch.where(there, _ended(begin).gather(1, owner) + place, rows)
    held = torch.zeros(steps, rows + 1, dtype=torch.bool, device=device)
    held = held.scatter_(1, row, there)[:, :-1]  # what is not there writes behind the last
    member_node = torch.where(there, _ended(first.flatten(1)).gather(1, owner) + place, 0)
    node = torch.zeros(steps, rows + 1, dtype=torch.int64, device=device)
    node = node.scatter_(1, row, member_node)[:, :-1]

    times = None if data.times is None else torch.where(there, data.times[member_node], 0)
    nodes = held.float() if data.times is None else torch.where(held, data.times[node], 0)
    pool = scale = None
    if known.form != "max":
        pool = _power(known.size[safe], _pooling(known).unsqueeze(1)).flatten(1)
        scale = _scale(known, node, row_lane)
    edges: _Edges = (None,) * 6
    if known.graph is not None:
        edges = _edges(known, node, held, scale, shape.edges)
    return Plan(
        known.x[node + known.shift[row_lane]],
        nodes,
        lane.int(),
        block,
        data.y[safe].flatten(1),
        real,
        _pointers(count.flatten(1)),
        row.clamp(max=rows - 1).int(),
        _pointers(held),
        owner.clamp(max=begin.shape[1] - 1).int(),
        times,
        pool,
        *edges,
        scale=None if known.owned else scale,
    )


def blocks(rows: Tensor, size: int) -> Tensor:
    """Return how many blocks so many rows need: at least one.

    Example:
        >>> blocks(torch.tensor([0, 64, 65]), 64)
        tensor([1, 1, 2])
    """
    return ((rows + size - 1) // size).clamp(min=1)


def _spread(lengths: Tensor, room: int) -> tuple[Tensor, Tensor]:
    """Give each of ``lengths [K, R]`` as many positions of ``room``, one behind the other.

    Returns:
        The owner of each position, ``R`` where there is none, and its place among the owner's:
        ``[K, room]``.
    """
    steps, rows = lengths.shape
    end = _running(lengths)
    filled = torch.cat([lengths, room - end[:, -1:]], dim=1)
    owner = torch.repeat_interleave(filled.flatten(), output_size=steps * room).view(steps, room)
    owner -= torch.arange(0, steps * (rows + 1), rows + 1, device=lengths.device).unsqueeze(1)
    begin = torch.nn.functional.pad(end, (1, 0))
    return owner, torch.arange(room, device=lengths.device) - begin.gather(1, owner)


def _pointers(lengths: Tensor) -> Tensor:
    """Return where each begins, and where the last one ends: ``[K, R] -> [K, R + 1]``."""
    steps, rows = lengths.shape
    pointers = torch.zeros(steps, rows + 1, dtype=torch.int32, device=lengths.device)
    pointers[:, 1:] = _running(lengths)
    return pointers


def _running(numbers: Tensor) -> Tensor:
    """Return running sums of each row, ``[K, R]``."""
    # One scan over everything uses a whole GPU, a scan of each row a part of it for every row.
    total = numbers.flatten().cumsum(0).view_as(numbers)
    return total - (total[:, :1] - numbers[:, :1].long())


def _pooling(known: Tables) -> Tensor:
    """Return the readout's exponents: attention's and SGC's forms read out by sum or by vpa."""
    if known.form == "sgc":
        return 1 - 2 * known.exponent  # p = 1/2 is the default form, 1/4 is vpa
    return known.exponent


def _power(numbers: Tensor, exponent: Tensor) -> Tensor:
    """Return ``N^(-p)``, and 0 for 0."""
    some = torch.where(numbers > 0, numbers, 1)
    return torch.where(numbers > 0, some.pow(-exponent), 0)


def _scale(known: Tables, node: Tensor, lane: Tensor) -> Tensor | None:
    """Return ``N^(-p)`` of each row's node, or ``p`` itself where the model takes that."""
    if known.degree is None:
        return None
    exponent = known.exponent[lane]
    return exponent if known.data.looped else _power(known.degree[node], exponent)


def _edges(known: Tables, node: Tensor, held: Tensor, scale: Tensor | None, room: int) -> _Edges:
    assert known.graph is not None
    data, whole, back = known.data, known.graph.by_target, known.graph.by_source
    full = data.looped and backend(node) != "triton"
    rowptr, col, position, real, owner = _gathered(whole, node, held, room, full)
    back_ptr, back_col, back_position, _, _ = _gathered(back, node, held, room, full)
    times = known.graph.multiplicity
    weight = None if times is None else torch.where(real, times[position], 0)
    if known.owned:
        assert scale is not None
        scaled = _ended(scale).gather(1, owner)
        scaled = scaled if weight is None else scaled * weight
        # The first edge of a row is the node's own, and weighs 1.
        own = position == _ended(whole.rowptr[node]).gather(1, owner)
        weight = torch.where(real, torch.where(own, 1.0, scaled), 0)
    edge = None
    if weight is not None or data.numbered:
        assert back.edge is not None
        # An edge's number is its place among the edges of its target, behind those before it.
        place = back.edge[back_position] - whole.rowptr[back.col[back_position].long()]
        number = torch.arange(room, device=node.device)
        edge = torch.where(real, place + rowptr.gather(1, back_col.long()), number).int()
    return rowptr, col, weight, back_ptr, back_col, edge


def _gathered(
    csr: CSR, node: Tensor, held: Tensor, room: int, full: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return pointers, columns, where they stood, which are real, and their rows.

    ``full``: the last row, which holds no node, owns the edges that are none, for operations that
    want a row for every edge.
    """
    rows = node.shape[1]
    first = csr.rowptr[node].long()
    length = torch.where(held, csr.rowptr[node + 1] - first, 0)
    rowptr = _pointers(length)
    owner, place = _spread(length, room)
    real = owner < rows
    position = torch.where(real, _ended(first).gather(1, owner) + place, 0)
    shift = _ended(torch.arange(rows, device=node.device) - node).gather(1, owner)
    col = torch.where(real, csr.col[position] + shift, rows - 1).int()
    if full:
        rowptr[:, -1:] = room
    return rowptr, col, position, real, owner


def _ended(values: Tensor) -> Tensor:
    """Add a zero for the edges that are none: ``[K, R] -> [K, R + 1]``."""
    return torch.nn.functional.pad(values, (0, 1))


def batch_of(known: Tables, step: Plan, most: int) -> Batch:
    """Return one planned step as a model takes it; ``most``: blocks of a lane."""
    rows, graphs = len(step.nodes), len(step.y)
    readout: Graph | Scaled = Graph.of(
        CSR(step.ptr, step.row, None, known.data.largest),
        CSR(step.back_row, step.member, None, 1),
        (rows, graphs),
        multiplicity=step.times,
    )
    if step.pool is not None:
        assert isinstance(readout, Graph)
        readout = Scaled(readout, step.pool)
    graph = _graph_of(known, step, rows)
    nodes = Blocks(step.nodes, step.lane, step.block, most)
    return Batch(step.x, graph, readout, nodes, step.y, step.real)


def _graph_of(known: Tables, step: Plan, rows: int) -> Graph | Scaled | WithSelf | Looped | None:
    if step.rowptr is None or known.graph is None:
        return None
    assert step.col is not None
    assert step.back_ptr is not None
    assert step.back_col is not None
    whole, back = known.graph.by_target.longest, known.graph.by_source.longest
    if known.data.looped and backend(step.col) != "triton":
        whole = back = len(step.col)  # see `_gathered`
    graph = Graph.of(
        CSR(step.rowptr, step.col, None, whole),
        CSR(step.back_ptr, step.back_col, step.back_edge, back),
        (rows, rows),
        multiplicity=None if known.owned else step.weight,
    )
    if known.owned:
        assert step.weight is not None
        return WithSelf(graph, step.weight)
    if known.data.looped:
        return Looped(graph, step.scale)
    return graph if step.scale is None else Scaled(graph, step.scale)
