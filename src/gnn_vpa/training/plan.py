"""Many steps' batches at once, each of one shape: what captured steps read.

A batch is a list of graphs for each lane. Every lane has the same number of slots, and the step
room for the same number of edges, so that a captured step fits all batches of a size. Slots that
hold no node belong to one more graph of their lane, which nobody asks for; edges that are none
lead from the last slot, which never holds a node, to itself.

Nothing here looks at a value on the host, and a call plans as many steps as memory allows: its
hundred small kernels are shared by all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..nn import Looped, Scaled, WithSelf
from ..ops import Graph
from ..ops._csr import CSR
from .batch import Batch
from .lanes import Form, exponent_of, form_of
from .resident import Resident
from .task import Task

_Edges = tuple[
    Tensor | None, Tensor | None, Tensor | None, Tensor | None, Tensor | None, Tensor | None
]


class Shape(NamedTuple):
    """Room of a step: slots in each lane, and edges in all lanes together."""

    slots: int
    edges: int


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
    """K steps, each with L lanes of S slots (R = L * S rows) and B + 1 graphs, E edges in all.

    What a model does not need is None.
    """

    x: Tensor  # [K, R] or [K, R, in]
    nodes: Tensor  # [K, R]
    ptr: Tensor  # [K, L * (B + 1) + 1], the graphs' slots
    member: Tensor  # [K, R], the slots' graphs
    y: Tensor  # [K, L * (B + 1)]
    real: Tensor  # [K, L, B + 1]
    pool: Tensor | None  # [K, L * (B + 1)], scale of the readout
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
    steps, lanes, width = ids.shape
    rows, device = lanes * shape.slots, ids.device
    real, safe = ids >= 0, ids.clamp(min=0)
    begin = data.node_ptr[safe]
    count = torch.where(real, data.node_ptr[safe + 1] - begin, 0)
    end = count.cumsum(2)
    # One more graph for each lane has the slots that are left.
    lengths = torch.cat([count, shape.slots - end[..., -1:]], dim=2)
    owner = torch.repeat_interleave(lengths.flatten(), output_size=steps * rows)
    offset = _closed(begin - (end - count), 0).flatten()[owner].view(steps, lanes, shape.slots)
    held = _closed(real, False).flatten()[owner].view(steps, rows)
    node = offset + torch.arange(shape.slots, device=device)
    node = torch.where(held, node.view(steps, rows), 0)

    per_step = torch.arange(0, steps * lanes * (width + 1), lanes * (width + 1), device=device)
    member = owner.view(steps, rows) - per_step.unsqueeze(1)
    ptr = torch.zeros(steps, lanes * (width + 1) + 1, dtype=torch.int32, device=device)
    ptr[:, 1:] = lengths.flatten(1).cumsum(1)
    nodes = held.float() if data.times is None else torch.where(held, data.times[node], 0)
    pool = scale = None
    if known.form != "max":
        pool = _closed(_power(known.size[safe], _pooling(known)), 1.0).flatten(1)
        scale = _scale(known, node)
    edges: _Edges = (None,) * 6
    if known.graph is not None:
        edges = _edges(known, node, held, scale, shape.edges)
    return Plan(
        known.x[node + known.shift.repeat_interleave(shape.slots)],
        nodes,
        ptr,
        member.int(),
        _closed(data.y[safe], 0).flatten(1),
        _closed(real, False),
        pool,
        *edges,
        scale=None if known.owned else scale,
    )


def _closed(values: Tensor, last: float) -> Tensor:
    """Add the value of each lane's one more graph: ``[K, L, B] -> [K, L, B + 1]``."""
    return torch.nn.functional.pad(values, (0, 1), value=last)


def _pooling(known: Tables) -> Tensor:
    """Return the readout's exponents: attention's and SGC's forms read out by sum or by vpa."""
    if known.form == "sgc":
        return 1 - 2 * known.exponent  # p = 1/2 is the default form, 1/4 is vpa
    return known.exponent


