"""Graphs in batches of a bounded size, whether or not all of them fit into memory."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch

from ..errors import UsageError
from .graphset import GraphSet
from .targets import NO_TARGET

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from ._from_pyg import Seen

NODE = 64  # a node counts as so many edges: it has a row of features in every layer


def cut(graphs: GraphSet, most: int) -> Iterator[tuple[int, int]]:
    """Yield the first graph of each batch, and the first behind it.

    A batch is as many graphs, in order, as have at most so many edges together, and nodes, each of
    which counts as ``NODE`` edges; a graph that is larger is a batch by itself.

    Example:
        >>> from torch_geometric.data import Data
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> list(cut(GraphSet.from_pyg([pair] * 5, target=""), most=4 * NODE + 4))
        [(0, 2), (2, 4), (4, 5)]
    """
    size = NODE * graphs.node_ptr + graphs.rowptr[graphs.node_ptr]  # of all graphs before each
    begin = 0
    while begin < graphs.num_graphs:
        end = int(torch.searchsorted(size, size[begin] + most, right=True)) - 1
        end = max(end, begin + 1)
        yield begin, end
        begin = end


def read_batches(
    graphs: "Iterable[Data]", most: int, name: str = "graphs", target: str = NO_TARGET
) -> Iterator[tuple[int, GraphSet]]:
    """Read graphs one after the other, and yield data sets of them: the batches of `cut`.

    Args:
        graphs: The graphs; an iterator is asked for no more of them than a batch holds.
        most: The size of a batch, see `cut`.
        name: What they are called in messages.
        target: What is to be known of each graph, see `GraphSet.from_pyg`.

    Yields:
        The number of the first graph, and the batch.

    Raises:
        UsageError: A graph cannot be used; the message says which and why.

    Example:
        >>> from torch_geometric.data import Data
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        >>> [(first, batch.num_graphs) for first, batch in read_batches([pair] * 5, 4 * NODE + 4)]
        [(0, 2), (2, 2), (4, 1)]
    """
    # PyG loads slowly, and a GraphSet needs none of it.
    from ._from_pyg import from_seen, not_one_graph, seen

    kept: list[Seen] = []
    first = size = 0
    for graph in graphs:
        if (fault := not_one_graph(graph)) is not None:
            raise UsageError(f"{name}, graph {first + len(kept)}: {fault}")
        found = seen(graph)
        own = NODE * found.nodes + found.edges
        if kept and size + own > most:
            yield first, from_seen(kept, name, target, first=first)
            first, size, kept = first + len(kept), 0, []
        kept.append(found)
        size += own
    if kept:
        yield first, from_seen(kept, name, target, first=first)
