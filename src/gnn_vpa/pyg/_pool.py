"""Variance-preserving readout, with the signature of PyG's functional pools."""

from torch import Tensor

from ._aggregation import VPAggregation


def global_vpa_pool(x: Tensor, batch: Tensor | None, size: int | None = None) -> Tensor:
    r"""Sum the nodes of each graph and divide by the square root of their number.

    ``r_g = sum_{n in g} x_n / sqrt(N_g)``: the variance-preserving sibling of PyG's
    ``global_add_pool`` and ``global_mean_pool``.

    Args:
        x: Node features, ``[num_nodes, ...]`` as for PyG's pools.
        batch: ``[num_nodes]``, the graph of each node; None if there is one graph.
        size: Number of graphs; by default the largest entry of ``batch`` plus one.

    Returns:
        ``[size, ...]``.

    Example:
        >>> import torch
        >>> global_vpa_pool(torch.ones(5, 1), torch.tensor([0, 0, 0, 0, 1]))
        tensor([[2.],
                [1.]])
        >>> global_vpa_pool(torch.ones(16, 1), None)
        tensor([[4.]])
    """
    dim = -1 if x.dim() == 1 else -2
    out: Tensor = VPAggregation()(x, batch, dim_size=size, dim=dim)
    # PyG's pools drop the axis of graphs from static graphs, [num_copies, num_nodes, features].
    return out.squeeze(dim) if batch is None and x.dim() > 2 else out
