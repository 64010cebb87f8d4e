"""The aggregations: one entry each, from which all other files read what they need to know.

A linear aggregation is ``N^(-p) * sum_j x_j`` over N neighbours, and an entry with its exponent p
is all that there is to add: operators, layers, trainings, theory, figures and help follow from it.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal

from .errors import UsageError


@dataclass(frozen=True)
class Aggregation:
    """How N neighbours become one.

    Attributes:
        name: What users type.
        kind: ``"linear"``: ``N^(-p) * sum_j x_j``; ``"maximum"``; ``"plain"``: what a model with
            coefficients of its own (attention, normalised degrees) does without an aggregation.
        exponent: ``p`` of a linear aggregation; None for the others.
        squares_weights: Whether edge weights w enter the scale: ``sum_j w_j^2`` in the place of N,
            which only p = 1/2 makes sense of.
        colour: In figures. Readers with any of the common deficiencies tell them apart.
        dashes: Of lines in figures, as SVG writes them: no figure relies on colours alone.
        marker: Of points in figures, as matplotlib names it.

    Example:
        >>> aggregation("vpa").exponent, aggregation("max").exponent
        (0.5, None)
    """

    name: str
    kind: Literal["linear", "maximum", "plain"]
    exponent: float | None
    colour: str
    dashes: str
    marker: str
    squares_weights: bool = False

    def __post_init__(self) -> None:
        if (self.exponent is None) == (self.kind == "linear"):
            raise UsageError(f"{self.name}: a linear aggregation, and no other, has an exponent.")
        if self.squares_weights and self.exponent != 0.5:
            raise UsageError(f"{self.name}: squares of weights need the exponent 0.5.")


#: The order of tables and figures. The colours are Okabe and Ito's.
AGGREGATIONS: dict[str, Aggregation] = {
    entry.name: entry
    for entry in (
        Aggregation("sum", "linear", 0.0, "#D55E00", "6 3", "s"),
        Aggregation("mean", "linear", 1.0, "#0072B2", "2 2.5", "v"),
        Aggregation("max", "maximum", None, "#CC79A7", "8 3 2 3", "^"),
        Aggregation("default", "plain", None, "#666666", "4 4", "D"),
        Aggregation("vpa", "linear", 0.5, "#009E73", "none", "o", squares_weights=True),
    )
}

#: What else ``aggregation`` reads: a power of N with any exponent p.
PATTERN = "power(p)"

_POWER = re.compile(r"power\(\s*([^()\s]+)\s*\)", re.IGNORECASE)
_LARGEST = 8.0  # beyond it N^p leaves float32 for hubs of some 10,000 neighbours


def aggregation(name: str, among: Literal["all", "operators"] = "all") -> Aggregation:
    """Return the entry of an aggregation.

    Args:
        name: One of ``AGGREGATIONS``, or ``power(p)`` with a number p, in any case.
        among: ``"operators"`` leaves out ``default``, which only some models have.

    Raises:
        UsageError: There is no such aggregation.

    Example:
        >>> aggregation("power(0.30)").name, aggregation("power(0.30)").exponent
        ('power(0.3)', 0.3)
        >>> aggregation("summ")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: aggr: 'summ' is unknown. Did you mean 'sum'?
    """
    entry = AGGREGATIONS.get(name) if isinstance(name, str) else None
    if entry is None:
        entry = _spelled(name)
    if entry is None or (among == "operators" and entry.kind == "plain"):
        raise UsageError(f"aggr: {name!r} is unknown{_advice(name, among)}")
    return entry


def names(among: Literal["all", "operators"] = "all") -> str:
    """Return the names in a sentence: for messages and help.

    Example:
        >>> names()
        'sum, mean, max, default, vpa, power(p)'
    """
    known = [e.name for e in AGGREGATIONS.values() if among == "all" or e.kind != "plain"]
    return ", ".join([*known, PATTERN])


def operators() -> tuple[str, ...]:
    """Return the names of what ``gnn_vpa.aggregate`` does, powers aside.

    Example:
        >>> operators()
        ('sum', 'mean', 'max', 'vpa')
    """
    return tuple(entry.name for entry in AGGREGATIONS.values() if entry.kind != "plain")


def ordered(given: Iterable[str]) -> list[str]:
    """Return distinct names in the order of tables and figures: powers behind the others, by p.

    Example:
        >>> ordered(["power(1)", "vpa", "power(0.3)", "sum", "vpa", "unheard-of"])
        ['sum', 'vpa', 'power(0.3)', 'power(1)', 'unheard-of']
    """
    places = {name: place for place, name in enumerate(AGGREGATIONS)}

    def key(name: str) -> tuple[int, float, str]:
        match = _POWER.fullmatch(name)
        return places.get(name, len(places) + (not match)), float(match[1]) if match else 0.0, name

    return sorted(set(given), key=key)


def _advice(name: object, among: Literal["all", "operators"]) -> str:
    nearest = get_close_matches(str(name).casefold(), AGGREGATIONS, n=1)
    if nearest and AGGREGATIONS[nearest[0]].kind != "plain":
        return f". Did you mean {nearest[0]!r}?"
    return f", expected one of {names(among)}."


def _spelled(name: object) -> Aggregation | None:
    """Return what a name means in another case, or with a number in it."""
    if not isinstance(name, str):
        return None
    match = _POWER.fullmatch(name.strip())
    return _power(match[1]) if match else AGGREGATIONS.get(name.strip().casefold())


@lru_cache(maxsize=256)
def _power(text: str) -> Aggregation:
    try:
        exponent = float(text)
    except ValueError:
        exponent = math.nan
    if not abs(exponent) <= _LARGEST:
        raise UsageError(
            f"aggr: power({text}) needs a number from -{_LARGEST:g} to {_LARGEST:g}, as in "
            "power(0.3): the exponent p of N^-p."
        )
    exponent += 0.0  # no negative zero: its name would be another one
    name = f"power({repr(exponent).removesuffix('.0')})"
    return Aggregation(name, "linear", exponent, _between(exponent), "1 2", "P")


def _between(exponent: float) -> str:
    """Return a colour between those of sum, vpa and mean, as its exponent is between theirs."""
    place = min(max(exponent, 0.0), 1.0) * 2
    ends = [AGGREGATIONS[name].colour for name in ("sum", "vpa", "mean")]
    low = min(int(place), 1)
    pairs = zip(_channels(ends[low]), _channels(ends[low + 1]), strict=True)
    mixed = (round(a + (b - a) * (place - low)) for a, b in pairs)
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


def _channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
