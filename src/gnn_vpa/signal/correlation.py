"""How alike the messages into a node are: what the lemmas take to be 0."""

import math

import torch
from torch import Tensor

from ..errors import UsageError
from ..ops import Graph, aggregate
from ..ops.internal import as_graph


@torch.no_grad()
def message_correlation(x: Tensor, graph: Graph | Tensor) -> float:
    r"""Measure the mean correlation of two messages into the same node.

    A message is ``W x_j`` with random weights ``W``, centred and independent of each other. Over
    them two messages have the covariance ``x_j . x_k``, so their correlation is a cosine, and their
    mean over all pairs of messages into a node, each pair weighing ``|x_j| |x_k|``, is

    ``rho = sum_i (|sum_j x_j|^2 - sum_j |x_j|^2) / sum_i ((sum_j |x_j|)^2 - sum_j |x_j|^2)``.

    It is 1 where all nodes are equal, as constant features make them, and above 0 as soon as
    features are not centred: rectified normals that are independent have ``1/pi``.

    Args:
        x: Features of the sources, ``[num_sources, F]``.
        graph: A ``Graph``, or anything that one is made from.

    Returns:
        A number from -1 to 1; 0 where no node has two neighbours that are not 0, and NaN where
        features are not finite.

    Example:
        >>> star = torch.tensor([[1, 2, 3], [0, 0, 0]])
        >>> round(message_correlation(torch.ones(4, 2), star), 6)
        1.0
        >>> message_correlation(torch.eye(4), star)
        0.0
    """
    if x.dim() != 2:
        raise UsageError(f"x: expected shape [nodes, features], got {list(x.shape)}.")
    graph = as_graph(graph, x.shape[0])
    if not x.isfinite().all():
        return math.nan
    x = x.double()
    x = x / x.abs().max().clamp(min=torch.finfo(x.dtype).tiny)  # whatever the scale
    size = x.norm(dim=1, keepdim=True)
    vector, length, square = (aggregate(part, graph, "sum") for part in (x, size, size.square()))
    alike = (vector.square().sum(1) - square.squeeze(1)).sum()
    most = (length.square() - square).sum()
    # A node with one neighbour has no pair, and leaves rounding alone in both.
    return float(alike / most) if most > 1e-12 * square.sum() else 0.0
