"""The graph attention network (Veličković et al., 2018), plain and variance-preserving."""

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..aggregations import Aggregation, aggregation
from ..ops import Graph, backend
from ..ops.internal import accumulator, attend_by_power, from_sources, from_targets
from ._checks import check_input, check_nodes
from ._heads import MLPHead
from ._lane_rows import LaneRows
from ._lanes import by_lane
from ._layer import Layer
from ._level_batch import Hop, LevelBatch
from ._linear import Linear
from ._model import Model
from ._self_loops import with_self_loops
from ._terms import LayerTerms
from ._traced import is_traced
from ._weighted_graph import GraphLike, WeightedGraph

_SLOPE = 0.2  # of the leaky ReLU, as in PyG


class _GATConv(Layer):
    """``s_i sum_j c_ij W x_j + b``; the class ``GAT`` says what the letters mean."""

    def __init__(self, in_channels: int, width: int) -> None:
        super().__init__()
        self.lin = Linear(in_channels, width, bias=False)
        self.att_src = nn.Parameter(torch.empty(1, 1, width))
        self.att_dst = nn.Parameter(torch.empty(1, 1, width))
        self.bias = nn.Parameter(torch.zeros(width))
        for weight in (self.lin.weight, self.att_src, self.att_dst):
            bound = math.sqrt(6 / (weight.shape[-2] + weight.shape[-1]))  # Glorot's, as in PyG
            nn.init.uniform_(weight, -bound, bound)

    @property
    def added(self) -> Tensor:
        return self.bias

    def combine(self, x: Tensor, hop: Hop, aggr: str) -> Tensor:
        assert isinstance(hop.graph, WeightedGraph)
        x, graph, power = self.lin(x), hop.graph.graph, hop.graph.power
        both = self._sent_and_received(x)
        sent, received = both[:, :1], hop.from_parent(both[:, 1:])
        if power is None:
            power = both.new_full((graph.num_targets,), attention_exponent(aggr))
        if _is_fusible(x, graph):
            from ._fused_attention import FusedAttention

            out: Tensor = FusedAttention.apply(x, sent, received, graph, power, _SLOPE)  # type: ignore[no-untyped-call]
            return out
        logits = from_sources(sent, graph) + from_targets(received, graph)
        return attend_by_power(x, graph, F.leaky_relu(logits, _SLOPE).squeeze(1), power)

    def _sent_and_received(self, x: Tensor) -> Tensor:
        """Return ``<a_src, x_i>`` and ``<a_dst, x_i>``, ``[rows, 2]``, each lane with its own."""
        width = self.att_src.shape[-1]
        ends = [att.view(-1, width, 1) for att in (self.att_src, self.att_dst)]  # [L, F, 1]
        both = (by_lane(x, len(ends[0])) @ torch.cat(ends, dim=2)).flatten(0, 1)
        return both.to(accumulator(both.dtype))


def _is_fusible(x: Tensor, graph: Graph) -> bool:
    """Say whether the kernels of ``_attention_kernels`` serve."""
    if is_traced() or backend(x) != "triton" or graph.by_target.edge is not None:
        return False
    return x.shape[1] <= 128 and x.dtype in (torch.bfloat16, torch.float32, torch.float64)


