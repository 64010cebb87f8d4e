"""Graphs as a network is called with them so that no layer computes anything twice.

At level ``l`` a row stands for all nodes of the graphs that ``l`` layers cannot tell apart, as in a
training. Here weights are not to be learned: a row sums over the neighbours of one of its nodes, by
the model's own formula, so that it does not matter whether rows have all of their nodes.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..graphs.colour_rounds import colour_rounds
from ..nn import Hop, LevelBatch, Model
from ..nn.internal import LevelsHead
from ..ops import Graph
from ..ops.internal import CSR
from .batch import Part

Ints = NDArray[np.integer]

MERGED_SIZE = 1 << 20  # of a batch, see `cut`
MOST_EDGES = 16  # of a node, on average, up to which it is quicker to look for nodes that are alike
WORTH = 0.75  # rows of a level, of all nodes, from which on merging costs more than it saves


def can_merge(model: Model) -> bool:
    """Say whether a model's layers take the rows of one level to those of another."""
    return model.mixes in ("with_self", "root_and_neighbours")


def is_sparse(part: Part) -> bool:
    """Say whether graphs have so few edges that merging pays."""
    return len(part.col) <= MOST_EDGES * part.num_nodes


def merged(part: Part, codes: Tensor, model: Model) -> tuple[Tensor, LevelBatch]:
    """Return the codes of the first level's rows, and the batch.

    Args:
        part: The graphs.
        codes: The code of each node's one-hot features: ``[N]``.
        model: The network, on the CPU.

    Example:
        >>> from torch_geometric.data import Data
        >>> from gnn_vpa.graphs import GraphSet
        >>> from gnn_vpa.nn import GIN
        >>> star = torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]])
        >>> some = [Data(edge_index=star, num_nodes=4)] * 5
        >>> stars = Part(GraphSet.from_pyg(some, target=""), 0, 5)
        >>> x, batch = merged(stars, torch.zeros(20, dtype=torch.int64), GIN(1, 2, depth=2))
        >>> len(x), [hop.graph.num_targets for hop in batch.hops]
        (1, [2, 2])
    """
    whole = part.rowptr.numpy(), part.col.numpy()
    rounds = colour_rounds(part.rowptr, part.col, codes)
    row = next(rounds)  # the row of each node
    node = _first_of(row)
    x, hops, rows = codes[torch.from_numpy(node)], [], [row]
    for _ in range(model.rounds):
        below, row = row, next(rounds)
        node = _first_of(row)
        if len(node) > WORTH * len(row):
            break
        rowptr, col = _rows_of(*whole, node)
        graph = _graph(rowptr, below.take(col), (int(below.max()) + 1, len(node)))
        hops.append(Hop(graph, torch.from_numpy(below.take(node))))
        rows.append(row)
    if len(hops) < model.rounds:  # from here on each node has a row
        below, row = rows[-1], np.arange(part.num_nodes)
        graph = _graph(whole[0], below.take(whole[1]), (int(below.max()) + 1, len(row)))
        hops += [Hop(graph, torch.from_numpy(below))]
        hops += [Hop(part.graph())] * (model.rounds - len(hops))
        rows += [row] * (model.rounds + 1 - len(rows))
    read = rows if isinstance(model.head, LevelsHead) else rows[-1:]
    ptr = part.ptr.numpy()
    readouts = (_graph(ptr, own, (int(own.max()) + 1, part.num_graphs)) for own in read)
    return x, LevelBatch(tuple(hops), None, tuple(readouts))


def _first_of(row: Ints) -> Ints:
    """Return the first node of each row; rows are numbered in order of their first nodes."""
    first = np.empty(int(row.max()) + 1, dtype=np.int64)
    first[row[::-1]] = np.arange(len(row))[::-1]  # of several that are assigned the last one stays
    return first


def _rows_of(rowptr: Ints, col: Ints, node: Ints) -> tuple[Ints, Ints]:
    """Return the edges of some nodes, one node after the other."""
    begin = rowptr.take(node)
    length = rowptr.take(node + 1) - begin
    ptr = np.zeros(len(node) + 1, dtype=np.int64)
    np.cumsum(length, out=ptr[1:])
    position = np.repeat(begin - ptr[:-1], length)
    position += np.arange(len(position))
    return ptr, col.take(position)


def _graph(rowptr: Ints, col: Ints, sizes: tuple[int, int]) -> Graph:
    longest = int(np.diff(rowptr).max(initial=0))
    pointers, sources = (torch.from_numpy(part.astype(np.int32)) for part in (rowptr, col))
    return Graph.from_csr(CSR(pointers, sources, None, longest), None, sizes)
