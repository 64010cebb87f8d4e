"""The variance-preserving aggregation as a PyTorch Geometric aggregation."""

from typing import NoReturn

import torch
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.nn.aggr import Aggregation

from ..aggregations import aggregation
from ..errors import UsageError
from ..ops import Graph, aggregate, observe
from ..ops.internal import accumulator, normed, power_sum, raise_unscriptable, scaled_sum
from ._gathered import Gathered
from ._mend import mend_generated_code
from ._small import small_readout
from ._traced import Traced, traced

# A layer of PyG that is made with VPAggregation must not break later ones that sum.
mend_generated_code()


class _Unscriptable(Aggregation):  # type: ignore[misc]
    def __prepare_scriptable__(self) -> NoReturn:
        raise_unscriptable()


class VPAggregation(_Unscriptable):
    r"""Sum a group and divide by the square root of its size, for any ``aggr=`` of PyG.

    ``out_i = sum_j x_j / sqrt(N_i)``. Where the elements have been multiplied by weights, pass
    those too: ``out_i = sum_j x_j / sqrt(sum_j w_j^2)``. Elements of variance 1 (before the
    weights) give a result of variance 1; an empty group gives 0, and so does one whose weights are
    all 0. Weights may be of any size; half types are summed in float32.

    Attention and degree-normalised layers need a form of their own, which ``aggr="vpa"`` gives
    them after ``register()``: put on top of them, this object would scale a second time.

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
        if weight is None and index is not None and dim in (0, -x.dim()):
            groups = _ungrouped(index, x, dim_size)
            if groups is not None:
                return groups.sum(x, 0.5)
        graph = _groups(x, index, ptr, dim_size, dim)
        if weight is None and dim in (0, -x.dim()):
            fits = len(x) == graph.num_sources and x.device == graph.device
            out = power_sum(x, graph, 0.5) if fits else None
            return aggregate(x, graph) if out is None else out
        elements = x.movedim(dim, 0)
        if weight is None:
            return aggregate(elements, graph).movedim(0, dim)
        if weight.dim() == 0 or weight.shape != elements.shape[: weight.dim()]:
            raise UsageError(
                f"weight: expected the shape of the elements {list(elements.shape)} or the "
                f"beginning of it, got {list(weight.shape)}."
            )
        return _divided_by_norm(elements, graph, weight).movedim(0, dim)


def _ungrouped(index: Tensor, x: Tensor, dim_size: int | None) -> Gathered | Traced | None:
    """Return groups that need not be known to sum over them: under a compiler, or on a GPU."""
    if torch.compiler.is_compiling():
        return None if dim_size is None or index.dim() != 1 else traced(index, x, dim_size)
    return small_readout(index, x, dim_size)


def _divided_by_norm(elements: Tensor, graph: Graph, weight: Tensor) -> Tensor:
    """Sum elements that are multiplied by ``weight`` already, and divide by its norm."""
    wide = accumulator(elements.dtype)
    norm = normed(weight if weight.is_floating_point() else weight.to(wide), graph)
    # The elements are as small or large as the weights; the sum brings them back to size 1.
    back = norm.size.reciprocal().index_select(0, graph.edge_targets).to(wide)
    by_heads = elements.unsqueeze(1) if weight.dim() == 1 else elements.flatten(1, weight.dim() - 1)
    out = scaled_sum(by_heads, graph, back, norm.inverse.to(wide), through=True)
    out = out.view(graph.num_targets, *elements.shape[1:])
    if (observer := observe.observer()) is not None:
        observer(observe.Aggregated(elements, graph, None, norm.inverse_norm, out))
    return out


class VPA(VPAggregation):
    """``VPAggregation`` under the name by which PyG's resolver finds it."""

    aggr = "vpa"


class LinearAggregation(_Unscriptable):
    r"""Sum a group and multiply by a power of its size, for any ``aggr=`` of PyG.

    ``out_i = N_i^(-p) * sum_j x_j``; weights that the elements were multiplied by do not matter.

    Args:
        aggr: A linear aggregation of ``gnn_vpa.aggregate``, such as ``"power(0.3)"``.

    Example:
        >>> import torch
        >>> LinearAggregation("power(0.25)")(torch.ones(16, 1), torch.zeros(16, dtype=torch.int64))
        tensor([[8.]])
    """

    def __init__(self, aggr: str) -> None:
        super().__init__()
        entry = aggregation(aggr, among="operators")
        if entry.kind != "linear":
            raise UsageError(f"aggr: {entry.name!r} is no sum over neighbours with a scale.")
        self.aggr = entry.name

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        weight: Tensor | None = None,
    ) -> Tensor:
        """Aggregate ``x`` along ``dim``; the arguments are those of ``VPAggregation``."""
        graph = _groups(x, index, ptr, dim_size, dim)
        return aggregate(x.movedim(dim, 0), graph, self.aggr).movedim(0, dim)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aggr!r})"


class Named(LinearAggregation):
    """A linear aggregation under the name by which PyG's resolver finds it."""

    named: str

    def __init__(self) -> None:
        super().__init__(self.named)

    def __repr__(self) -> str:
        return f"{LinearAggregation.__name__}({self.aggr!r})"


def linear_aggregation(aggr: str) -> Aggregation:
    """Return the module of a linear aggregation: vpa has its own, which knows weights."""
    return VPAggregation() if aggr == "vpa" else LinearAggregation(aggr)


def _groups(
    x: Tensor, index: Tensor | None, ptr: Tensor | None, dim_size: int | None, dim: int
) -> Graph:
    if index is None:
        if ptr is None:
            raise UsageError("index: expected the group of each element, or ptr; got neither.")
        index = ptr2index(ptr, output_size=x.shape[dim])
    return Graph.loose_readout(index, dim_size)
