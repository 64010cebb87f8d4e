"""The edges of a PyG graph that is to be rearranged: checked, before anything reads them."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.data.hypergraph_data import HyperGraphData

from ..errors import UsageError
from ..ops.internal import check_range, endpoints


def checked_graph(data: Any, verb: str) -> Data:
    """Return a single graph that has edges of the ordinary kind; raise if it is something else."""
    if isinstance(data, Batch):
        raise UsageError(
            f"data: expected a torch_geometric.data.Data, got a Batch. {verb} each graph, and "
            "batch those: as a data set's pre_transform."
        )
    if not isinstance(data, Data) or isinstance(data, HyperGraphData):
        raise UsageError(
            f"data: expected a torch_geometric.data.Data, got {type(data).__name__}. Graphs of "
            "several types, and those whose edges join more than two nodes, are not supported."
        )
    if data.edge_index is None:
        raise UsageError(
            "data: expected a torch_geometric.data.Data with an edge_index, got one without. "
            f"Where it has an adj_t, {verb.lower()} before ToSparseTensor."
        )
    return data


def checked_ends(data: Data, num_nodes: int | None) -> tuple[Tensor, Tensor]:
    """Return sources and targets; raise unless they are whole numbers, in range of the nodes.

    Args:
        data: The graph.
        num_nodes: How many nodes it has; None: nobody says.
    """
    edge_index = data.edge_index
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        got = "a sparse one" if isinstance(edge_index, Tensor) else type(edge_index).__name__
        raise UsageError(f"edge_index: expected a tensor of shape [2, num_edges], got {got}.")
    source, target, sizes, _ = endpoints(edge_index, None)
    for name, ends, size in zip(("source", "target"), (source, target), sizes, strict=True):
        check_range(name, ends, size if num_nodes is None else num_nodes)
    return source, target
