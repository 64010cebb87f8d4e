"""Variance-preserving degree normalisation: drop-ins for GCNConv and SGConv."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import GCNConv, SGConv
from torch_geometric.typing import Adj

from ..ops import Graph
from ..ops.internal import is_on_host, is_plain_list, normalised_sum
from ._along import Edges
from ._edges import has_unit_values
from ._forms import VPNormalised
from ._norm import vp_gcn_norm
from ._rebind import rebound
from ._small import Small, may_be_small


class Units(NamedTuple):
    """The normalisation of edges of weight 1, which is left to the sum along them."""

    edge_index: Tensor
    edge_weight: None
    num_nodes: int
    improved: bool
    add_self_loops: bool
    flow: str
    dtype: torch.dtype


def _left(*arguments: Any) -> tuple[Tensor, Units]:
    """Stand for ``gcn_norm`` where the normalisation is left to ``propagate``."""
    units = Units(*arguments)
    return units.edge_index, units


def _has_no_weights(edges: Tensor) -> bool:
    """Say whether edges are a plain list, or on the CPU a matrix whose values are all 1."""
    if edges.layout == torch.strided:
        return is_plain_list(edges) or may_be_small(edges, 1)
    return is_on_host(edges) and edges.dim() == 2 and has_unit_values(edges)


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
    _with_units = rebound(GCNConv.forward, gcn_norm=_left)
    _normalising = rebound(GCNConv.forward, gcn_norm=vp_gcn_norm)

    def forward(self, x: Tensor, edge_index: Adj, edge_weight: Tensor | None = None) -> Tensor:
        """Run the layer, with the arguments of the PyG layer it stands for."""
        keeps = edge_weight is None and self._keeps_units(x, edge_index)
        run = self._with_units if keeps else self._normalising
        return run(x, edge_index, edge_weight)  # type: ignore[no-any-return]

    def _keeps_units(self, x: Any, edge_index: Adj) -> bool:
        """Say whether normalised weights are seen by nobody: then they need not be made."""
        return (
            isinstance(edge_index, Tensor)
            and _has_no_weights(edge_index)
            and self.flow == "source_to_target"
            and self.normalize
            and not self.cached
            and self._unwatched(x)
        )

    def _fused(self, source: Tensor, graph: Edges, kwargs: dict[str, Any]) -> Tensor:
        units = kwargs["edge_weight"]
        if not isinstance(units, Units):
            return super()._fused(source, graph, kwargs)
        fill = (2 if units.improved else 1) if units.add_self_loops else None
        if isinstance(graph, Small):
            return graph.normalised_sum(source, fill)
        out = normalised_sum(source, graph, fill) if isinstance(graph, Graph) else None
        if out is None:
            edges, weight = vp_gcn_norm(*units)
            out = self.propagate(edges, x=source, edge_weight=weight)
        return out


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
