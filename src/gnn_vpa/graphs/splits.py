"""Folds of training, validation and test graphs: the paper's, and the same for other targets."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import UsageError
from .targets import kind_of, known

_TRAIN_SHARE = 0.888889  # of what is not test: 8/10, 1/10 and 1/10 of all, as released
_REST_PARTS = 9  # so many parts has what is not test; groups divide it, and one is for validation

Indices = NDArray[np.int64]


class Split(NamedTuple):
    """The graphs of one fold, as indices in int64.

    Example:
        >>> Split(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3])).test
        tensor([3])
    """

    train: Tensor
    valid: Tensor
    test: Tensor


def splits(
    y: Tensor,
    folds: int = 10,
    seed: int = 42,
    groups: NDArray[np.int64] | None = None,
    classes: Sequence[object] | None = None,
) -> list[Split]:
    """Split graphs as the paper's released code does.

    The test folds are shuffled, and of the other graphs a ninth is the validation set; both are
    stratified where the target are classes. Several labels at once and numbers have no strata that
    everybody would agree on: their folds are shuffled alone. The same seed serves every fold.
    Graphs without any target are in no part.

    Args:
        y: Target of each graph, see `GraphSet`: [G] or [G, T].
        folds: Number of folds, and so of splits.
        seed: Seed of all the shuffling.
        groups: Group of each graph: [G]. Those of one group stay together in every split, and
            classes are stratified as far as that allows.
        classes: What messages call each class, see `GraphSet.classes`; None for its number.

    Raises:
        UsageError: A class has fewer members than there are folds, or there are too few graphs or
            groups.

    Example:
        >>> ten = splits(torch.arange(100) % 2)
        >>> [len(part) for part in ten[0]]
        [80, 10, 10]
    """
    if folds < 2 or len(y) == 0:
        raise UsageError(
            f"{folds} fold(s) of {len(y)} graph(s): 2 folds or more, and graphs, please"
        )
    there = graphs_with_target(y).numpy()
    strata = y.numpy()[there] if kind_of(y) == "classes" else None
    if strata is not None:
        _check_classes(strata, folds, classes)
    if len(there) < folds:
        raise UsageError(
            f"{len(there)} graph(s) with a target are too few for {folds} folds: use fewer folds"
        )
    if groups is None:
        parts = _shuffled(len(there), strata, folds, seed)
    else:
        parts = _by_group(groups[there], strata, folds, seed)
    return [Split(*(torch.from_numpy(there[part]) for part in split)) for split in parts]


def graphs_with_target(y: Tensor) -> Tensor:
    """Return the graphs that have a target, or one of several, as indices: [K], int64.

    Example:
        >>> graphs_with_target(torch.tensor([0, -1, 1]))
        tensor([0, 2])
    """
    there = known(y)
    return (there if y.dim() == 1 else there.any(1)).nonzero().flatten()


def _check_classes(labels: Indices, folds: int, names: Sequence[object] | None) -> None:
    classes, members = np.unique(labels, return_counts=True)
    for rare, count in zip(classes, members, strict=True):
        if count < folds:
            name = names[rare] if names else rare
            raise UsageError(
                f"class {name} has {count} member(s), too few for {folds} folds: use fewer folds, "
                "or leave the class out"
            )


def _shuffled(
    count: int, classes: Indices | None, folds: int, seed: int
) -> Iterator[tuple[Indices, Indices, Indices]]:
    from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

    kind = KFold if classes is None else StratifiedKFold
    for rest, test in kind(folds, shuffle=True, random_state=seed).split(np.zeros(count), classes):
        strata = None if classes is None else classes[rest]
        try:
            train, valid = train_test_split(
                rest, train_size=_TRAIN_SHARE, stratify=strata, random_state=seed
            )
        except ValueError as error:
            of_classes = "" if strata is None else f" of {len(np.unique(strata))} classes"
            raise UsageError(
                f"{len(rest)} graphs{of_classes} are too few to take a validation "
                f"set from ({error}): use more data"
            ) from error
        yield train, valid, test


def _by_group(
    groups: Indices, classes: Indices | None, folds: int, seed: int
) -> Iterator[tuple[Indices, Indices, Indices]]:
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    def divide(rows: Indices, parts: int) -> Iterator[tuple[Indices, Indices]]:
        strata = None if classes is None else classes[rows]
        kind = GroupKFold if classes is None else StratifiedGroupKFold
        cut = kind(parts, shuffle=True, random_state=seed).split(rows, strata, groups[rows])
        yield from ((rows[most], rows[few]) for most, few in cut)

    there = len(np.unique(groups))
    if there < max(folds, 3):
        raise UsageError(
            f"{there} group(s) that stay together are too few for {folds} folds of training, "
            "validation and test graphs: use fewer folds, or smaller groups"
        )
    for number, (rest, test) in enumerate(divide(np.arange(len(groups)), folds)):
        left = min(_REST_PARTS, len(np.unique(groups[rest])))
        train, valid = next(divide(rest, left)) if left > 1 else (rest, rest[:0])
        for part, rows in (("training", train), ("validation", valid), ("test", test)):
            if len(rows) == 0:
                raise UsageError(
                    f"fold {number} has no {part} graphs, because groups stay together: use fewer "
                    "folds, or smaller groups"
                )
        yield train, valid, test
