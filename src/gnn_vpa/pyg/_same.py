"""A model as it is, its sums through our kernels: the same numbers, but for rounding.

What changes is how a layer of PyG sums over neighbours: without a message for each edge, forward
and backward. `convert` changes what is computed, this does not.
"""

from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import GATConv, MessagePassing
from torch_geometric.nn.aggr import MeanAggregation, SumAggregation

from ..ops import Graph, aggregate
from ..ops.internal import attend_by_parts
from ._along import Edges
from ._rules import form_of
from ._variants import become, is_sum, variant
from .attention import Parts, Scores, VPGATConv

_NAMES = {SumAggregation: "sum", MeanAggregation: "mean"}


class GATConvByParts(VPGATConv):
    """PyG's ``GATConv`` itself, whose attention need not be written down edge by edge."""

    aggregate = MessagePassing.aggregate
    edge_updater = VPGATConv.edge_updater
    _linear = True

    def _fused(self, source: Tensor, graph: Edges, kwargs: dict[str, Any]) -> Tensor:
        alpha = kwargs["alpha"]
        if isinstance(alpha, Scores):
            assert isinstance(graph, Graph)
            return alpha.attend(source, graph, normed=False)
        if not isinstance(graph, Graph):
            graph = graph.grouped(len(source))
        if isinstance(alpha, Parts):
            return attend_by_parts(source, graph, *alpha, normed=False)
        return aggregate(source, graph, "sum", weight=alpha)


def sum_by_kernels(model: nn.Module) -> bool:
    """Let the layers of a model that our kernels can serve use them, in place.

    Weights, their names and order stay; so does every layer whose messages are not plainly the
    features of neighbours, a weight times them, or GAT's attention.

    Returns:
        Whether there are such layers.

    Example:
        >>> from torch_geometric.nn import GIN
        >>> sum_by_kernels(GIN(8, 16, num_layers=2)), sum_by_kernels(nn.Linear(8, 16))
        (True, False)
    """
    layers = [module for module in model.modules() if isinstance(module, MessagePassing)]
    changed = [_changed(layer) for layer in layers]
    return any(changed)


def _changed(layer: MessagePassing) -> bool:
    """Change a layer, if it can be; say whether it could."""
    aggr = _NAMES.get(type(layer.aggr_module))
    if aggr is None:
        return False
    if type(layer) is GATConv and aggr == "sum":
        become(layer, GATConvByParts)
        return True
    form = form_of(layer, ())
    if isinstance(form, str) or not is_sum(form):
        return False
    made: Any = variant
    if not made(type(layer), form)._linear:
        return False
    become(layer, form, aggr)
    return True
