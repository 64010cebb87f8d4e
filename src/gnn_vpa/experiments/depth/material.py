"""The graphs of a data set, alike nodes merged, cut into batches for lanes that see the same."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ...graphs import FeatureKind, GraphSet, features, merge
from ...nn import Scaled
from ...ops import Aggregation, Graph


class Batch(NamedTuple):
    """Some graphs, as many times as there are lanes: what a ``DeepGCN`` is called with.

    Attributes:
        x: Features, or codes, of the merged nodes: ``[L * rows, ...]``.
        graph: The edges, scaled as each lane aggregates.
        readout: From nodes to graphs, likewise.
        nodes: How often each node occurs, ``[L * rows]``.
    """

    x: Tensor
    graph: Graph | Scaled
    readout: Graph | Scaled
    nodes: Tensor


@dataclass(frozen=True, eq=False)
class Material:
    """A data set on a device.

    Attributes:
        x: Features or codes of each merged node: ``[M, ...]``.
        times: How many nodes it stands for, ``[M]``.
        node_ptr: Graph g has the merged nodes ``node_ptr[g]`` to ``node_ptr[g + 1]``.
        edge_ptr: Merged node i has the edges ``edge_ptr[i]`` to ``edge_ptr[i + 1]``.
        source: Where each edge comes from, ``[K]``.
        edge_times: How many edges it stands for, ``[K]``.
        y: Class of each graph.
        in_channels: Number of node features.
        num_classes: Number of classes.
    """

    x: Tensor
    times: Tensor
    node_ptr: Tensor
    edge_ptr: Tensor
    source: Tensor
    edge_times: Tensor
    y: Tensor
    in_channels: int
    num_classes: int

    @classmethod
    def of(
        cls, graphs: GraphSet, kind: FeatureKind, rounds: int, device: torch.device | str
    ) -> "Material":
        """Merge the nodes that no network of ``rounds`` layers tells apart. It is exact."""
        own = features(graphs, kind)
        codes = own.codes if own.dense is None else None
        x = own.matrix() if codes is None else codes
        start = torch.unique(x, dim=0, return_inverse=True)[1] if codes is None else codes
        small = merge(graphs.node_ptr, graphs.rowptr, graphs.col, start, rounds)
        edge_ptr = torch.zeros(len(small.node) + 1, dtype=torch.int64)
        edge_ptr[1:] = torch.bincount(small.edge_index[1], minlength=len(small.node)).cumsum(0)
        return cls(
            x[small.node].to(device),
            small.node_times.to(device),
            small.node_ptr.to(device),
            edge_ptr.to(device),
            small.edge_index[0].to(device),
            small.edge_times.to(device),
            graphs.y.to(device),
            own.width,
            graphs.num_classes,
        )

    def batch(self, ids: Tensor, aggrs: list[Aggregation]) -> Batch:
        """Return the graphs ``ids`` for lanes of these aggregations: max alone, or any others."""
        node, owner, place = _spans(self.node_ptr, ids)
        edge, target, _ = _spans(self.edge_ptr, node)
        source = self.source[edge] - (node - place)[target]  # numbered as in the batch
        rows, lanes = len(node), len(aggrs)
        ends = _repeated(torch.stack([source, target]), lanes, rows)
        times = self.times[node]
        graph = Graph(ends, lanes * rows, self.edge_times[edge].repeat(lanes))
        members = _repeated(owner, lanes, len(ids))
        readout = Graph.readout(members, lanes * len(ids), times.repeat(lanes))
        x = self.x[node].repeat(lanes, *[1] * (self.x.dim() - 1))
        return Batch(x, _scaled(graph, aggrs), _scaled(readout, aggrs), times.repeat(lanes).float())


def _spans(pointer: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the members of these spans, whose each is (a place in ``numbers``), and 0, 1, 2."""
    first = pointer[numbers]
    length = pointer[numbers + 1] - first
    owner = torch.repeat_interleave(length)
    place = torch.arange(len(owner), device=owner.device)
    return place + (first - length.cumsum(0) + length)[owner], owner, place


def _repeated(numbers: Tensor, lanes: int, room: int) -> Tensor:
    """Return the numbers of every lane, ``room`` apart, along the last axis."""
    shift = torch.arange(0, lanes * room, max(room, 1), device=numbers.device)
    return (numbers.unsqueeze(-2) + shift.unsqueeze(1)).flatten(-2)


def _scaled(graph: Graph, aggrs: list[Aggregation]) -> Graph | Scaled:
    if aggrs[0] == "max":
        return graph
    of_lane = {
        aggr: torch.ones(graph.num_targets, 1, device=graph.device)
        if aggr == "sum"
        else graph.scale(aggr, torch.float32)
        for aggr in set(aggrs)
    }
    each = graph.num_targets // len(aggrs)
    parts = [of_lane[aggr][lane * each : (lane + 1) * each] for lane, aggr in enumerate(aggrs)]
    return Scaled(graph, torch.cat(parts).squeeze(1))
