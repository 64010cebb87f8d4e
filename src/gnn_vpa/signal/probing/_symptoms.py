"""What is wrong with a signal, if anything: each symptom a number that can be measured again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ._numbers import TIMES, number, percent, times
from ._statistics import Group
from ._step import Step

Steps = Sequence[Step]

_STRONG = 2.0  # an aggregation that changes the variance by more is named
_FAR = 100.0  # so is a network that changes it by more from its first layer to its last
_ALIKE = 0.05  # neighbours are alike if the distance falls below this, and to this share
_DEAD = 0.95  # share of zeros


@dataclass(frozen=True)
class Symptom:
    """One thing that is wrong.

    Attributes:
        layer: The path of the module where it shows.
        text: What was measured, in words.
        value: The number.
        measure: The same number of another run; NaN where that has none.
        badness: How bad a number is; 0 is perfect.
        write: The number, in words that end "... would make it".
        backward: Whether the number is about gradients.
    """

    layer: str
    text: str
    value: float
    measure: Callable[[Steps], float]
    badness: Callable[[float], float]
    write: Callable[[float], str]
    backward: bool = False


def symptoms(steps: Steps) -> Iterator[Symptom]:
    """Yield what is wrong, the most urgent first."""
    yield from _not_finite(steps)
    yield from _strong_aggregation(steps)
    yield from _growth(steps, backward=False)
    yield from _growth(steps, backward=True)
    yield from _oversmoothing(steps)
    yield from _dead(steps)


def layers_of(steps: Steps) -> list[Step]:
    """Return the results of the message-passing layers; without any, of all layers."""
    updates = [step for step in steps if step.step == "update"]
    passing = updates or [step for step in steps if step.step == "aggregation"]
    return passing or [step for step in steps if step.step == "output"]


def passing_gain(step: Step) -> float:
    """Return what message and aggregation together make of the variance."""
    return step.total_gain if step.step == "aggregation" else step.gain


def titled(step: Step) -> str:
    """Name a step's layer, its class and its aggregation."""
    kind = step.kind.lstrip("_")
    return f"{step.name} ({kind})" + (f", {step.aggr}" if step.aggr else "")


def _not_finite(steps: Steps) -> Iterator[Symptom]:
    broken = [step for step in steps if step.forward.nonfinite]
    if not broken:
        return
    first = broken[0]
    before = steps[first.index - 1].forward.largest if first.index else math.nan
    text = (
        f"{titled(first)}, {first.step}: {first.forward.nonfinite:,} of {first.forward.count:,} "
        "values are NaN or infinite, the first in the network"
    )
    if first.step == "input":
        text += "; the model was given them"
    elif not math.isnan(before):
        text += f"; the largest value before it was {number(before)}"
    yield Symptom(
        first.layer,
        text,
        float(sum(step.forward.nonfinite for step in steps)),
        lambda steps: float(sum(step.forward.nonfinite for step in steps)),
        lambda value: value,
        lambda value: "all values finite" if value == 0 else f"{value:,.0f} not finite",
    )


def _strong_aggregation(steps: Steps) -> Iterator[Symptom]:
    gains = {
        step: gain
        for step in steps
        if step.step in ("aggregation", "readout")
        and not math.isnan(gain := passing_gain(step))
        and _distance(gain) > math.log(_STRONG)
    }
    for kind in ("aggregation", "readout"):
        found = {step: gain for step, gain in gains.items() if step.step == kind}
        if not found:
            continue
        worst = max(found, key=lambda step: _distance(found[step]))
        text = f"{titled(worst)}: variance {times(found[worst])}"
        text += " in the readout" if kind == "readout" else ""
        if not math.isnan(worst.expected_gain):
            text += f" ({times(worst.expected_gain)} if messages were independent)"
        text += _carriers(worst)
        if len(found) > 1:
            text += f"; {len(found) - 1} more {kind}s are off by more than {TIMES}{_STRONG:g}"
        key = (worst.layer, worst.call, worst.step)
        yield Symptom(worst.layer, text, found[worst], _gain_at(*key), _distance, times)


