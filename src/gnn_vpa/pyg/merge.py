"""Exact compression of a user's own graphs: merge the nodes that no layer can tell apart."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from ..errors import UsageError
from ..graphs import Merged, merge, refine
from ..ops import Graph
from ._edge_list import checked_ends, checked_graph
from ._levels import (
    Level,
    Levels,
    check_rows,
    checked_levels,
    holds_nodes,
    is_matrix,
    levels_of,
)


class MergeAlike(BaseTransform):  # type: ignore[misc]
    r"""Merge the nodes of a graph that message passing cannot tell apart, and count them.

    Nodes are alike if their attributes are equal and their in-neighbours are alike, ``rounds``
    times over (1-WL, exact); of every kind the first is kept. A network of at most ``rounds``
    layers computes the same on the smaller graph, forward and backward, where it counts. Layers
    that normalise by degree need one round more. See ``docs/compression.md`` for which layers
    count, which need not, and which cannot.

    The graph that comes out has, besides the attributes of the ``M`` nodes and ``K`` edges kept:

    ================  ==============================================================================
    ``times``         ``[M]``, how many nodes each one stands for
    ``merged_index``  ``[N]``, the node that stands for each one of the whole graph:
                      ``out[data.merged_index]`` has a row for each of those
    ``edge_times``    ``[K]``, how many edges into its target each edge stands for
    ``edge_weight``   ``[K]``, the same as floating-point numbers, times the edge's own weight where
                      it has one: weighted sums (``GraphConv``, ``GCNConv``, …) are exact with it
    ================  ==============================================================================

    With ``repeat`` every edge is there as often as it counts instead, and the last two are not.
    Fewer edges are saved, but every aggregation is exact as it is: mean, attention, whatever.

    Every attribute of nodes must be equal for two of them to be alike, not ``x`` alone, and
    every attribute of edges for two of those. ``DataLoader`` batches such graphs as any others.
    Names say which those are (``x``, ``pos``, ``edge_attr``, …, others with ``node`` or ``edge`` in
    them). One whose name does not, such as ``y``, and that has an entry for each node or edge, may
    be about these or about the whole graph, and is refused unless ``levels`` says which.

    Args:
        rounds: Number of layers; by default as many as make a difference, exact for any number.
        repeat: Whether to repeat edges instead of counting them.
        levels: What attributes belong to where their names do not say it, or say it wrongly: by
            name ``"node"``, ``"edge"`` or ``"graph"``.

    Example:
        A star: the hub, and one leaf for all five.

        >>> star = torch.tensor([[0, 0, 0, 0, 0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0, 0, 0, 0, 0]])
        >>> data = MergeAlike(rounds=2)(Data(x=torch.ones(6, 1), edge_index=star))
        >>> data.times, data.edge_index, data.edge_weight
        (tensor([1, 5]), tensor([[1, 0],
                [0, 1]]), tensor([5., 1.]))
        >>> data.merged_index
        tensor([0, 1, 1, 1, 1, 1])
    """

    def __init__(
        self, rounds: int | None = None, *, repeat: bool = False, levels: Levels | None = None
    ) -> None:
        if rounds is not None and (not isinstance(rounds, int) or rounds < 1):
            raise UsageError(
                f"rounds: expected the number of layers, at least 1, or None, got {rounds!r}."
            )
        self.rounds = rounds
        self.repeat = repeat
        self.levels = checked_levels(levels)

    def forward(self, data: Data) -> Data:
        """Return the graph with alike nodes merged."""
        node_keys, edge_keys = self._read(data)
        small = _merged(
            data.edge_index,
            _kinds(data, node_keys, int(data.num_nodes)),
            _kinds(data, edge_keys, data.edge_index.shape[1]) if edge_keys else None,
            self.rounds,
        )
        edge_index, edge = small.edge_index, small.edge
        if self.repeat:
            edge_index = edge_index.repeat_interleave(small.edge_times, dim=1)
            edge = None if edge is None else edge.repeat_interleave(small.edge_times)
        for keys, kept in ((node_keys, small.node), (edge_keys, edge)):
            for key in keys:
                value = data[key]
                data[key] = value.index_select(data.__cat_dim__(key, value), kept)
        data.edge_index, data.num_nodes = edge_index, len(small.node)
        data.times, data.merged_index = small.times, small.place
        if not self.repeat:
            data.edge_times, data.edge_weight = small.edge_times, _weight(data, small.edge_times)
        return data

    def _read(self, data: Data) -> tuple[list[str], list[str]]:
        """Return the attributes of nodes and those of edges; raise if they cannot be merged."""
        data = checked_graph(data, "Merge")
        if "times" in data:
            raise UsageError(
                "data: has an attribute 'times': it seems to have been merged already."
            )
        num_nodes = int(data.num_nodes)
        checked_ends(data, num_nodes)
        counts: dict[Level, int] = {"node": num_nodes, "edge": data.edge_index.shape[1]}
        levels = levels_of(data, counts, self.levels, asked=("node", "edge"))
        for key, level in levels.items():
            if level != "graph" or key in self.levels:
                continue
            if is_matrix(data, key):
                raise UsageError(
                    f"{key}: has a row and a column for each node, and merging changes nodes. Take "
                    "it out, and make it from the merged graph (PyG's ToSparseTensor); or leave "
                    f"it as it is, with levels={{{key!r}: 'graph'}}."
                )
            if holds_nodes(key, data[key]):
                raise UsageError(
                    f"{key}: by its name it holds numbers of nodes, which merging changes. Take it "
                    f"out, and put data.merged_index[{key}] in afterwards; or leave it as it is, "
                    f"with levels={{{key!r}: 'graph'}}."
                )
        node_keys, edge_keys = (
            [key for key, level in levels.items() if level == wanted] for wanted in ("node", "edge")
        )
        check_rows(data, node_keys, "node")
        check_rows(data, edge_keys, "edge")
        return node_keys, edge_keys

    def __repr__(self) -> str:
        repeat = ", repeat=True" if self.repeat else ""
        levels = f", levels={self.levels}" if self.levels else ""
        return f"{type(self).__name__}(rounds={self.rounds}{repeat}{levels})"


def merged_graph(data: Data) -> Graph:
    """Return the edges of a graph or a batch, each counting as often as ``MergeAlike`` found it.

    ``gnn_vpa.aggregate`` and ``attend`` take it, and so do the models of ``build_model``. It is
    the plain graph where nothing has been merged.

    Example:
        >>> star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
        >>> data = MergeAlike()(Data(x=torch.ones(4, 1), edge_index=star))
        >>> merged_graph(data).count
        tensor([3., 1.])
    """
    return Graph(data.edge_index, data.num_nodes, data.get("edge_times"))


def merged_readout(data: Data) -> Graph:
    """Return the readout of a graph or a batch, each node counting as often as it occurs.

    ``gnn_vpa.aggregate`` takes it, with any aggregation, and so do the models of ``build_model``.

    Example:
        >>> from gnn_vpa import aggregate
        >>> star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
        >>> data = MergeAlike()(Data(x=torch.ones(4, 1), edge_index=star))
        >>> aggregate(data.x, merged_readout(data), "sum")
        tensor([[4.]])
    """
    batch = data.get("batch")
    if batch is None:
        batch = torch.zeros(data.num_nodes, dtype=torch.int64, device=data.edge_index.device)
    size = data.num_graphs if isinstance(data, Batch) else None
    return Graph.readout(batch, size, data.get("times"))


def _weight(data: Data, edge_times: Tensor) -> Tensor:
    """Return how much each edge weighs in a sum: its own weight as often as it occurs."""
    own, x = data.get("edge_weight"), data.x
    if own is not None:
        weight: Tensor = own * edge_times.to(own.dtype).view(-1, *[1] * (own.dim() - 1))
        return weight
    floating = x is not None and x.is_floating_point()
    return edge_times.to(x.dtype if floating else torch.get_default_dtype())


class _Small(NamedTuple):
    node: Tensor  # [M], the nodes that are kept
    times: Tensor  # [M]
    place: Tensor  # [N], where each node went
    edge_index: Tensor  # [2, K]
    edge_times: Tensor  # [K]
    edge: Tensor | None  # [K], the edge whose attributes each one keeps; None without attributes


def _merged(edge_index: Tensor, nodes: Tensor, edges: Tensor | None, rounds: int | None) -> _Small:
    """Merge nodes of the kinds ``nodes [N]`` along edges of the kinds ``edges [E]``."""
    num_nodes, num_edges = len(nodes), edge_index.shape[1]
    source, target = edge_index
    order = target.argsort(stable=True)
    rowptr = torch.zeros(num_nodes + 1, dtype=torch.int64, device=edge_index.device)
    rowptr[1:] = torch.bincount(target, minlength=num_nodes).cumsum(0)
    if edges is None:
        small, place = _alike(rowptr, source[order], nodes, rounds)
        return _Small(small.node, small.node_times, place, small.edge_index, small.edge_times, None)

    # Where edges differ, each is a node of its own kind between its ends: two rounds for one.
    ends = num_edges + 1 + torch.arange(num_edges, device=edge_index.device)
    kinds = torch.cat([nodes, edges + len(nodes)])  # there are fewer kinds of nodes than nodes
    small, place = _alike(
        torch.cat([rowptr, ends]),
        torch.cat([num_nodes + order, source]),
        kinds,
        None if rounds is None else 2 * rounds,
    )
    kept = int((small.node < num_nodes).sum())
    begin, end = small.edge_index
    last = end < kept  # the second half of an edge, into a node
    between = begin[last] - kept
    return _Small(
        node=small.node[:kept],
        times=small.node_times[:kept],
        place=place[:num_nodes],
        edge_index=torch.stack([begin[~last][between], end[last]]),
        edge_times=small.edge_times[last],
        edge=small.node[kept:][between] - num_nodes,
    )


def _alike(rowptr: Tensor, col: Tensor, start: Tensor, rounds: int | None) -> tuple[Merged, Tensor]:
    """Merge what ``rounds`` rounds do not tell apart, and say where each node went."""
    colour = refine(rowptr, col, start, len(start) if rounds is None else rounds)
    ends = torch.tensor([0, len(start)], device=start.device)
    small = merge(ends, rowptr, col, colour, rounds=0)
    place = torch.empty_like(small.node)
    place[colour[small.node]] = torch.arange(len(place), device=place.device)
    return small, place[colour]


def _kinds(data: Data, keys: list[str], count: int) -> Tensor:
    """Return a number for each node or edge, equal where all of these attributes are."""
    kinds = torch.zeros(count, dtype=torch.int64, device=data.edge_index.device)
    for key in keys:
        value = data[key]
        rows = value.movedim(data.__cat_dim__(key, value), 0).unsqueeze(-1).flatten(1)
        if rows.numel() > 0:
            distinct, number = torch.unique(rows, dim=0, return_inverse=True)
            kinds = torch.unique(kinds * len(distinct) + number, return_inverse=True)[1]
    return kinds
