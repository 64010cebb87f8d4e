"""A network of any depth without normalisation, whose residuals preserve the variance."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ..errors import UsageError
from ._lane_rows import LaneRows
from ._lanes import by_lane
from ._level_batch import LevelBatch
from ._terms import LayerTerms
from ._weighted_graph import GraphLike
from .gcn import GCN


class DeepGCN(GCN):
    r"""The paper's GCN with residuals that preserve the variance, for any number of layers.

    ``z_1 = f_1(x)``, ``z_l = sqrt(1 - a^2) z_{l-1} + a f_l(relu(z_{l-1}))``, and ``relu(z_L)`` is
    read out, with ``f(h)_i = W1 h_i + W2 aggr_j h_j + b``. The branch ends in fresh weights, so it
    is uncorrelated with what it is added to: if both have variance 1, so has the result. Nothing is
    normalised. Without a residual (``a = 1``) it is the GCN itself.

    Args:
        in_channels: Number of node features.
        num_classes: Number of classes of graphs.
        aggr: ``"sum"``, ``"mean"``, ``"max"``, ``"vpa"`` or ``"power(p)"``, for neighbours and for
            the readout.
        width: Width of the layers.
        depth: Number of layers.
        dropout: Probability of dropping a pooled feature.
        hidden: Width of the MLP's hidden layer.
        branch: ``a^2``, the share of the variance that each layer but the first renews; 1: no
            residual. With ``1 / depth`` the whole network renews it once, however deep.

    Example:
        >>> model = DeepGCN(in_channels=7, num_classes=2, depth=64, branch=1 / 64)
        >>> edge_index = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
        >>> model(torch.randn(5, 7), edge_index, torch.tensor([0, 0, 1, 1, 1])).shape
        torch.Size([2, 2])
    """

    name = "deep"
    lane_options = ("branch", "dropout")
    keeps_parent = True
    keep: Tensor  # sqrt(1 - a^2); buffers, so that lanes may differ in them
    renew: Tensor  # a

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        aggr: str = "vpa",
        *,
        width: int = 64,
        depth: int = 64,
        dropout: float = 0.5,
        hidden: int = 128,
        branch: float = 1.0,
    ) -> None:
        super().__init__(
            in_channels, num_classes, aggr, width=width, depth=depth, dropout=dropout, hidden=hidden
        )
        if not 0 < branch <= 1:
            raise UsageError(f"branch: expected a share above 0 and up to 1, got {branch}.")
        self.register_buffer("keep", torch.tensor(math.sqrt(1 - branch)))
        self.register_buffer("renew", torch.tensor(math.sqrt(branch)))

    def terms(self) -> list[LayerTerms]:
        """List what each layer adds up, residuals among it.

        Example:
            >>> [terms.keep for terms in DeepGCN(7, 2, depth=2, branch=0.36).terms()]
            [0.0, 0.8]
        """
        first, *others = super().terms()
        keep, renew = round(self.keep.item(), 7), round(self.renew.item(), 7)
        return [first, *(terms._replace(keep=keep, renew=renew) for terms in others)]

    def signals(
        self,
        x: Tensor,
        graph: GraphLike | LevelBatch,
        nodes: Tensor | LaneRows | None = None,
    ) -> Iterator[Tensor]:
        """Yield ``z_1`` to ``z_L``, ``[rows, width]``: the layers before their activation.

        Example:
            >>> pair = torch.tensor([[0, 1], [1, 0]])
            >>> [z.shape for z in DeepGCN(1, 2, width=8, depth=2).signals(torch.ones(2, 1), pair)]
            [torch.Size([2, 8]), torch.Size([2, 8])]
        """
        batch = self._batch(graph, None, nodes, len(self.convs))
        x = self._checked(x, batch)
        first, *others = zip(self.convs, batch.hops, strict=True)
        z = first[0](x, first[1], self.aggr)
        yield z
        for conv, hop in others:
            renewed = conv(z.relu(), hop, self.aggr)
            kept = _scaled(hop.from_parent(z), self.keep, hop.rows)
            z = kept + _scaled(renewed, self.renew, hop.rows)
            yield z

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
        for z in self.signals(x, batch):
            x = z
        return self._scores([x.relu()], batch, uniform)


def _scaled(x: Tensor, factor: Tensor, rows: LaneRows | Tensor | None) -> Tensor:
    """Multiply ``x`` by a number, or the rows of each lane by its own, ``[L]``."""
    if factor.dim() == 0:
        return x * factor
    if isinstance(rows, LaneRows) and rows.lane is not None:
        return x * factor[rows.row_lane].unsqueeze(1)
    return (by_lane(x, len(factor)) * factor.view(-1, 1, 1)).flatten(0, 1)
