"""Batches of several lanes in one shape: cut on the device, without a word to Python."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..batch import EMPTY
from .batches import Inputs, Source

_SPARE = 64  # nodes of padding at least: so many share the edges of padding


class Size(NamedTuple):
    """The shape of a lane's padded batch: all numbers, and edges + nodes, are different."""

    graphs: int  # B, and one of padding behind them
    nodes: int
    edges: int


class Padded(NamedTuple):
    """Batches of L lanes, each as ``Inputs`` for B + 1 graphs, and what is real of them."""

    inputs: Inputs  # every tensor with the lanes in front
    node: Tensor  # [L, nodes], whether it is one of the data
    edge: Tensor  # [L, edges]
    graph: Tensor  # [L, B + 1]


def size_for(source: Source, orders: Tensor) -> Size:
    """Return the shape that holds every step of orders ``[..., B]``.

    Example:
        >>> from torch_geometric.data import Data
        >>> from gnn_vpa.graphs import GraphSet
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=0)
        >>> cpu = torch.device("cpu")
        >>> source = Source(GraphSet.from_pyg([pair] * 3), "ones", cpu, torch.float32)
        >>> size_for(source, torch.tensor([[0, 1], [2, EMPTY]]))
        Size(graphs=2, nodes=72, edges=8)
    """
    is_there = orders >= 0
    ids = orders.clamp(min=0)
    nodes = source.node_ptr.diff()[ids] * is_there + ~is_there  # an empty place takes one
    edges = source.edge_ptr.diff()[ids] * is_there
    most_nodes, most_edges = int(nodes.sum(-1).max()), int(edges.sum(-1).max())
    graphs = orders.shape[-1]
    size = Size(graphs, _rounded(most_nodes + _SPARE), _rounded(most_edges + 1))
    while len({size.nodes, size.edges, graphs + 1, size.nodes + size.edges}) < 4:
        size = size._replace(edges=size.edges + 1)
    return size


def _rounded(number: int) -> int:
    return -(-number // 8) * 8


def cut_padded(source: Source, ids: Tensor, size: Size, garbage: float = 0.0) -> Padded:
    """Put each lane's graphs side by side, and padding behind them.

    Nodes of padding belong to places without a graph, one each, and to the graph behind the last;
    edges of padding lead from one of these nodes to the next.

    Args:
        source: The data.
        ids: ``[L, B]``, ``EMPTY`` behind a lane's last graph.
        size: At least as large as needed.
        garbage: What the features of padding are: no result may depend on it.
    """
    device = ids.device
    lanes, places = ids.shape
    is_there = ids != EMPTY
    own = ids.clamp(min=0)
    count = is_there.sum(1, keepdim=True)
    first_node, first_edge = source.node_ptr[own], source.edge_ptr[own]
    nodes = (source.node_ptr[own + 1] - first_node) * is_there
    edges = (source.edge_ptr[own + 1] - first_edge) * is_there
    node, owner, is_node = _rows(nodes, first_node, size.nodes)
    edge, edge_owner, is_edge = _rows(edges, first_edge, size.edges)
    begin = nodes.cumsum(1) - nodes
    # Padding: the k-th node behind the last goes to the k-th free place, or behind all places.
    total = nodes.sum(1, keepdim=True)
    number = torch.arange(size.nodes, device=device)
    batch = torch.where(is_node, owner, (number - total + count).clamp(max=places))
    spare = total + places - count  # from here on nodes are of the graph behind the last
    turn = torch.arange(size.edges, device=device) % (size.nodes - spare - 1)
    shift = (begin - first_node).gather(1, edge_owner)
    ends = source.ends[:, edge]  # [2, L, edges]
    padding = torch.stack([spare + turn, spare + turn + 1])
    edge_index = torch.where(is_edge, ends + shift, padding).transpose(0, 1)
    counts = nodes + (~is_there).long()
    ptr = torch.cat([counts.new_zeros(lanes, 1), counts.cumsum(1)], 1)
    ptr = torch.cat([ptr, ptr.new_full((lanes, 1), size.nodes)], 1)
    inputs = Inputs(
        _filled(source.x(node.flatten()).view(lanes, size.nodes, -1), is_node, garbage),
        edge_index,
        batch,
        ptr,
        None if source.edge_attr is None else _filled(source.edge_attr[edge], is_edge, garbage),
        None if source.edge_weight is None else _filled(source.edge_weight[edge], is_edge, garbage),
        None if source.pos is None else _filled(source.pos[node], is_node, garbage),
    )
    beyond = torch.zeros(lanes, 1, dtype=torch.bool, device=device)
    return Padded(inputs, is_node, is_edge, torch.cat([is_there, beyond], 1))


def _rows(lengths: Tensor, first: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the row of the data in each place, whose it is among the graphs, and if it is real."""
    ends = lengths.cumsum(1)
    place = torch.arange(size, device=lengths.device).expand(len(lengths), size).contiguous()
    owner = torch.searchsorted(ends, place, right=True).clamp(max=lengths.shape[1] - 1)
    is_real = place < ends[:, -1:]
    row = (first - (ends - lengths)).gather(1, owner) + place
    return torch.where(is_real, row, 0), owner, is_real


def _filled(values: Tensor, is_real: Tensor, garbage: float) -> Tensor:
    shape = is_real.shape + (1,) * (values.dim() - is_real.dim())
    return torch.where(is_real.view(shape), values, garbage)