class GAT(Model):
    r"""GAT: ``h_i <- relu(s_i sum_j c_ij W h_j + b)`` over neighbours and the node itself.

    ``c_ij = softmax_j(leaky_relu(<a_src, W h_j> + <a_dst, W h_i>))``, one head. ``"default"`` has
    ``s_i = 1`` and reads out by sum; ``"vpa"`` has ``s_i = 1/sqrt(sum_j c_ij^2)``, without
    gradient, and reads out by vpa. The head is GCN's.

    ``"power(p)"`` has ``s_i = (sum_j c_ij^2)^(p - 1)``, which is ``N^(1 - p)`` where all N
    coefficients are alike: ``N^(-p) sum_j W h_j`` in all.

    Args:
        in_channels: Number of node features.
        num_classes: Number of classes of graphs.
        aggr: ``"default"``, ``"vpa"`` or ``"power(p)"``.
        width: Width of the layers.
        depth: Number of layers.
        dropout: Probability of dropping a pooled feature.
        hidden: Width of the MLP's hidden layer.

    Example:
        >>> model = GAT(in_channels=7, num_classes=2, aggr="vpa")
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> model(torch.randn(5, 7), edge_index, torch.tensor([0, 0, 1, 1, 1])).shape
        torch.Size([2, 2])
    """

    name = "gat"
    mixes = "attention"

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        aggr: str = "vpa",
        *,
        width: int = 64,
        depth: int = 5,
        dropout: float = 0.5,
        hidden: int = 128,
    ) -> None:
        super().__init__(in_channels, width, depth, aggr)
        widths = [in_channels] + [width] * (depth - 1)
        self.convs = nn.ModuleList(_GATConv(wide, width) for wide in widths)
        self.head = MLPHead(width, hidden, num_classes, dropout)

    @classmethod
    def takes(cls, entry: Aggregation) -> bool:
        """Say whether the model has an aggregation.

        Example:
            >>> GAT.takes(aggregation("power(0.3)")), GAT.takes(aggregation("sum"))
            (True, False)
        """
        return takes_coefficients(entry)

    @property
    def exponent(self) -> float:
        """``p`` of a layer's scale ``(sum_j c_ij^2)^(-p)``.

        Example:
            >>> GAT(7, 2, "default").exponent, GAT(7, 2, "vpa").exponent
            (0.0, 0.5)
        """
        return attention_exponent(self.aggr)

    def terms(self) -> list[LayerTerms]:
        """List what each layer adds up.

        Example:
            >>> GAT(7, 2, depth=1).terms()[0].products[0][1]
            'attention'
        """
        convs = [cast(_GATConv, conv) for conv in self.convs]
        return [LayerTerms(c, [(c.lin.weight, "attention")], c.bias) for c in convs]

    def _row_parameters(self, batch: LevelBatch) -> dict[str, int]:
        levels: dict[str, int] = {}
        for number in range(len(batch.hops)):
            for name in ("lin.weight", "att_src", "att_dst"):
                levels[f"convs.{number}.{name}"] = number
            levels[f"convs.{number}.bias"] = number + 1
        return levels

    def forward(
        self,
        x: Tensor,
        graph: GraphLike | LevelBatch,
        readout: GraphLike | None = None,
        nodes: Tensor | LaneRows | None = None,
        uniform: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``[graphs, num_classes]``; ``graph`` gets self-loops if it has none."""
        check_input(x, self.in_channels, graph.rows if isinstance(graph, LevelBatch) else None)
        if not isinstance(graph, LevelBatch):
            graph = with_self_loops(graph, x.shape[0])
        batch = self._batch(graph, readout, nodes, len(self.convs))
        check_nodes(batch.rows, x)
        for conv, hop in zip(self.convs, batch.hops, strict=True):
            x = cast(Layer, conv).activated(x, hop, self.aggr)
        return self._scores([x], batch, uniform)


def attention_exponent(aggr: str) -> float:
    """Return ``p`` of attention's scale ``(sum_j c_ij^2)^(-p)``.

    For ``N`` coefficients ``1/N`` it is ``N^p``: an aggregation ``N^(-q) sum_j x_j`` has p = 1 - q.

    Example:
        >>> attention_exponent("default"), attention_exponent("vpa")
        (0.0, 0.5)
    """
    exponent = aggregation(aggr).exponent
    return 0.0 if exponent is None else 1.0 - exponent


def takes_coefficients(entry: Aggregation) -> bool:
    """Say whether a model that has coefficients of its own has an aggregation.

    Sum and mean are words for what such coefficients do already.

    Example:
        >>> takes_coefficients(aggregation("default")), takes_coefficients(aggregation("mean"))
        (True, False)
    """
    return entry.kind == "plain" or (entry.kind == "linear" and entry.name not in ("sum", "mean"))
