"""Test graphs that a network has seen in training, for all it can tell."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..graphs import Split
from ..graphs.alike import members


class Twins(NamedTuple):
    """Test graphs of all folds that have a twin: one that is alike, and was not held out for test.

    Attributes:
        tested: How many graphs are tested, over all folds.
        found: How many of them have a twin among the training and validation graphs of their fold.
        right: How many labels a look-up table has right.

    Example:
        >>> Twins(tested=1500, found=1206, right=720).accuracy
        0.48
    """

    tested: int
    found: int
    right: int

    @property
    def share(self) -> float:
        """The share of the test graphs that have a twin."""
        return self.found / self.tested

    @property
    def accuracy(self) -> float:
        """The accuracy of the look-up table."""
        return self.right / self.tested


def twins_of(kinds: Tensor, y: Tensor, folds: Sequence[Split]) -> Twins:
    """Look every test graph up among the other graphs of its fold.

    The table's answer is the most frequent label of the twins; where they disagree evenly, or where
    there is none, the class of these that is most frequent in training, the first one among equals.

    Args:
        kinds: The same number for graphs that are alike: [G].
        y: Classes: [G].
        folds: The splits.

    Example:
        >>> kinds, y = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 0])
        >>> split = Split(torch.tensor([0]), torch.tensor([2]), torch.tensor([1, 3]))
        >>> twins_of(kinds, y, [split])
        Twins(tested=2, found=2, right=1)
    """
    shape = int(kinds.max()) + 1, int(y.max()) + 1
    tested = found = right = 0
    for train, valid, test in folds:
        seen = torch.cat([train, valid])
        table = members(kinds[seen], y[seen], shape)
        frequency = torch.bincount(y[train], minlength=shape[1])
        rows = table[kinds[test]]
        answer = (rows * (len(y) + 1) + frequency).argmax(dim=1)
        tested += len(test)
        found += int((rows.sum(dim=1) > 0).sum())
        right += int((answer == y[test]).sum())
    return Twins(tested, found, right)
