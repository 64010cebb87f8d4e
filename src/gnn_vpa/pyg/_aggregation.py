"""The variance-preserving aggregation as a PyTorch Geometric aggregation."""

import torch_geometric.nn.aggr as pyg_aggr
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.nn.aggr import Aggregation

from ..errors import UsageError
from ..ops import Graph, aggregate
from ..ops._dtypes import accumulable
from ._mend import mend_generated_code

# A layer of PyG that is made with VPAggregation must not break later ones that sum.
mend_generated_code()


class VPAggregation(Aggregation):  # type: ignore[misc]
    r"""Sum a group and divide by the square root of its size, for any ``aggr=`` of PyG.

    ``out_i = sum_j x_j / sqrt(N_i)``. Where the elements have been multiplied by weights, pass
    those too: ``out_i = sum_j x_j / sqrt(sum_j w_j^2)``. Elements of variance 1 (before the
    weights) give a result of variance 1; an empty group gives 0.

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
        mass = aggregate(accumulable(weight) ** 2, graph, "sum")
        scale = mass.where(mass > 0, 1).rsqrt() * (mass > 0)  # not NaN where all weights are 0
        total = aggregate(accumulable(elements), graph, "sum")
        out = total * scale.view(*scale.shape, *[1] * (total.dim() - scale.dim()))
        return out.to(x.dtype).movedim(0, dim)


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
