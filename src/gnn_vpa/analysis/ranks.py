"""Tests on ranks: the paper's Wilcoxon test, and Holm's correction for asking several times."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .rounding import last_bits, settled, usual

_MOST_COUNTED = 13  # ranks with ties whose signs SciPy goes through; of more it takes the limit


@dataclass(frozen=True)
class RankTest:
    """What `paired_wilcoxon` found.

    Args:
        pairs: how many pairs were compared, those without a difference included.
        p: the one-sided p-value.
        rank_biserial: the effect size that belongs to the test, (W+ - W-) / (W+ + W-), from -1
            (every difference is negative) to 1 (every one is positive).

    Example:
        >>> RankTest(pairs=10, p=0.5, rank_biserial=0.0).pairs
        10
    """

    pairs: int
    p: float
    rank_biserial: float


def paired_wilcoxon(differences: ArrayLike, *, size: float | None = None) -> RankTest:
    """Test whether paired differences tend to be greater than zero (Wilcoxon's signed ranks).

    Pairs without a difference say nothing about its sign: they are left out, as in Wilcoxon's own
    procedure and SciPy's default. Where none is left p is 1. Small samples are exact. A NaN (a
    diverged fold) is no pair.

    Args:
        differences: one number a pair.
        size: the usual size of the scores that the differences are between: what is equal on paper
            differs in the last bits of a float, and beside this it is a zero or a tie. None for
            that of the differences.

    Example:
        >>> paired_wilcoxon([1, 2, 3, 4, 5]).p  # only one of 2^5 signs is as extreme
        0.03125
    """
    from scipy.stats import rankdata

    values = np.asarray(differences, dtype=float)
    values = values[~np.isnan(values)]
    within = last_bits(usual(values) if size is None else size)
    nonzero = values[np.abs(values) > within]
    if len(values) == 0:
        return RankTest(0, float("nan"), float("nan"))
    if len(nonzero) == 0:
        return RankTest(len(values), 1.0, 0.0)
    ranks = rankdata(settled(np.abs(nonzero), within))
    signed = ranks * np.sign(nonzero)
    return RankTest(
        pairs=len(values),
        p=_p_of_ties(signed) if _is_counted(signed) else _p_of(signed),
        rank_biserial=float(np.sum(signed) / np.sum(ranks)),
    )


def _p_of(signed: NDArray[np.float64]) -> float:
    """Return SciPy's p-value: ranks have the ranks of the differences themselves."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(signed, alternative="greater").pvalue)


def _is_counted(signed: NDArray[np.float64]) -> bool:
    """Say whether SciPy goes through all signs: there are ties, and not too many signs."""
    return len(signed) <= _MOST_COUNTED and len(np.unique(np.abs(signed))) < len(signed)


def _p_of_ties(signed: NDArray[np.float64]) -> float:
    """Return what `_p_of` does, for all signs at once: SciPy ranks anew for each of 2^n."""
    from scipy.stats import permutation_test

    def statistic(ranks: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        return np.asarray(np.maximum(ranks, 0.0).sum(axis=axis))

    found = permutation_test(
        (signed,), statistic, permutation_type="samples", vectorized=True, alternative="greater"
    )
    return float(found.pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: p-values that may be read together, in the order given.

    The smallest of m is multiplied by m, the next by m - 1 and so on; a corrected value is never
    below the one before it, nor above 1. A NaN stays one and counts as no question asked.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    corrected = np.full(p.shape, np.nan)
    order = [index for index in np.argsort(p) if not np.isnan(p[index])]
    scaled = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(value) for value in corrected]
