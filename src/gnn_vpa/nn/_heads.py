"""From node features to the scores of a graph's classes."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ._checks import check_counts
from ._dropout import Dropout
from ._lanes import add_bias
from ._linear import Linear, Mix


class Pool(NamedTuple):
    """How rows become graphs: a sum for each level, or one for all of them one after the other."""

    mixes: Sequence[Mix]
    joint: bool


class MLPHead(nn.Module):
    """``W2 relu(W1 dropout(pool(h)) + b1) + b2`` on the last layer's features ``h``."""

    def __init__(self, width: int, hidden: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        check_counts(hidden=hidden, num_classes=num_classes)
        self.dropout = Dropout(dropout)
        self.lin1 = Linear(width, hidden)
        self.lin2 = Linear(hidden, num_classes)

    def forward(self, levels: Sequence[Tensor], pool: Pool, uniform: Tensor | None) -> Tensor:
        """Return scores ``[graphs, classes]`` from the last of the levels ``[rows, width]``."""
        mix = pool.mixes[-1]
        x = self.dropout(mix(levels[-1]), uniform)
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

    def forward(self, levels: Sequence[Tensor], pool: Pool, uniform: Tensor | None) -> Tensor:
        """Return scores ``[graphs, classes]`` from all levels ``[rows, width]``."""
        scores = self._jointly(levels, pool.mixes[0]) if pool.joint else self._each(levels, pool)
        dropped: Tensor = self.dropout(scores, uniform)
        return dropped.sum(0)

    def _each(self, levels: Sequence[Tensor], pool: Pool) -> Tensor:
        own = zip(self.lins, levels, pool.mixes, strict=True)
        return torch.stack([lin(x, mix) for lin, x, mix in own])

    def _jointly(self, levels: Sequence[Tensor], mix: Mix) -> Tensor:
        """Read out scores in the place of features: few columns, and one sum for all levels."""
        rows = [lin(x, bias=False) for lin, x in zip(self.lins, levels, strict=True)]
        bias = torch.stack([lin.bias for lin in self.lins]).view(-1, self.num_classes)
        scores = add_bias(mix(torch.cat(rows)), bias)
        return scores.view(len(rows), -1, self.num_classes)

    def dropout_shape(self, num_graphs: int) -> tuple[int, ...]:
        """Return the shape of the random numbers that dropout needs."""
        return (len(self.lins), num_graphs, self.num_classes)