def _carriers(step: Step) -> str:
    """Say which nodes, or which graphs, most of the variance comes from, if they are few."""
    by_size = step.step == "readout"
    groups: Sequence[Group] = step.by_size if by_size else step.by_degree
    rows = sum(group.rows for group in groups)
    share, members = 0.0, 0
    for group in reversed(groups):
        share, members = share + group.share, members + group.rows
        if share >= 0.5:
            if share < 2 * members / rows:
                return ""
            who = f"graphs of {group.low:,} nodes" if by_size else f"nodes of degree {group.low:,}"
            return f"; {who} or more ({percent(members / rows)}) carry {percent(share)} of it"
    return ""


def _growth(steps: Steps, *, backward: bool) -> Iterator[Symptom]:
    layers = [step for step in layers_of(steps) if _variance(step, backward) > 0]
    if len(layers) < 2:
        return
    first, last = layers[0], layers[-1]
    ratio = (
        _variance(first, True) / _variance(last, True)
        if backward
        else (_variance(last, False) / _variance(first, False))
    )
    if not math.isfinite(ratio) or _distance(ratio) < math.log(_FAR):
        return
    rate = ratio ** (1 / (len(layers) - 1))
    verb = "grows" if ratio > 1 else "shrinks"
    ends = (last, first) if backward else (first, last)
    what = "the gradient's variance" if backward else "the variance"
    values = [number(_variance(step, backward)) for step in ends]
    text = (
        f"From {ends[0].name} to {ends[1].name} {what} {verb} from {values[0]} to {values[1]}, "
        f"{times(rate)} a layer"
    )
    yield Symptom(
        ends[1].layer,
        text,
        rate,
        _rate(backward),
        _distance,
        lambda value: f"{times(value)} a layer",
        backward,
    )


def _oversmoothing(steps: Steps) -> Iterator[Symptom]:
    known = [step for step in steps if not math.isnan(step.distance)]
    if len(known) < 2:
        return
    first, last = known[0], known[-1]
    if last.distance >= _ALIKE or last.distance > _ALIKE * max(first.distance, _ALIKE):
        return
    if first.distance <= 1e-6:
        text = (
            f"Neighbours have the same features at {first.name}, and hardly differ in "
            f"{titled(last)}: their mean distance is {number(last.distance)}"
        )
    else:
        since = next(step for step in known if step.distance < _ALIKE * first.distance)
        text = (
            f"{titled(since)}: neighbours become alike, their mean distance falls to "
            f"{number(since.distance)} from {number(first.distance)} at {first.name}"
        )
        if since is not last:
            text += f", and to {number(last.distance)} in {last.name}"
    key = (last.layer, last.call, last.step)
    yield Symptom(
        last.layer,
        text,
        last.distance,
        lambda steps: next((s.distance for s in steps if _key(s) == key), math.nan),
        lambda value: max(0.0, math.log(_ALIKE / max(value, 1e-12))),
        lambda value: f"a mean distance of {number(value)}",
    )


def _dead(steps: Steps) -> Iterator[Symptom]:
    dead = [s for s in steps if s.step in ("output", "update") and s.forward.zeros >= _DEAD]
    if not dead:
        return
    first = dead[0]
    key = _key(first)
    yield Symptom(
        first.layer,
        f"{titled(first)}: {percent(first.forward.zeros)} of the values are 0",
        first.forward.zeros,
        lambda steps: next((s.forward.zeros for s in steps if _key(s) == key), math.nan),
        lambda value: max(0.0, value - 0.5),
        lambda value: f"{percent(value)} of them 0",
    )


def _distance(gain: float) -> float:
    """Return how far a factor is from 1, on a logarithmic scale."""
    return abs(math.log(gain)) if gain > 0 else math.inf


def _key(step: Step) -> tuple[str, int, str]:
    return step.layer, step.call, step.step


def _gain_at(*key: object) -> Callable[[Steps], float]:
    return lambda steps: next((passing_gain(s) for s in steps if _key(s) == key), math.nan)


def _rate(backward: bool) -> Callable[[Steps], float]:
    def measure(steps: Steps) -> float:
        layers = [step for step in layers_of(steps) if _variance(step, backward) > 0]
        if len(layers) < 2:
            return math.nan
        ends = [_variance(step, backward) for step in (layers[0], layers[-1])]
        ratio = ends[0] / ends[1] if backward else ends[1] / ends[0]
        return float(ratio ** (1 / (len(layers) - 1)))

    return measure


def _variance(step: Step, backward: bool) -> float:
    found = step.backward if backward else step.forward
    return math.nan if found is None or found.nonfinite else found.variance