def _power(numbers: Tensor, exponent: Tensor) -> Tensor:
    """Return ``N^(-p)`` with each lane's own ``p``, and 0 for 0: ``[K, L, …]``."""
    some = torch.where(numbers > 0, numbers, 1)
    power = some.pow(-exponent.to(some).view(1, -1, *(1,) * (numbers.dim() - 2)))
    return torch.where(numbers > 0, power, 0)


def _scale(known: Tables, node: Tensor) -> Tensor | None:
    """Return ``N^(-p)`` of each row's node, or ``p`` itself where the model takes that."""
    if known.degree is None:
        return None
    steps, rows = node.shape
    lanes, exponent = len(known.exponent), known.exponent
    if known.form in ("gat", "sgc"):
        return exponent.repeat_interleave(rows // lanes).expand(steps, rows).contiguous()
    degree = known.degree[node].view(steps, lanes, rows // lanes)
    return _power(degree, exponent).view(steps, rows)


def _edges(known: Tables, node: Tensor, held: Tensor, scale: Tensor | None, room: int) -> _Edges:
    assert known.graph is not None
    data, whole, back = known.data, known.graph.by_target, known.graph.by_source
    rowptr, col, position, real, owner = _gathered(whole, node, held, room, data.looped)
    back_ptr, back_col, back_position, _, _ = _gathered(back, node, held, room, data.looped)
    times = known.graph.multiplicity
    weight = None if times is None else torch.where(real, times[position], 0)
    if known.owned:
        assert scale is not None
        scaled = _ended(scale).flatten()[owner]
        scaled = scaled if weight is None else scaled * weight
        # The first edge of a row is the node's own, and weighs 1.
        weight = torch.where(position == _ended(whole.rowptr[node]).flatten()[owner], 1.0, scaled)
        weight = torch.where(real, weight, 0)
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

    ``full``: the last row, which holds no node, owns the edges that are none.
    """
    steps, rows = node.shape
    device = node.device
    first = csr.rowptr[node].long()
    length = torch.where(held, csr.rowptr[node + 1] - first, 0)
    end = length.cumsum(1)
    rowptr = torch.zeros(steps, rows + 1, dtype=torch.int32, device=device)
    rowptr[:, 1:] = end
    lengths = torch.cat([length, room - end[:, -1:]], dim=1)
    owner = torch.repeat_interleave(lengths.flatten(), output_size=steps * room)
    owner = owner.view(steps, room)
    number = torch.arange(room, device=device)
    slot = torch.arange(rows, device=device)
    position = _ended(first - (end - length)).flatten()[owner] + number
    shift = _ended(slot - node).flatten()[owner]
    real = number < end[:, -1:]
    position = torch.where(real, position, 0)
    col = torch.where(real, csr.col[position] + shift, rows - 1).int()
    if full:
        rowptr[:, -1:] = room
    return rowptr, col, position, real, owner


def _ended(values: Tensor) -> Tensor:
    """Add a zero for the edges that are none: ``[K, R] -> [K, R + 1]``."""
    return torch.nn.functional.pad(values, (0, 1))


def batch_of(known: Tables, step: Plan) -> Batch:
    """Return one planned step as a model takes it."""
    rows, graphs = len(step.nodes), len(step.y)
    slot = torch.arange(rows + 1, dtype=torch.int32, device=step.nodes.device)
    counted = known.data.times is not None
    readout: Graph | Scaled = Graph.of(
        CSR(step.ptr, slot[:-1], None, rows),
        CSR(slot, step.member, None, 1),
        (rows, graphs),
        multiplicity=step.nodes if counted else None,
    )
    if step.pool is not None:
        assert isinstance(readout, Graph)
        readout = Scaled(readout, step.pool)
    graph = _graph_of(known, step, rows)
    return Batch(step.x, graph, readout, step.nodes, step.y, step.real)


def _graph_of(known: Tables, step: Plan, rows: int) -> Graph | Scaled | WithSelf | Looped | None:
    if step.rowptr is None or known.graph is None:
        return None
    assert step.col is not None
    assert step.back_ptr is not None
    assert step.back_col is not None
    whole, back = known.graph.by_target.longest, known.graph.by_source.longest
    if known.data.looped:
        whole = back = len(step.col)
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
