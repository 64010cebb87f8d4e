"""Variance-preserving degree normalisation: drop-ins for GCNConv and SGConv."""

from torch_geometric.nn import GCNConv, SGConv

from ._forms import VPNormalised


class VPGCNConv(VPNormalised, GCNConv):  # type: ignore[misc]
    r"""Variance-preserving graph convolution, a drop-in for PyG's ``GCNConv``.

    ``out_i = W sum_j w_ij x_j / (q_i q_j)^(1/4)`` with ``q_i = sum_j w_ij^2``, self-loop included:
    the parent's degree normalisation with fourth roots (for unit weights ``q_i = d_i + 1``). With
    ``normalize=False`` the weights are taken as they are, as in the parent.

    Every argument of the parent is accepted, and a state dict of the parent loads.

    Example:
        >>> import torch
        >>> conv = VPGCNConv(8, 16, improved=True)
        >>> conv
        VPGCNConv(8, 16)
        >>> conv(torch.ones(3, 8), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 16])
    """

    _linear = True


class VPSGConv(VPNormalised, SGConv):  # type: ignore[misc]
    r"""Variance-preserving simple graph convolution, a drop-in for PyG's ``SGConv``.

    ``out = P^K x W`` with ``P_ij = w_ij / (q_i q_j)^(1/4)`` and ``q_i = sum_j w_ij^2``, self-loop
    included; see ``VPGCNConv``.

    Example:
        >>> import torch
        >>> conv = VPSGConv(8, 16, K=2)
        >>> conv(torch.ones(3, 8), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 16])
    """

    _linear = True
