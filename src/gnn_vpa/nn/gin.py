"""The graph isomorphism network (Xu et al., 2019)."""

from functools import partial
from typing import ClassVar, cast

from torch import Tensor, nn

from ._batch_norm import BatchNorm
from ._fused_mlp import MLP, is_fusible
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

    def forward(
        self, x: Tensor, hop: Hop, aggr: str, norm: BatchNorm, ahead: Tensor | None = None
    ) -> Tensor:
        """Return ``relu(norm(MLP(x_i + aggr_j x_j)))``; both biases are left to the norms.

        Args:
            x: Rows before the hop.
            hop: To the rows after it.
            aggr: The aggregation.
            norm: Behind the MLP.
            ahead: The first product of ``x``, where it is known already.
        """
        x = self._mixed(x, hop, aggr, ahead)
        x = self.nn[1](x, hop.rows, offset=self.first.bias, relu=True)
        out: Tensor = norm(self.last(x, bias=False), hop.rows, offset=self.last.bias, relu=True)
        return out

    def fused(
        self,
        x: Tensor,
        hop: Hop,
        aggr: str,
        norm: BatchNorm,
        ahead: Tensor | None,
        following: Tensor | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Return what ``forward`` does, and its product with the next layer's first weights.

        Args:
            x: Rows before the hop.
            hop: To the rows after it, which `is_fusible` must allow.
            aggr: The aggregation.
            norm: Behind the MLP.
            ahead: The first product of ``x``, where it is known already.
            following: The first weights of the next layer; None: there is no such product.
        """
        mlp = MLP(self.first.bias, cast(BatchNorm, self.nn[1]), self.last, norm, following)
        return mlp(self._mixed(x, hop, aggr, ahead), cast(LaneRows, hop.rows))

    @property
    def first(self) -> Linear:
        """The first product."""
        return cast(Linear, self.nn[0])

    @property
    def last(self) -> Linear:
        """The last product."""
        return cast(Linear, self.nn[3])

    def _mixed(self, x: Tensor, hop: Hop, aggr: str, ahead: Tensor | None) -> Tensor:
        """Return ``W (x_i + aggr_j x_j)``."""
        mix = partial(hop.with_self, aggr=aggr)
        if not hop.is_sum:
            mixed: Tensor = self.first(x, mix, bias=False)
            return mixed
        # A weighted sum may follow the product, before which there are fewer rows.
        return mix(self.first(x, bias=False) if ahead is None else ahead)


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
        first = [cast(_GINConv, conv).first for conv in self.convs]
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
        levels, ahead = [self._checked(x, batch)], None
        layers = [cast(_GINConv, conv) for conv in self.convs]
        begins = [
            c.first.weight if h.is_sum else None for c, h in zip(layers, batch.hops, strict=True)
        ]
        steps = zip(layers, self.norms, batch.hops, [*begins[1:], None], strict=True)
        for conv, norm, hop, following in steps:
            given = (levels[-1], hop, self.aggr, cast(BatchNorm, norm), ahead)
            if self.training and is_fusible(hop.rows, conv.last.weight, following):
                level, ahead = conv.fused(*given, following)
            else:
                level, ahead = conv(*given), None
            levels.append(level)
        return self._scores(levels, batch, uniform)
