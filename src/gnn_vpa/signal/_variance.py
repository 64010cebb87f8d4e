"""One number for a layer: the variance over all of its entries."""

from torch import Tensor


def variance(z: Tensor, nodes: Tensor | None = None) -> float:
    """Return the variance over all entries of ``z``, in double precision: squares may be large.

    Args:
        z: ``[rows, F]``, or of any shape without ``nodes``.
        nodes: How often each row occurs, ``[rows]``; by default once.

    Example:
        >>> import torch
        >>> variance(torch.tensor([[1.0], [4.0]]), torch.tensor([2, 1]))
        2.0
    """
    z = z.detach().double()
    if z.numel() < 2:
        return 0.0
    if nodes is None:
        return float(z.var(correction=0))
    share = nodes.double() / nodes.sum()
    mean = share @ z.mean(1)
    return float(share @ (z - mean).square().mean(1))
