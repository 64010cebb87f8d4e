"""The graph convolutional network of the paper: PyG's GraphConv (Morris et al., 2019)."""

from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from ._heads import MLPHead
from ._lane_rows import LaneRows
from ._layer import Layer
from ._level_batch import Hop, LevelBatch
from ._linear import Linear, product
from ._model import Model
from ._terms import LayerTerms
from ._weighted_graph import GraphLike


class _GraphConv(Layer):
    """``W_root x_i + W_rel aggr_j x_j + b``."""

    def __init__(self, in_channels: int, width: int) -> None:
        super().__init__()
        self.lin_rel = Linear(in_channels, width)
        self.lin_root = Linear(in_channels, width, bias=False)
        for lin in (self.lin_rel, self.lin_root):
            lin.reset_parameters()  # PyG's layer draws twice: the same seed, the same weights

    @property
    def added(self) -> Tensor:
        return self.lin_rel.bias

    def combine(self, x: Tensor, hop: Hop, aggr: str) -> Tensor:
        if hop.is_sum:
            # Both products at once, each row's two results one after the other: the hop has the
            # neighbours' at the even places, and the row's own at the odd ones.
            weight = torch.cat([self.lin_rel.weight, self.lin_root.weight], dim=-2)
            both = product(x, weight).view(-1, self.lin_rel.out_features)
            return hop.with_self(both, aggr)
        around: Tensor = self.lin_rel(x, partial(hop.aggregate, aggr=aggr), bias=False)
        return around + hop.from_parent(self.lin_root(x))


class GCN(Model):
    r"""GCN: ``h_i <- relu(W1 h_i + W2 aggr_j h_j + b)``, a readout and an MLP.

    ``scores = MLP(dropout(aggr_{i in graph} h_i))``, with one hidden layer and ReLU.

    Args:
        in_channels: Number of node features.
        num_classes: Number of classes of graphs.
        aggr: ``"sum"``, ``"mean"``, ``"max"``, ``"vpa"`` or ``"power(p)"``, for neighbours and for
            the readout.
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

    name = "gcn"
    mixes = "root_and_neighbours"

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
        self.convs = nn.ModuleList(_GraphConv(wide, width) for wide in widths)
        self.head = MLPHead(width, hidden, num_classes, dropout)

    def terms(self) -> list[LayerTerms]:
        """List what each layer adds up.

        Example:
            >>> len(GCN(7, 2).terms())
            5
        """
        convs = [cast(_GraphConv, conv) for conv in self.convs]
        return [
            LayerTerms(
                conv,
                [(conv.lin_rel.weight, "neighbours"), (conv.lin_root.weight, "self")],
                conv.added,
            )
            for conv in convs
        ]

    def _row_parameters(self, batch: LevelBatch) -> dict[str, int]:
        levels: dict[str, int] = {}
        for number, hop in enumerate(batch.hops):
            levels[f"convs.{number}.lin_rel.weight"] = number if hop.is_sum else number + 1
            levels[f"convs.{number}.lin_root.weight"] = number
            levels[f"convs.{number}.lin_rel.bias"] = number + 1
        return levels

    def forward(
        self,
        x: Tensor,
        graph: GraphLike | LevelBatch,
        readout: GraphLike | None = None,
        nodes: Tensor | LaneRows | None = None,
        uniform: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``[graphs, num_classes]``."""
        batch = self._batch(graph, readout, nodes, len(self.convs))
        x = self._checked(x, batch)
        for conv, hop in zip(self.convs, batch.hops, strict=True):
            x = cast(Layer, conv).activated(x, hop, self.aggr)
        return self._scores([x], batch, uniform)
