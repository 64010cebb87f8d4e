"""From node features to the scores of a graph's classes."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ._checks import check_counts
from ._dropout import Dropout
from ._linear import Linear, Mix


class MLPHead(nn.Module):
    """``W2 relu(W1 dropout(pool(h)) + b1) + b2`` on the last layer's features ``h``."""

    def __init__(self, width: int, hidden: int, num_classes: int, dropout: float) -> None:
        super().__init__()
        check_counts(hidden=hidden, num_classes=num_classes)
        self.dropout = Dropout(dropout)
        self.lin1 = Linear(width, hidden)
        self.lin2 = Linear(hidden, num_classes)

    def forward(self, levels: Sequence[Tensor], pool: Mix, uniform: Tensor | None) -> Tensor:
        """Return scores ``[graphs, classes]`` from the last of the levels ``[nodes, width]``."""
        x = self.dropout(pool(levels[-1]), uniform)
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

    def forward(self, levels: Sequence[Tensor], pool: Mix, uniform: Tensor | None) -> Tensor:
        """Return scores ``[graphs, classes]`` from all levels ``[nodes, width]``."""
        scores = [lin(x, pool) for lin, x in zip(self.lins, levels, strict=True)]
        dropped: Tensor = self.dropout(torch.stack(scores), uniform)
        return dropped.sum(0)

    def dropout_shape(self, num_graphs: int) -> tuple[int, ...]:
        """Return the shape of the random numbers that dropout needs."""
        return (len(self.lins), num_graphs, self.num_classes)
