"""From node features to the scores of a graph's classes."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from ._checks import check_counts
from ._dropout import Dropout
from ._linear import Linear, Mix, product


class MLPHead(nn.Module):
    """``W2 relu(W1 dropout(pool(h)) + b1) + b2`` on the last layer's features ``h``."""

    def __init__(self, width: int, hidden: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        check_counts(hidden=hidden, num_classes=num_classes)
        self.dropout = Dropout(dropout)
        self.lin1 = Linear(width, hidden)
        self.lin2 = Linear(hidden, num_classes)

    def forward(
        self,
        levels: Sequence[Tensor],
        pools: Sequence[Mix],
        uniform: Tensor | None,
        first: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``[graphs, classes]`` from the last of the levels ``[rows, width]``."""
        x = self.dropout(pools[-1](levels[-1]), uniform)
        scores: Tensor = self.lin2(self.lin1(x).relu())
        return scores

    def dropout_shape(self, num_graphs: int) -> tuple[int, ...]:
        """Return the shape of the random numbers that dropout needs."""
        return (num_graphs, self.lin1.in_features)


class LevelsHead(nn.Module):
    """``sum_k dropout(W_k pool(h_k) + b_k)`` over the input and every layer's features ``h_k``."""

    def __init__(self, widths: Sequence[int], num_classes: int, dropout: float) -> None:
        super().__init__()
        check_counts(num_classes=num_classes)
        self.lins = nn.ModuleList(Linear(width, num_classes) for width in widths)
        self.dropout = Dropout(dropout)
        self.num_classes = num_classes

    def forward(
        self,
        levels: Sequence[Tensor],
        pools: Sequence[Mix],
        uniform: Tensor | None,
        first: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``[graphs, classes]`` from all levels ``[rows, width]``.

        Each level has its own of the ``pools``. With ``first``, the readout of the input
        ``[graphs, in]``, there is one, which reads all other levels out in one go: their rows one
        level after the other give the graphs as often.
        """
        if first is None:
            own = [lin(x, pool) for lin, x, pool in zip(self.lins, levels, pools, strict=True)]
            scores = torch.stack(own)
        else:
            known = self.lins[0](first).unsqueeze(0)
            scores = torch.cat([known, self._others(pools[0](torch.cat(list(levels[1:]))))])
        dropped: Tensor = self.dropout(scores, uniform)
        return dropped.sum(0)

    def _others(self, pooled: Tensor) -> Tensor:
        """Return the scores of all levels but the first, whose weights are like lanes."""
        lins = cast(list[Linear], list(self.lins[1:]))
        weight = torch.stack([lin.weight for lin in lins])
        bias = torch.stack([lin.bias for lin in lins])
        own = product(pooled, weight.view(-1, *weight.shape[-2:]), bias.view(-1, bias.shape[-1]))
        return own.view(len(weight), -1, self.num_classes)

    def dropout_shape(self, num_graphs: int) -> tuple[int, ...]:
        """Return the shape of the random numbers that dropout needs."""
        return (len(self.lins), num_graphs, self.num_classes)
