"""The paper's ten splits into training, validation and test graphs."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import UsageError

_TRAIN_SHARE = 0.888889  # of what is not test: 8/10, 1/10 and 1/10 of all, as released


class Split(NamedTuple):
    """The graphs of one fold, as indices in int64.

    Example:
        >>> Split(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3])).test
        tensor([3])
    """

    train: Tensor
    valid: Tensor
    test: Tensor


def splits(y: Tensor, folds: int = 10, seed: int = 42) -> list[Split]:
    """Split graphs as the paper's released code does.

    The test folds are stratified and shuffled; of the other graphs a stratified ninth is the
    validation set. The same seed serves every fold.

    Args:
        y: Class of each graph: [G].
        folds: Number of folds, and so of splits.
        seed: Seed of all the shuffling.

    Raises:
        UsageError: A class has fewer members than there are folds, or `y` are no classes.

    Example:
        >>> ten = splits(torch.arange(100) % 2)
        >>> [len(part) for part in ten[0]]
        [80, 10, 10]
    """
    from sklearn.model_selection import StratifiedKFold, train_test_split

    if folds < 2 or len(y) == 0:
        raise UsageError(
            f"{folds} fold(s) of {len(y)} graph(s): 2 folds or more, and graphs, please"
        )
    if y.is_floating_point():
        raise UsageError(f"y must be whole numbers, the classes, but is of {y.dtype}")
    labels = y.numpy()
    classes, members = np.unique(labels, return_counts=True)
    for rare, count in zip(classes, members, strict=True):
        if count < folds:
            raise UsageError(
                f"class {rare} has {count} member(s), too few for {folds} folds: use fewer folds, "
                "or leave the class out"
            )
    parts = []
    for rest, test in StratifiedKFold(folds, shuffle=True, random_state=seed).split(labels, labels):
        try:
            train, valid = train_test_split(
                rest, train_size=_TRAIN_SHARE, stratify=labels[rest], random_state=seed
            )
        except ValueError as error:
            raise UsageError(
                f"{len(rest)} graphs of {len(classes)} classes are too few to take a validation "
                f"set from ({error}): use more data"
            ) from error
        parts.append(Split(*(torch.from_numpy(part) for part in (train, valid, test))))
    return parts
