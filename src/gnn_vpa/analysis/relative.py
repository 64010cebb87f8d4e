"""Errors in the data's own unit: in percent they can be averaged over data sets."""

import numpy as np
from numpy.typing import ArrayLike

from .rounding import sizes


def percent(scores: ArrayLike) -> float:
    """What a data set's scores are multiplied by to be in percent of their median.

    That is the median over methods of each one's median over folds. Of a training that exploded an
    error may be 1e13: a mean with it would make all that others differ by nothing.

    Args:
        scores: of one model, ``[folds, methods]``; NaN where there is none.

    Example:
        >>> percent([[0.4, 0.5, 0.6], [0.4, 0.5, 1e13], [0.4, 0.5, 0.6]])
        200.0
    """
    found = sizes(scores)
    return 100 / float(np.median(found)) if found else 100.0  # 0 where nobody errs
