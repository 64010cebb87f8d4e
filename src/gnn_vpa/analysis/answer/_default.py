"""What to take where several may be the best, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...paper import published_statistics, resolve_name
from ..format import listing
from ..style import DATASETS

if TYPE_CHECKING:
    import pandas as pd

_NOISE = 1e-6  # variance behind the first layer that is nothing but rounding: all nodes are alike
_TELLS = 10.0  # factor between two signals from which on they are worth a choice


def default(
    may_be_best: Sequence[str],
    datasets: Sequence[str],
    signals: pd.DataFrame | None,
    tied: Sequence[str] = (),
) -> tuple[str, str]:
    """Choose among what may be the best.

    Where the signal at the start tells them apart, the one that keeps it: its variance behind the
    last layer is closest to that behind the first, and more layers or larger degrees would harm it
    least. Otherwise, or where one of them has no signal to keep, the best mean.

    Args:
        may_be_best: the best mean first.
        datasets: which count.
        signals: of this model, a row for each aggregation, data set and layer; None if not known.
        tied: those that have the best mean, where there are several.

    Returns:
        The aggregation, and the reason in a clause.

    Example:
        >>> default(["sum", "vpa"], ["mine"], None)
        ('sum', 'its score is the best so far')
        >>> default(["sum", "vpa"], ["mine"], None, tied=["sum", "vpa"])
        ('sum', 'no score is better, though vpa has the same')
    """
    leader = may_be_best[0]
    if len(may_be_best) == 1:
        return leader, "it is shown to be the best"
    changes, layers = _changes(may_be_best, datasets, signals)
    usual = _score([name for name in tied if name != leader])
    if len(changes) < len(may_be_best):
        return leader, usual
    steadiest = min(changes, key=lambda name: (abs(math.log(changes[name])), name != leader))
    worst = max(changes, key=lambda name: abs(math.log(changes[name])))
    apart = abs(math.log(changes[worst])) - abs(math.log(changes[steadiest]))
    if apart < math.log(_TELLS):
        return leader, f"{usual}, and the signal at the start is alike with all of them"
    held = abs(math.log(changes[leader])) - abs(math.log(changes[steadiest])) < math.log(_TELLS)
    taken = leader if held else steadiest
    others = [name for name in may_be_best if name != taken]
    said = listing([f"{_factor(changes[name])} with {name}" for name in others])
    return taken, (
        f"{usual + ', and ' if held else ''}it keeps the signal at the start: over {layers} layers "
        f"its variance changes by a factor of {_factor(changes[taken])}, of {said}"
        f"{_degrees(datasets)}"
    )


def _score(equals: list[str]) -> str:
    """What the leader's score says for it; others may have the same."""
    if not equals:
        return "its score is the best so far"
    have = "has" if len(equals) == 1 else "have"
    return f"no score is better, though {listing(equals)} {have} the same"


def _changes(
    names: Sequence[str], datasets: Sequence[str], signals: pd.DataFrame | None
) -> tuple[dict[str, float], int]:
    """By what factor the variance changes from the first layer to the last, and over how many."""
    if signals is None or signals.empty:
        return {}, 0
    there = signals[signals["dataset"].isin(set(datasets)) & signals["aggregation"].isin(names)]
    by_dataset: dict[str, dict[str, float]] = {}
    layers = 0
    for (name, dataset), part in there.groupby(["aggregation", "dataset"], sort=False):
        part = part.drop_duplicates("layer")
        first, last = float(part["variance"].iloc[0]), float(part["variance"].iloc[-1])
        layers = max(layers, len(part))
        if len(part) > 1 and _NOISE < first < math.inf and 0 < last < math.inf:
            by_dataset.setdefault(str(dataset), {})[str(name)] = math.log(last / first)
    # Means over the same data sets: those on which all of them have a signal.
    whole = [found for found in by_dataset.values() if len(found) == len(names)]
    if not whole:
        return {}, layers
    return {
        name: math.exp(sum(found[name] for found in whole) / len(whole)) for name in names
    }, layers


def _factor(value: float) -> str:
    return f"{value:.2g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")


def _degrees(datasets: Sequence[str]) -> str:
    """The mean degree, where a single data set of the paper tells it."""
    known = None
    if len(datasets) == 1 and datasets[0] in DATASETS:
        known = published_statistics(resolve_name(datasets[0]))
    if known is None:
        return ""
    return f" (nodes have {2 * known.edges / known.nodes:.1f} neighbours on average)"
