"""What would make an answer surer: more repeats where they help, more data where they do not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..format import listing
from ..rounding import last_bits, usual
from ._choice import Choice
from ._contest import MOST_REPEATS, Folds, difference, helps
from ._words import called

_MOSTLY = 0.8  # of an average's variance that one data set makes
_MANY = 100  # times as much data, beyond which candidates are as good as equal


def surer(choice: Choice, names: Sequence[str], data: Sequence[Folds]) -> tuple[str, ...]:
    """Say what would tell the best mean from what else may be the best."""
    leader, *others = choice.may_be_best
    if not others:
        return ()
    (best,) = called(choice, [leader])
    needed: dict[int, list[str]] = {}
    never: dict[str, float] = {}
    same = [name for name in others if _alike(data, names.index(leader), names.index(name))]
    for name in (name for name in others if name not in same):
        found = helps(data, names.index(leader), names.index(name))
        if found.repeats is not None:
            needed.setdefault(found.repeats, []).append(name)
        else:
            never[name] = found.data
    said = [
        f"--repeats {repeats} would tell {listing(called(choice, of))} from {best}"
        for repeats, of in sorted(needed.items())
    ]
    close = [name for name, times in never.items() if times <= _MANY]
    if close:
        times = _times(max(never[name] for name in close))
        said.append(
            f"about {times} as many graphs would tell {listing(called(choice, close))} from {best} "
            f"(not even {MOST_REPEATS} repeats would: folds of the same graphs share what they saw)"
        )
    unknown = [name for name, times in never.items() if math.isnan(times)]
    if unknown:
        said.append(
            f"nothing here says what would tell {listing(called(choice, unknown))} from {best}: on "
            "a data set they differ by the same on all of too few folds"
        )
    if equal := [name for name in never if name not in (*close, *unknown)]:
        said.append(
            f"nothing within reach would tell {listing(called(choice, equal))} from {best}, the "
            "difference being far below the noise"
        )
    sentences = []
    if same:
        equals = listing([best, *called(choice, same)])
        sentences.append(
            f"{equals} have the same score on every fold: nothing here tells them apart."
        )
    if said:
        sentences.append(
            f"What would make it surer, if the differences stay as they are: {'; '.join(said)}."
        )
    return tuple(sentences)


def _alike(data: Sequence[Folds], first: int, second: int) -> bool:
    """Whether two candidates have the same score on every fold."""
    pairs = (folds.scores[:, [first, second]] for folds in data)
    return all(bool((np.ptp(pair, axis=1) <= last_bits(usual(pair))).all()) for pair in pairs)


def dominated(
    choice: Choice, names: Sequence[str], datasets: Sequence[str], data: Sequence[Folds]
) -> str:
    """Say where one data set makes most of an average's uncertainty; nothing otherwise."""
    if not choice.is_compared:
        return ""
    first, second = (names.index(candidate.name) for candidate in choice.candidates[:2])
    variances = [difference([folds], first, second).variance for folds in data]
    total = sum(variances)
    if not total or math.isnan(total) or max(variances) < _MOSTLY * total:
        return ""
    name = datasets[variances.index(max(variances))]
    return (
        f"The average counts every data set alike, and {max(variances) / total:.0%} of its "
        f"uncertainty is that of {name} alone: see the data sets one by one."
    ).replace("%", " %", 1)


def _times(value: float) -> str:
    return f"{math.ceil(value * 10) / 10:g} times" if value < 10 else f"{math.ceil(value)} times"
