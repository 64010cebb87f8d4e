"""When two scores are the same: nothing is between them but what rounding leaves.

An error is in the data's own unit, 1e-8 of something or 1e8 of it. So what counts as rounding is a
share of the scores that are compared, and no number by itself.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A double keeps sixteen digits, and means of means lose one or two of them. Of an accuracy of
# 100 % this is 1e-9, far less than one graph in millions.
_SHARE = 1e-11


def usual(*scores: ArrayLike) -> float:
    """How large scores are that are compared: the smallest of what is usual for each candidate.

    Usual is the median, whatever the signs: of a training that exploded an error may be 1e13, which
    says nothing about the others.

    Args:
        *scores: Those of a candidate, ``[folds]``, or of several, ``[folds, candidates]``.

    Example:
        >>> usual([0.5, -0.5, 1e13], [1.0, float("nan")])
        0.5
    """
    return min(sizes(*scores), default=0.0)


def sizes(*scores: ArrayLike) -> list[float]:
    """What is usual for each candidate that has any score but zeros, see `usual`.

    Example:
        >>> sizes([[0.5, 0.0], [0.7, 0.0]], [-2.0, float("nan")])
        [0.6, 2.0]
    """
    parts = [np.abs(np.asarray(part, dtype=float)) for part in scores]
    columns = [column for part in parts for column in np.atleast_2d(part.T)]
    counted = [column[np.isfinite(column) & (column > 0)] for column in columns]
    return [float(np.median(column)) for column in counted if column.size]


def last_bits(size: float) -> float:
    """How far apart scores of such a size may be that are the same.

    Example:
        >>> 0.3 - 0.2 - 0.1 == 0, abs(0.3 - 0.2 - 0.1) <= last_bits(0.3)
        (False, True)
    """
    return _SHARE * size


def settled(values: ArrayLike, within: float) -> NDArray[np.float64]:
    """Give values that are no further apart than that the same value, the smallest of them.

    Example:
        >>> settled([0.3, 0.5, 0.1 + 0.2], last_bits(0.5)).tolist()
        [0.3, 0.5, 0.3]
    """
    found = np.array(values, dtype=float)
    if not found.size:
        return found
    order = np.argsort(found, kind="stable")
    with np.errstate(invalid="ignore"):  # between two that are not finite
        steps = ~(np.diff(found[order], prepend=-np.inf) <= within)  # which stand alone
    found[order] = found[order][steps][np.cumsum(steps) - 1]
    return found
