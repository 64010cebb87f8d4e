"""The graph isomorphism network (Xu et al., 2019)."""

from functools import partial
from typing import get_args

from torch import Tensor, nn

from ..ops import Aggregation
from ._batch_norm import BatchNorm, Counts
from ._blocks import Blocks
from ._checks import checked_choice
from ._heads import LevelsHead, MLPHead
from ._layers import Layers
from ._linear import Linear, Mix
from ._message import GraphLike, WithSelf, with_self
from ._model import Model, Readout


class _GINConv(nn.Module):
    """``MLP(x_i + aggr_j x_j)``: Linear, BatchNorm, ReLU, Linear, then a norm and a ReLU."""

    def __init__(self, in_channels: int, width: int) -> None:
        super().__init__()
        first, last = Linear(in_channels, width), Linear(width, width)
        self.nn = nn.Sequential(first, BatchNorm(width), nn.ReLU(), last)
        for lin in (first, last):
            lin.reset_parameters()  # PyG's layer draws twice: the same seed, the same weights

    def forward(
        self,
        x: Tensor,
        mix: Mix,
        nodes: Tensor | Counts | Blocks | None,
        norm: BatchNorm,
        late: bool = False,
    ) -> Tensor:
        """Return ``relu(norm(MLP(mix(x))))``; both biases are left to the norms behind them.

        With ``late``, ``mix`` is linear and follows the first product: where it makes more rows.
        """
        first, inner, _, last = self.nn
        x = mix(first(x, bias=False)) if late else first(x, mix, bias=False)
        x = inner(x, nodes, offset=first.bias, relu=True)
        out: Tensor = norm(last(x, bias=False), nodes, offset=last.bias, relu=True)
        return out


class GIN(Model):
    r"""GIN: ``h_i <- relu(BatchNorm(MLP(h_i + aggr_j h_j)))``, and a score of every level.

    ``scores = sum_k dropout(W_k aggr_{i in graph} h_i^(k) + b_k)`` over the input (k = 0) and all
    layers. With ``hidden``, an MLP on the last layer's readout gives the scores instead.

    Args:
        in_channels: Number of node features.
        num_classes: Number of classes of graphs.
        aggr: ``"sum"``, ``"mean"``, ``"max"`` or ``"vpa"``, for neighbours and for the readout.
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
        super().__init__(in_channels, width, depth)
        self.aggr: Aggregation = checked_choice("aggr", aggr, get_args(Aggregation))
        widths = [in_channels] + [width] * depth
        self.convs = nn.ModuleList(_GINConv(wide, width) for wide in widths[:-1])
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(depth))
        if hidden is None:
            self.head = LevelsHead(widths, num_classes, dropout)
        else:
            self.head = MLPHead(width, hidden, num_classes, dropout)

    def _row_parameters(self, graph: Layers | None) -> dict[str, int]:
        assert graph is not None
        levels: dict[str, int] = {}  # of no bias: the norms take them out
        for number, hop in enumerate(graph.hops):
            levels[f"convs.{number}.nn.0.weight"] = number if hop.is_sum else number + 1
            levels[f"convs.{number}.nn.3.weight"] = number + 1
        return levels

    def forward(
        self,
        x: Tensor,
        graph: GraphLike | WithSelf | Layers,
        readout: Readout,
        nodes: Tensor | Blocks | None = None,
        uniform: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``[graphs, num_classes]``."""
        # The maximum is not linear: codes cannot be looked up before it.
        late = isinstance(graph, Layers) and graph.hops[0].is_sum
        x = self._checked(x, nodes, written_out=self.aggr == "max" and not late)
        way: list[tuple[Mix, Tensor | Counts | Blocks | None, bool]]
        if isinstance(graph, Layers):
            way = [(hop.with_self(self.aggr), hop.nodes, hop.is_sum) for hop in graph.hops]
        else:
            own_mix = partial(with_self, graph=graph, aggr=self.aggr)
            way = [(own_mix, nodes, False)] * len(self.convs)
        levels = [x]
        for conv, norm, (mix, own, late) in zip(self.convs, self.norms, way, strict=True):
            levels.append(conv(levels[-1], mix, own, norm, late))
        return self._scores(levels, readout, self.aggr, uniform)
