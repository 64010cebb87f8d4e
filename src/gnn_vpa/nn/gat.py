"""The graph attention network (Veličković et al., 2018), plain and variance-preserving."""

import math
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..ops import Graph, attend
from ..ops._attend import attend_by_power
from ..ops._backend import backend
from ..ops._edges import from_sources, from_targets
from ._bias_relu import bias_relu
from ._blocks import Blocks
from ._checks import checked_choice
from ._heads import MLPHead
from ._lanes import add_bias, by_lane
from ._layers import Hop, Layers
from ._linear import Linear
from ._model import Model, Readout
from ._self_loops import Looped, with_self_loops
from ._traced import is_traced

Attention = Literal["default", "vpa"]
_SLOPE = 0.2  # of the leaky ReLU, as in PyG


class _GATConv(nn.Module):
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

    def forward(
        self,
        x: Tensor,
        looped: Looped,
        aggr: Literal["sum", "vpa"],
        hop: Hop | None = None,
    ) -> Tensor:
        """Attend; with ``hop``, which says what row before a row after stems from, and a ReLU."""
        x = self.lin(x)
        graph, power = looped
        both = self._sent_and_received(x)
        sent, received = both[:, :1], both[:, 1:]
        received = received if hop is None else hop.take(received)
        finish = add_bias if hop is None else bias_relu
        if _is_fusible(x, graph):
            from ._fused_attention import FusedAttention

            if power is None:
                power = x.new_full((graph.num_targets,), 0.5 if aggr == "vpa" else 0)
            out = FusedAttention.apply(x, sent, received, graph, power, _SLOPE)  # type: ignore[no-untyped-call]
            return finish(out, self.bias)
        logits = from_sources(sent, graph) + from_targets(received, graph)
        logits = F.leaky_relu(logits, _SLOPE).squeeze(1)
        if power is None:
            return finish(attend(x, graph, logits, aggr), self.bias)
        return finish(attend_by_power(x, graph, logits, power), self.bias)

    def _sent_and_received(self, x: Tensor) -> Tensor:
        """Return ``<a_src, x_i>`` and ``<a_dst, x_i>``, ``[rows, 2]``, each lane with its own."""
        width = self.att_src.shape[-1]
        ends = [att.view(-1, width, 1) for att in (self.att_src, self.att_dst)]  # [L, F, 1]
        return (by_lane(x, len(ends[0])) @ torch.cat(ends, dim=2)).flatten(0, 1)


def _is_fusible(x: Tensor, graph: Graph) -> bool:
    """Say whether the kernels of ``_attention_kernels`` serve."""
    if is_traced() or backend(x) != "triton" or graph.by_target.edge is not None:
        return False
    return x.shape[1] <= 128 and x.dtype in (torch.float32, torch.float64)


class GAT(Model):
    r"""GAT: ``h_i <- relu(s_i sum_j c_ij W h_j + b)`` over neighbours and the node itself.

    ``c_ij = softmax_j(leaky_relu(<a_src, W h_j> + <a_dst, W h_i>))``, one head. ``"default"`` has
    ``s_i = 1`` and reads out by sum; ``"vpa"`` has ``s_i = 1/sqrt(sum_j c_ij^2)``, without
    gradient, and reads out by vpa. The head is GCN's.

    Args:
        in_channels: Number of node features.
        num_classes: Number of classes of graphs.
        aggr: ``"default"`` or ``"vpa"``.
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
        super().__init__(in_channels, width, depth)
        self.aggr: Attention = checked_choice("aggr", aggr, get_args(Attention))
        widths = [in_channels] + [width] * (depth - 1)
        self.convs = nn.ModuleList(_GATConv(wide, width) for wide in widths)
        self.head = MLPHead(width, hidden, num_classes, dropout)

    def _row_parameters(self, graph: Layers | None) -> dict[str, int]:
        assert graph is not None
        levels: dict[str, int] = {}
        for number in range(len(graph.hops)):
            for name in ("lin.weight", "att_src", "att_dst"):
                levels[f"convs.{number}.{name}"] = number
            levels[f"convs.{number}.bias"] = number + 1
        return levels

    def forward(
        self,
        x: Tensor,
        graph: Graph | Tensor | Looped | Layers,
        readout: Readout,
        nodes: Tensor | Blocks | None = None,
        uniform: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``[graphs, num_classes]``; ``graph`` gets self-loops if not ``Looped``."""
        x = self._checked(x, nodes)
        way: list[tuple[Any, Hop | None]]
        if isinstance(graph, Layers):
            way = [(hop.graph, hop) for hop in graph.hops]
        else:
            way = [(with_self_loops(graph, x.shape[0]), None)] * len(self.convs)
        aggr: Literal["sum", "vpa"] = "vpa" if self.aggr == "vpa" else "sum"
        for conv, (looped, hop) in zip(self.convs, way, strict=True):
            x = conv(x, looped, aggr, hop)
            x = x.relu() if hop is None else x
        return self._scores([x], readout, aggr, uniform)
