"""What the columns of the node features hold."""

from typing import NamedTuple

import torch

from ..graphs import Features


class Columns(NamedTuple):
    """The node features that a network sees.

    Attributes:
        width: Number of columns.
        dense: How many of them, the first, are numbers; the others are one-hot.
        constant: Columns that are the same for all nodes, counted from 0.
        kinds: How many different rows there are.
        largest: The largest absolute value.
        mean_square: The mean square over all nodes and columns: the signal that a network starts
            from.
    """

    width: int
    dense: int
    constant: tuple[int, ...]
    kinds: int
    largest: float
    mean_square: float

    @property
    def tell_nothing(self) -> bool:
        """Whether all nodes have the same features."""
        return self.kinds < 2


def columns_of(own: Features, kinds: torch.Tensor) -> Columns:
    """Look at every column.

    Args:
        own: The features.
        kinds: The same number for nodes of the same features: [N].
    """
    dense = 0 if own.dense is None else own.dense.shape[1]
    constant: list[int] = []
    largest = squares = 0.0
    if own.dense is not None and own.dense.numel():
        low, high = own.dense.min(dim=0).values, own.dense.max(dim=0).values
        constant += (low == high).nonzero().flatten().tolist()
        largest = float(torch.maximum(low.abs(), high.abs()).max())
        squares = float(own.dense.double().square().sum())
    if own.codes is not None and len(own.codes):
        count = torch.bincount(own.codes, minlength=own.num_codes)
        same = (count == 0) | (count == len(own.codes))
        constant += (dense + same.nonzero().flatten()).tolist()
        largest = max(largest, 1.0)
        squares += len(own.codes)
    entries = len(kinds) * own.width
    return Columns(
        width=own.width,
        dense=dense,
        constant=tuple(constant),
        kinds=len(torch.unique(kinds)),
        largest=largest,
        mean_square=squares / entries if entries else 0.0,
    )
