"""The graph convolutional network of the paper: PyG's GraphConv (Morris et al., 2019)."""

from functools import partial
from typing import get_args

import torch
from torch import Tensor, nn

from ..ops import Aggregation
from ._bias_relu import bias_relu
from ._blocks import Blocks
from ._checks import checked_choice
from ._heads import MLPHead
from ._layers import Hop, Layers
from ._linear import Linear, Mix, product
from ._message import GraphLike, aggregate
from ._model import Model, Readout


class _GraphConv(nn.Module):
    """``W_root x_i + W_rel aggr_j x_j + b``."""

    def __init__(self, in_channels: int, width: int) -> None:
        super().__init__()
        self.lin_rel = Linear(in_channels, width)
        self.lin_root = Linear(in_channels, width, bias=False)
        for lin in (self.lin_rel, self.lin_root):
            lin.reset_parameters()  # PyG's layer draws twice: the same seed, the same weights

    def forward(self, x: Tensor, mix: Mix) -> Tensor:
        out: Tensor = self.lin_rel(x, mix) + self.lin_root(x)
        return out

    def hop(self, x: Tensor, hop: Hop, aggr: Aggregation) -> Tensor:
        """Return the same for the rows of the next level, and a ReLU of it."""
        if not hop.is_sum:
            around = self.lin_rel(x, partial(hop.around, aggr=aggr), bias=False)
            return bias_relu(around + hop.take(self.lin_root(x)), self.lin_rel.bias)
        # Both products at once, each row's two results one after the other: the hop has the
        # neighbours' at the even places, and the row's own at the odd ones.
        weight = torch.cat([self.lin_rel.weight, self.lin_root.weight], dim=-2)
        both = product(x, weight).view(-1, self.lin_rel.out_features)
        return bias_relu(hop.with_self(aggr)(both), self.lin_rel.bias)


class GCN(Model):
    r"""GCN: ``h_i <- relu(W1 h_i + W2 aggr_j h_j + b)``, a readout and an MLP.

    ``scores = MLP(dropout(aggr_{i in graph} h_i))``, with one hidden layer and ReLU.

    Args:
        in_channels: Number of node features.
        num_classes: Number of classes of graphs.
        aggr: ``"sum"``, ``"mean"``, ``"max"`` or ``"vpa"``, for neighbours and for the readout.
        width: Width of the layers.
        depth: Number of layers.
        dropout: Probability of dropping a pooled feature.
        hidden: Width of the MLP's hidden layer.

    Example:
        >>> import torch
        >>> model = GCN(in_channels=7, num_classes=2, aggr="mean")
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
        self.aggr: Aggregation = checked_choice("aggr", aggr, get_args(Aggregation))
        widths = [in_channels] + [width] * (depth - 1)
        self.convs = nn.ModuleList(_GraphConv(wide, width) for wide in widths)
        self.head = MLPHead(width, hidden, num_classes, dropout)

    def _row_parameters(self, graph: Layers | None) -> dict[str, int]:
        assert graph is not None
        levels: dict[str, int] = {}
        for number, hop in enumerate(graph.hops):
            levels[f"convs.{number}.lin_rel.weight"] = number if hop.is_sum else number + 1
            levels[f"convs.{number}.lin_root.weight"] = number
            levels[f"convs.{number}.lin_rel.bias"] = number + 1
        return levels

    def forward(
        self,
        x: Tensor,
        graph: GraphLike | Layers,
        readout: Readout,
        nodes: Tensor | Blocks | None = None,
        uniform: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``[graphs, num_classes]``."""
        # The maximum is not linear: codes cannot be looked up before it.
        late = isinstance(graph, Layers) and graph.hops[0].is_sum
        x = self._checked(x, nodes, written_out=self.aggr == "max" and not late)
        if isinstance(graph, Layers):
            for conv, hop in zip(self.convs, graph.hops, strict=True):
                assert isinstance(conv, _GraphConv)
                x = conv.hop(x, hop, self.aggr)
        else:
            mix = partial(aggregate, graph=graph, aggr=self.aggr)
            for conv in self.convs:
                x = conv(x, mix).relu()
        return self._scores([x], readout, self.aggr, uniform)
