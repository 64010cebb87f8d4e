"""Which candidates may be the best: comparisons with the best, with the variance of shared folds.

A candidate i is beaten where the leader b, the candidate of the best mean, is ahead of it by more
than chance allows:

    mean(x_b - x_i) > t(1 - alpha / (K - 1), dof) * sqrt(v),    v = (1/n + test/train) s^2

with Nadeau and Bengio's corrected variance v of the paired differences. That is Hsu's comparison
with the best (1984): only the K - 1 comparisons of the true best with its rivals can throw it out,
and each of them does so with probability alpha / (K - 1) at most, whoever leads by luck and however
the candidates are correlated. So those that are not beaten have the true best among them with
probability 1 - alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..resampled import Estimate, average, corrected_mean
from ..rounding import last_bits, settled, usual

ALPHA = 0.05
_DRAWS = 4000

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Folds:
    """The scores of all candidates on one data set, larger being better.

    Args:
        scores: [n, K], a row for each fold of each repeat.
        repeats: how often the folds were drawn.
        test_per_train: see `corrected_mean`.

    Example:
        >>> Folds(np.array([[0.7, 0.8], [0.6, 0.9]]), 1, 0.125).scores.shape
        (2, 2)
    """

    scores: Scores
    repeats: int
    test_per_train: float


@dataclass(frozen=True)
class Standing:
    """How a candidate stands against the leader; the leader against its runner-up.

    Args:
        mean: its score, averaged over folds and then data sets; larger is better.
        cost: how much worse than the leader; 0 for the leader and for what has the same mean.
        half: how far chance may move the difference, either way; NaN where that is not known.
        low: the cost is at least this, in 95 of 100 such experiments; 0 where it may be the best.
        high: the cost against the true best is at most this; NaN where that is not known.
        beaten: whether the leader beats it.

    Example:
        >>> contest([Folds(np.array([[0.5, 0.8], [0.6, 0.9], [0.5, 0.9]]), 1, 0.125)])[0].beaten
        True
    """

    mean: float
    cost: float
    half: float
    low: float
    high: float
    beaten: bool


def contest(data: Sequence[Folds], alpha: float = ALPHA) -> list[Standing]:
    """Compare candidates over data sets, each of which counts alike.

    Args:
        data: each data set's folds, with the same candidates.
        alpha: how often, at most, the true best may be missed.

    Returns:
        A standing for each candidate, in their order.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> scores = rng.normal([0.5, 0.8, 0.8], 0.03, (10, 3))
        >>> [standing.beaten for standing in contest([Folds(scores, 1, 0.125)])]
        [True, False, False]
    """
    means = np.mean([folds.scores.mean(axis=0) for folds in data], axis=0)
    level = settled(means, last_bits(usual(*(folds.scores for folds in data))))
    leader = int(level.argmax())
    order = sorted(range(len(level)), key=lambda i: -level[i])
    rivals = len(means) - 1
    halves, beaten, lows = {}, {}, {}
    for i in order[1:]:
        lead = difference(data, leader, i)
        halves[i] = margin(lead, rivals, alpha)
        beaten[i] = lead.mean > halves[i]  # False where it is NaN
        lows[i] = max(lead.mean - halves[i], 0.0) if beaten[i] else 0.0
    if rivals:
        halves[leader] = halves[order[1]]
    unbeaten = [i for i in order if not beaten.get(i, False)]
    return [
        Standing(
            mean=float(means[i]),
            cost=float(means[leader] - means[i]) if level[i] < level[leader] else 0.0,
            half=halves.get(i, math.nan),
            low=lows.get(i, 0.0),
            high=_most(data, i, unbeaten, rivals, alpha),
            beaten=beaten.get(i, False),
        )
        for i in range(len(means))
    ]


def difference(data: Sequence[Folds], first: int, second: int) -> Estimate:
    """How far one candidate is ahead of another, averaged over data sets."""
    return average(
        [
            corrected_mean(
                folds.scores[:, first] - folds.scores[:, second],
                folds.test_per_train,
                size=usual(folds.scores[:, [first, second]]),
            )
            for folds in data
        ]
    )


def margin(lead: Estimate, rivals: int, alpha: float) -> float:
    """How large a lead chance may make; NaN where one fold is all there is, of a data set too.

    Differences that are the same on all folds have no variance to tell. Then their signs are all
    that is used (`Estimate.p_signs`). A difference of 0 has not even that. Where too few folds of
    one of several data sets agree, a lead may be of any size.
    """
    from scipy.special import stdtrit

    if math.isnan(lead.variance):
        return math.inf if lead.dof else math.nan
    level = alpha / max(rivals, 1)
    if lead.variance == 0:
        return 0.0 if lead.p_signs <= level else math.inf
    return float(stdtrit(lead.dof, 1 - level)) * math.sqrt(lead.variance)


def leading(data: Sequence[Folds]) -> Scores:
    """In which share of resampled folds each candidate's mean is the best; ties are shared.

    Folds are drawn with replacement, and each mean's deviation is stretched so that its variance
    is the corrected one: folds that share training data vary together, which drawing them one by
    one does not show. NaN where a data set has one fold.
    """
    rng = np.random.default_rng(0)
    total = np.zeros((_DRAWS, data[0].scores.shape[1]))
    for folds in data:
        n = len(folds.scores)
        if n < 2:
            return np.full(total.shape[1], math.nan)
        drawn = rng.multinomial(n, np.full(n, 1 / n), _DRAWS) / n @ folds.scores
        mean = folds.scores.mean(axis=0)
        stretch = math.sqrt((1 + n * folds.test_per_train) * n / (n - 1))
        total += mean + stretch * (drawn - mean)
    best = total >= total.max(axis=1, keepdims=True) - last_bits(usual(total))
    shares: Scores = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


def _most(data: Sequence[Folds], i: int, unbeaten: list[int], rivals: int, alpha: float) -> float:
    """The most that candidate i may cost against the true best, which is one of the unbeaten."""
    most = [0.0]
    for j in unbeaten:
        if j != i:
            lead = difference(data, j, i)
            most.append(lead.mean + margin(lead, rivals, alpha))
    return math.nan if any(map(math.isnan, most)) else max(most)


@dataclass(frozen=True)
class Help:
    """What would tell a candidate from the leader, if their difference stays as it is.

    Args:
        repeats: so many repeats of the folds; None where no number of them is enough.
        data: so many times as many graphs, with the repeats that there are; NaN where they would
            not, the lead being the same on all of too few folds.

    Example:
        >>> Help(repeats=5, data=1.4).repeats
        5
    """

    repeats: int | None
    data: float


MOST_REPEATS = 100


def helps(data: Sequence[Folds], leader: int, i: int, alpha: float = ALPHA) -> Help:
    """Say what would tell a candidate from the leader.

    More repeats make 1/n of the corrected variance smaller and leave test/train as it is, so that
    for a small difference no number of them is enough. More graphs make all of it smaller. Of
    differences that are the same on every fold, repeats make more signs. Where data sets have
    different repeats, those with fewer get more.

    Example:
        >>> scores = np.array([[0.80, 0.79], [0.82, 0.80], [0.79, 0.80], [0.81, 0.79]])
        >>> helps([Folds(scores, 1, 0.125)], 0, 1).repeats
        6
    """
    rivals = data[0].scores.shape[1] - 1
    leads = [difference([folds], leader, i) for folds in data]
    lead = average(leads)
    if lead.mean <= 0:
        return Help(None, math.inf)

    def wanted(repeats: int) -> float:
        """The margin with so many repeats, or those that a data set has."""
        several = [
            _repeated(own, folds, max(repeats / folds.repeats, 1.0))
            for own, folds in zip(leads, data, strict=True)
        ]
        return margin(average(several), rivals, alpha)

    now = min(folds.repeats for folds in data)
    enough = None
    if wanted(MOST_REPEATS) < lead.mean:
        more = range(now + 1, MOST_REPEATS + 1)
        enough = next((r for r in more if wanted(r) < lead.mean), None)
    times = (wanted(now) / lead.mean) ** 2
    return Help(enough, times if math.isfinite(times) else math.nan)


def _repeated(lead: Estimate, folds: Folds, times: float) -> Estimate:
    """What a lead would be with so many times the repeats, if folds go on as they are."""
    now = len(folds.scores)
    share = folds.test_per_train
    return replace(
        lead,
        variance=lead.variance * (1 / (times * now) + share) / (1 / now + share),
        dof=times * now - 1,
        above=round(times * lead.above),
        below=round(times * lead.below),
    )
