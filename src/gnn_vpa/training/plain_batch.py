"""Some graphs of a data set, node by node, as a model is called with them."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..graphs import FeatureKind, GraphSet, features
from ..ops import Graph


class PlainBatch(NamedTuple):
    """What a model is called with: ``model(*batch)``.

    Example:
        >>> pair = Graph(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> PlainBatch(torch.ones(2, 1), pair, Graph.readout(torch.tensor([0, 0]))).x.shape
        torch.Size([2, 1])
    """

    x: Tensor  # codes [nodes], or features [nodes, in]
    graph: Graph
    readout: Graph


def plain_batch(
    graphs: GraphSet, kind: FeatureKind, ids: Tensor, dtype: torch.dtype = torch.float32
) -> PlainBatch:
    """Put graphs side by side, with nothing merged.

    Args:
        graphs: The data set.
        kind: The node features.
        ids: The graphs, ``[B]``.
        dtype: Type of features; one-hot ones stay codes.

    Example:
        >>> from torch_geometric.data import Data
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=0)
        >>> plain_batch(GraphSet.from_pyg([pair] * 3), "ones", torch.tensor([0, 2])).graph
        Graph(num_sources=4, num_targets=4, num_edges=4)
    """
    node, owner, number = expanded(graphs.node_ptr, ids)
    edge, target, _ = expanded(graphs.rowptr.long(), node)
    source = graphs.col.long()[edge] - (node - number)[target]  # numbered as in the batch
    node_features = features(graphs, kind)
    codes = node_features.codes if node_features.dense is None else None
    x = node_features.matrix(node).to(dtype) if codes is None else codes[node]
    graph = Graph(torch.stack([source, target]), len(node))
    return PlainBatch(x, graph, Graph.readout(owner, len(ids)))


def expanded(pointer: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Expand the ranges ``pointer[n]:pointer[n + 1]`` for ``n`` in ``numbers``.

    Returns:
        Positions, the index into ``numbers`` that each came from, and a running count.

    Example:
        >>> expanded(torch.tensor([0, 2, 3, 6]), torch.tensor([2, 0]))
        (tensor([3, 4, 5, 0, 1]), tensor([0, 0, 0, 1, 1]), tensor([0, 1, 2, 3, 4]))
    """
    if pointer.device.type == "cpu":  # NumPy's calls cost less, and it repeats several times faster
        return _expanded_on_host(pointer.numpy(), numbers.numpy())
    first = pointer[numbers]
    length = pointer[numbers + 1] - first
    owner = torch.repeat_interleave(length)
    count = torch.arange(len(owner), device=owner.device)
    return count + (first - length.cumsum(0) + length)[owner], owner, count


def _expanded_on_host(
    pointer: NDArray[np.int64], numbers: NDArray[np.int64]
) -> tuple[Tensor, Tensor, Tensor]:
    first = pointer[numbers]
    length = pointer[numbers + 1] - first
    owner = np.arange(len(numbers)).repeat(length)
    count = np.arange(len(owner))
    position = (first - length.cumsum() + length).repeat(length) + count
    return torch.from_numpy(position), torch.from_numpy(owner), torch.from_numpy(count)
