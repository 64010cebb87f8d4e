"""Means over folds that share their training data, after Nadeau and Bengio (2003)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from .rounding import last_bits, usual

TEST_PER_TRAIN = 1 / 8
"""Graphs in a test fold for each graph in training: 1/10 and 8/10 in the paper's protocol."""

_TRAINED_ON = 8 / 9  # of what is not test: the rest is for validation


def per_train(folds: int) -> float:
    """Graphs in a test fold for each graph in training, with so many folds.

    A ninth of what is not tested on is for validation, however many folds there are.

    Example:
        >>> round(per_train(10), 6), round(per_train(5), 6)
        (0.125, 0.28125)
    """
    return 1 / (_TRAINED_ON * (folds - 1))


@dataclass(frozen=True)
class Estimate:
    """An estimated mean with the variance of the estimate and its degrees of freedom.

    Args:
        mean: the estimate.
        variance: its variance (not that of the observations); NaN where it is not known.
        dof: degrees of freedom of the variance; 0 where one observation is all, of a data set too.
        above: how many observations are above zero. Signs are all there is where the variance is 0.
        below: how many are below zero.

    Example:
        >>> low, high = Estimate(mean=2.0, variance=1.0, dof=1e9).interval()
        >>> round(low, 2), round(high, 2)
        (0.04, 3.96)
        >>> Estimate(mean=0.0, variance=1.0, dof=9).p_greater
        0.5
    """

    mean: float
    variance: float
    dof: float
    above: int = field(default=0, repr=False)
    below: int = field(default=0, repr=False)

    @property
    def p_greater(self) -> float:
        """One-sided p-value of the t-test: the mean is greater than zero.

        Where all observations are the same there is no t-test, and signs alone count.
        """
        from scipy.stats import t

        if math.isnan(self.variance):
            return float("nan")
        if self.variance == 0:
            return self._by_signs(self.above)
        return float(t.sf(self.mean / math.sqrt(self.variance), self.dof))

    @property
    def p_signs(self) -> float:
        """One-sided p-value of the sign test: zero is not on the other side of the mean.

        All of ``n`` signs are the same with a chance of ``2^-n``. Zeros have no sign, and of
        several data sets those that point the other way count against it.

        Example:
            >>> corrected_mean([2.0, 2.0, 2.0]).p_signs, corrected_mean([0.0, 0.0]).p_signs
            (0.125, 1.0)
        """
        if self.mean == 0:
            return 1.0
        return self._by_signs(self.above if self.mean > 0 else self.below)

    def _by_signs(self, count: int) -> float:
        """With which chance coins show at least so many heads, one for each sign that there is."""
        signs = self.above + self.below
        return sum(math.comb(signs, heads) for heads in range(count, signs + 1)) / (1 << signs)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The two-sided confidence interval of the mean.

        NaN where the variance is unknown: with one observation, or with equal ones whose signs do
        not tell their mean from zero.
        """
        from scipy.stats import t

        if math.isnan(self.variance):
            return float("nan"), float("nan")
        if self.variance == 0:
            is_known = self.mean == 0 or 2 * self.p_signs <= 1 - confidence
            return (self.mean, self.mean) if is_known else (float("nan"), float("nan"))
        half = float(t.ppf((1 + confidence) / 2, self.dof)) * math.sqrt(self.variance)
        return self.mean - half, self.mean + half


def corrected_mean(
    differences: ArrayLike,
    test_per_train: float = TEST_PER_TRAIN,
    *,
    size: float | None = None,
) -> Estimate:
    """The mean of one difference a fold, with Nadeau and Bengio's corrected variance.

    Trainings of different folds see mostly the same graphs, so the differences are not
    independent and the variance s^2 / n of their mean is too small. The corrected one is

        (1 / n + test_per_train) * s^2,    s^2 = sum_i (d_i - mean)^2 / (n - 1)

    with n - 1 degrees of freedom. With r repeats of k folds n = r k: repeats make the first term
    smaller and not the second, which only more data do. A NaN (a diverged fold) is left out.

    Args:
        differences: one number for each fold of each repeat.
        test_per_train: how many graphs are tested on for each one trained on.
        size: the usual size of the scores that the differences are between: beside it one tells
            what rounding has left of equal scores. None for that of the differences.

    Example:
        >>> estimate = corrected_mean([1.0, 3.0], test_per_train=0.5)
        >>> estimate.mean, estimate.variance, estimate.dof  # s^2 = 2
        (2.0, 2.0, 1)
    """
    values = np.asarray(differences, dtype=float)
    values = values[~np.isnan(values)]
    n = len(values)
    mean = float(np.mean(values)) if n else float("nan")
    within = last_bits(usual(values) if size is None else size)
    above, below = int(np.sum(values > within)), int(np.sum(values < -within))
    if n < 2:
        return Estimate(mean, float("nan"), 0, above, below)
    # Equal differences must have variance 0, whatever the last bits of their mean.
    if np.ptp(values) <= within:
        return Estimate(mean if above or below else 0.0, 0.0, n - 1, above, below)
    spread = float(np.var(values, ddof=1))
    return Estimate(mean, (1 / n + test_per_train) * spread, n - 1, above, below)


def average(estimates: Sequence[Estimate]) -> Estimate:
    """The unweighted average of independent estimates, one for each data set.

    Its variance is sum_k v_k / K^2; its degrees of freedom are Welch and Satterthwaite's. It
    speaks of these data sets, not of data sets in general. Where one of them has the same
    difference on all of too few folds, its variance is not known, and nor is the average's.

    Example:
        >>> average([Estimate(1.0, 2.0, 9), Estimate(3.0, 2.0, 9)])
        Estimate(mean=2.0, variance=1.0, dof=18.0)
    """
    if not estimates:
        return Estimate(float("nan"), float("nan"), 0)
    count = len(estimates)
    total = sum(e.variance for e in estimates)
    if total > 0 and any(e.variance == 0 and math.isnan(e.interval()[0]) for e in estimates):
        total = math.nan  # of such sets alone, signs are what counts
    parts = sum(e.variance**2 / e.dof for e in estimates if e.variance > 0)
    dof = total**2 / parts if parts > 0 else float(sum(e.dof for e in estimates))
    if math.isnan(total):
        dof = float(min(e.dof for e in estimates))
    mean = sum(e.mean for e in estimates) / count
    # Leads of certain estimates that cancel each other leave 0, whatever their last bits.
    if total == 0 and abs(mean) <= last_bits(usual([e.mean for e in estimates])):
        mean = 0.0
    above, below = sum(e.above for e in estimates), sum(e.below for e in estimates)
    return Estimate(mean, total / count**2, dof, above, below)
