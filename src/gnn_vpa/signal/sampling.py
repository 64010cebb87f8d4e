"""Some graphs of a data set, as the paper's models take them."""

from typing import NamedTuple

import torch
from torch import Tensor

from ..graphs import FeatureKind, GraphSet, features, subset
from ..ops import Graph


class Sample(NamedTuple):
    """What a model is called with: ``model(*sample)``.

    Example:
        >>> x, batch = torch.ones(2, 1), torch.tensor([0, 0])
        >>> Sample(x, Graph(torch.tensor([[0], [1]]), 2), Graph.readout(batch)).graph
        Graph(num_sources=2, num_targets=2, num_edges=1)
    """

    x: Tensor
    graph: Graph
    readout: Graph


def sample(graphs: GraphSet, count: int, kind: FeatureKind = "auto", seed: int = 0) -> Sample:
    """Choose graphs at random, all if there are not more, and put them together.

    Args:
        graphs: The data set.
        count: How many graphs.
        kind: Node features.
        seed: Seed of the choice.

    Example:
        >>> from torch_geometric.data import Data
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=0)
        >>> x, graph, readout = sample(GraphSet.from_pyg([pair] * 5), 3)
        >>> x.shape, graph.num_edges, readout.num_targets
        (torch.Size([6, 1]), 6, 3)
    """
    draw = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(graphs.num_graphs, generator=draw)[:count].sort().values
    inside = torch.zeros(graphs.num_graphs, dtype=torch.bool)
    inside[chosen] = True
    node = inside.repeat_interleave(graphs.node_ptr.diff()).nonzero().squeeze(1)
    some = subset(graphs, chosen)
    target = torch.repeat_interleave(some.degree())
    edges = torch.stack([some.col.long(), target])
    batch = torch.repeat_interleave(some.node_ptr.diff())
    x = features(graphs, kind).matrix(node)  # with the columns of the whole data set
    return Sample(x, Graph(edges, len(node)), Graph.readout(batch, len(chosen)))
