"""The graph isomorphism network (Xu et al., 2019)."""

from functools import partial
from typing import ClassVar, cast

from torch import Tensor, nn

from ._batch_norm import BatchNorm
from ._fused_mlp import is_fusible, norm_product_norm
from ._heads import LevelsHead, MLPHead
from ._lane_rows import LaneRows
from ._level_batch import Hop, LevelBatch
from ._linear import Linear
from ._model import Model
from ._terms import LayerTerms
from ._weighted_graph import GraphLike


class _GINConv(nn.Module):
    """``MLP(x_i + aggr_j x_j)``: Linear, BatchNorm, ReLU, Linear, then a norm and a ReLU."""

    def __init__(self, in_channels: int, width: int) -> None:
        super().__init__()
        first, last = Linear(in_channels, width), Linear(width, width)
        self.nn = nn.Sequential(first, BatchNorm(width), nn.ReLU(), last)
        for lin in (first, last):
            lin.reset_parameters()  # PyG's layer draws twice: the same seed, the same weights

    def forward(self, x: Tensor, hop: Hop, aggr: str, norm: BatchNorm) -> Tensor:
        """Return ``relu(norm(MLP(x_i + aggr_j x_j)))``; both biases are left to the norms."""
        first, inner, _, last = cast(tuple[Linear, BatchNorm, nn.ReLU, Linear], tuple(self.nn))
        mix = partial(hop.with_self, aggr=aggr)
        # A weighted sum may follow the product, before which there are fewer rows.
        x = mix(first(x, bias=False)) if hop.is_sum else first(x, mix, bias=False)
        if self.training and is_fusible(x, last, hop.rows):
            rows = cast(LaneRows, hop.rows)
            return norm_product_norm(x, rows, first.bias, inner, last, norm)
        x = inner(x, hop.rows, offset=first.bias, relu=True)
        out: Tensor = norm(last(x, bias=False), hop.rows, offset=last.bias, relu=True)
        return out


class GIN(Model):
    r"""GIN: ``h_i <- relu(BatchNorm(MLP(h_i + aggr_j h_j)))``, and a score of every level.

    ``scores = sum_k dropout(W_k aggr_{i in graph} h_i^(k) + b_k)`` over the input (k = 0) and all
    layers. With ``hidden``, an MLP on the last layer's readout gives the scores instead.

    Args:
        in_channels: Number of node features.
        num_classes: Number of classes of graphs.
        aggr: ``"sum"``, ``"mean"``, ``"max"``, ``"vpa"`` or ``"power(p)"``, for neighbours and for
            the readout.
        width: Width of the layers.
        depth: Number of layers.
        dropout: Probability of dropping a level's score (or, with ``hidden``, a pooled feature).
        hidden: Width of the MLP's hidden layer; None: the levels' scores are added.

    Example:
        >>> import torch
        >>> model = GIN(in_channels=7, num_classes=2, aggr="vpa")
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> model(torch.randn(5, 7), edge_index, torch.tensor([0, 0, 1, 1, 1])).shape
        torch.Size([2, 2])
    """

    name = "gin"
    mixes = "with_self"
    variants: ClassVar = {"printed": {"depth": 5, "hidden": 64}}

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        aggr: str = "vpa",
        *,
        width: int = 64,
        depth: int = 4,
        dropout: float = 0.5,
        hidden: int | None = None,
    ) -> None:
        super().__init__(in_channels, width, depth, aggr)
        widths = [in_channels] + [width] * depth
        self.convs = nn.ModuleList(_GINConv(wide, width) for wide in widths[:-1])
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(depth))
        if hidden is None:
            self.head = LevelsHead(widths, num_classes, dropout)
        else:
            self.head = MLPHead(width, hidden, num_classes, dropout)

    def terms(self) -> list[LayerTerms]:
        """List what each layer adds up; the norms behind the products take biases out again.

        Example:
            >>> GIN(7, 2, depth=1).terms()[0].normalised
            True
        """
        first = [cast(Linear, cast(_GINConv, conv).nn[0]) for conv in self.convs]
        return [LayerTerms(lin, [(lin.weight, "with_self")], None, True) for lin in first]

    def _row_parameters(self, batch: LevelBatch) -> dict[str, int]:
        levels: dict[str, int] = {}  # of no bias: the norms take them out
        for number, hop in enumerate(batch.hops):
            levels[f"convs.{number}.nn.0.weight"] = number if hop.is_sum else number + 1
            levels[f"convs.{number}.nn.3.weight"] = number + 1
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
        levels = [self._checked(x, batch)]
        for conv, norm, hop in zip(self.convs, self.norms, batch.hops, strict=True):
            levels.append(conv(levels[-1], hop, self.aggr, norm))
        return self._scores(levels, batch, uniform)
