"""The variance-preserving aggregation as a PyTorch Geometric aggregation."""

import torch_geometric.nn.aggr as pyg_aggr
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.nn.aggr import Aggregation

from ..errors import UsageError
from ..ops import Graph, _observe, aggregate
from ..ops._aggregate import scaled_sum
from ..ops._dtypes import accumulator
from ..ops._norm import normed
from ._mend import mend_generated_code

# A layer of PyG that is made with VPAggregation must not break later ones that sum.
mend_generated_code()


class VPAggregation(Aggregation):  # type: ignore[misc]
    r"""Sum a group and divide by the square root of its size, for any ``aggr=`` of PyG.

    ``out_i = sum_j x_j / sqrt(N_i)``. Where the elements have been multiplied by weights, pass
    those too: ``out_i = sum_j x_j / sqrt(sum_j w_j^2)``. Elements of variance 1 (before the
    weights) give a result of variance 1; an empty group gives 0, and so does one whose weights are
    all 0. Weights may be of any size; half types are summed in float32.

    Attention and degree-normalised layers need a drop-in of their own (``VPGATConv``,
    ``VPGCNConv``, …): put on top of them, this would scale a second time.

    Example:
        >>> import torch
        >>> from torch_geometric.nn import SAGEConv
        >>> VPAggregation()(torch.ones(4, 1), torch.tensor([0, 0, 0, 0]))
        tensor([[2.]])
        >>> SAGEConv(8, 16, aggr=VPAggregation())
        SAGEConv(8, 16, aggr=VPAggregation())
    """

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Aggregate ``x`` along ``dim``.

        Args:
            x: The elements, ``[..., num_elements, ...]``, of a floating-point type.
            index: ``[num_elements]``, the group of each element, in any order.
            ptr: ``[num_groups + 1]``, the boundaries of groups that lie one after the other;
                instead of ``index``.
            dim_size: Number of groups.
            dim: The axis of the elements.
            weight: ``[num_elements]``, or ``[num_elements, heads]`` for heads on the axis after
                ``dim``: what the elements have been multiplied by. A gradient flows back to it.

        Example:
            >>> import torch
            >>> x, w = torch.ones(2, 1), torch.tensor([3.0, 4.0])
            >>> VPAggregation()(x * w[:, None], torch.tensor([0, 0]), weight=w)
            tensor([[1.4000]])
        """
        if index is None:
            if ptr is None:
                raise UsageError("index: expected the group of each element, or ptr; got neither.")
            index = ptr2index(ptr, output_size=x.shape[dim])
        elements = x.movedim(dim, 0)
        graph = Graph.readout(index, dim_size)
        if weight is None:
            return aggregate(elements, graph).movedim(0, dim)
        if weight.dim() == 0 or weight.shape != elements.shape[: weight.dim()]:
            raise UsageError(
                f"weight: expected the shape of the elements {list(elements.shape)} or the "
                f"beginning of it, got {list(weight.shape)}."
            )
        return _divided_by_norm(elements, graph, weight).movedim(0, dim)


def _divided_by_norm(elements: Tensor, graph: Graph, weight: Tensor) -> Tensor:
    """Sum elements that are multiplied by ``weight`` already, and divide by its norm."""
    wide = accumulator(elements.dtype)
    norm = normed(weight if weight.is_floating_point() else weight.to(wide), graph)
    # The elements are as small or large as the weights; the sum brings them back to size 1.
    back = norm.size.reciprocal().index_select(0, graph.edge_targets).to(wide)
    by_heads = elements.unsqueeze(1) if weight.dim() == 1 else elements.flatten(1, weight.dim() - 1)
    out = scaled_sum(by_heads, graph, back, norm.inverse.to(wide), through=True)
    out = out.view(graph.num_targets, *elements.shape[1:])
    if _observe.observer is not None:
        _observe.observer(_observe.Aggregated(elements, graph, None, norm.inverse_norm, out))
    return out


class VPA(VPAggregation):
    """``VPAggregation`` under the name by which PyG's resolver finds it."""


def register() -> None:
    """Make ``aggr="vpa"`` resolve in PyTorch Geometric, in every layer made from then on.

    Calling it again changes nothing.

    Example:
        >>> from torch_geometric.nn import GraphConv
        >>> register()
        >>> GraphConv(8, 16, aggr="vpa").aggr_module
        VPA()
    """
    # PyG's resolver looks a name up among the classes in this module's namespace.
    pyg_aggr.VPA = VPA
