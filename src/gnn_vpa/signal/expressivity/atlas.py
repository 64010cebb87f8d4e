"""All small graphs: the 1,253 with at most seven nodes."""

import torch
from torch_geometric.data import Data

from ...graphs import GraphSet


def atlas() -> GraphSet:
    """Return every graph of at most seven nodes once, without labels (Read and Wilson, 1998).

    The first of the 1,253 has no nodes. All are of one class.

    Example:
        >>> atlas()
        GraphSet('atlas', graphs=1253, classes=1, nodes=8475, edges=24684)
    """
    import networkx as nx

    return GraphSet.from_pyg([_data(graph) for graph in nx.graph_atlas_g()], name="atlas")


def _data(graph: object) -> Data:
    edges = torch.tensor(list(graph.edges), dtype=torch.int64).reshape(-1, 2).T  # type: ignore[attr-defined]
    both = torch.cat([edges, edges.flip(0)], dim=1)
    return Data(edge_index=both, num_nodes=len(graph), y=0)  # type: ignore[arg-type]
