"""A random sample of a data set's graphs."""

import torch

from ...errors import UsageError
from ...graphs import GraphSet, subset


def sample(graphs: GraphSet, count: int, seed: int = 0) -> GraphSet:
    """Return ``count`` of the graphs, drawn without replacement, or all if there are no more.

    Example:
        >>> from gnn_vpa.signal import atlas
        >>> sample(atlas(), 100).num_graphs
        100
    """
    if count < 1:
        raise UsageError(f"count: expected at least 1 graph, got {count}")
    if count >= graphs.num_graphs:
        return graphs
    draw = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(graphs.num_graphs, generator=draw)[:count]
    return subset(graphs, chosen.sort().values)
