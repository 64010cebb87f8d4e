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
_ALIKE = 0.05  # neighbours are alike below this distance, and become so at this share of the first
_EQUAL = 0.01  # gains that differ by less are one
_ROUNDING = 1e-9  # an energy below this share of the squares is none
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
    yield from _gradient_not_finite(steps)
    yield from _strong_aggregation(steps)
    yield from _summed_edge_types(steps)
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


def has_broken_input(steps: Steps) -> bool:
    """Tell whether the model was given what is not finite: nothing done to it would help."""
    return any(step.step == "input" and step.forward.nonfinite for step in steps)


def has_no_neighbours(step: Step) -> bool:
    """Tell whether a step aggregates for nodes of which none has a neighbour but itself."""
    groups = step.by_degree if step.step == "aggregation" else ()
    return len(groups) > 0 and all(group.high == 0 for group in groups)


def titled(step: Step) -> str:
    """Name a step's layer, its class and its aggregation."""
    if step.step == "parameter":
        return f"{step.name}, parameter {step.kind}"
    kind = step.kind.lstrip("_")
    return f"{step.name} ({kind})" + (f", {step.aggr}" if step.aggr else "")


def _not_finite(steps: Steps) -> Iterator[Symptom]:
    broken = [step for step in steps if step.forward.nonfinite]
    if not broken:
        return
    first = broken[0]
    before = steps[first.index - 1].forward.largest if first.index else math.nan
    given = first.step == "input"
    text = "the model's input" if given else f"{titled(first)}, {first.step}"
    text += f": {first.forward.nonfinite:,} of {first.forward.count:,} values are NaN or infinite"
    if given:
        text += "; the model was given them, so no remedy was tried"
    else:
        text += ", the first in the network"
        if not math.isnan(before):
            text += f"; the largest value before it was {number(before)}"
    yield Symptom(
        first.layer,
        text,
        float(sum(step.forward.nonfinite for step in steps)),
        lambda steps: float(sum(step.forward.nonfinite for step in steps)),
        lambda value: value,
        lambda value: "all values finite" if value == 0 else f"{value:,.0f} not finite",
    )


def _gradient_not_finite(steps: Steps) -> Iterator[Symptom]:
    """Name the gradient that first is not finite, on the way back from the loss."""
    broken = [step for step in steps if step.backward and step.backward.nonfinite]
    if not broken or any(step.forward.nonfinite for step in steps):
        return  # what is not finite forward is named already, and has gradients like it
    results = [step for step in broken if step.step != "parameter"]
    first = results[-1] if results else broken[0]
    assert first.backward is not None
    what = titled(first) if first.step == "parameter" else f"{titled(first)}, {first.step}"
    text = (
        f"{what}: {first.backward.nonfinite:,} of {first.backward.count:,} values "
        "of its gradient are NaN or infinite, the first on the way back from the loss, and forward "
        "all values are finite"
    )
    behind = [step for step in steps[first.index + 1 :] if step.backward and step not in broken]
    if results and behind:
        text += f"; the gradient of {behind[0].name}, behind it, still is finite"
    elif results:
        text += "; no layer ran behind it, the loss sends them"
    else:
        text += "; the gradients of all layers' results are finite"
    yield Symptom(
        first.layer,
        text,
        _broken_gradients(steps),
        _broken_gradients,
        lambda value: value,
        lambda value: "all gradients finite" if value == 0 else f"{value:,.0f} not finite",
        backward=True,
    )


def _broken_gradients(steps: Steps) -> float:
    known = [step.backward for step in steps if step.backward is not None]
    return float(sum(found.nonfinite for found in known)) if known else math.nan


def _strong_aggregation(steps: Steps) -> Iterator[Symptom]:
    gains = {
        step: gain
        for step in steps
        if step.step in ("aggregation", "readout")
        and not math.isnan(gain := passing_gain(step))
        and _distance(gain) > math.log(_STRONG)
        and not (has_no_neighbours(step) and step.forward.largest == 0)  # no edge, no message
    }
    for kind in ("aggregation", "readout"):
        found = {step: gain for step, gain in gains.items() if step.step == kind}
        if not found:
            continue
        worst = max(found, key=lambda step: _distance(found[step]))
        text = f"{titled(worst)}: variance {times(found[worst])}"
        text += " in the readout" if kind == "readout" else ""
        text += _beside_theory(worst, found[worst]) + _carriers(worst)
        if len(found) > 1:
            more = f"1 more {kind} is" if len(found) == 2 else f"{len(found) - 1} more {kind}s are"
            text += f"; {more} off by more than {TIMES}{_STRONG:g}"
        key = (worst.layer, worst.call, worst.step)
        yield Symptom(worst.layer, text, found[worst], _gain_at(*key), _distance, times)


def _beside_theory(step: Step, passing: float) -> str:
    """Put what the aggregation makes of its messages beside what the lemmas say of it."""
    if math.isnan(step.expected_gain) or math.isnan(step.gain):
        return ""
    expected = times(step.expected_gain)
    if abs(passing / step.gain - 1) < _EQUAL if step.gain else passing == 0:
        return f" ({expected} if messages were independent)"
    made = "" if step.gain == 0 else f"its messages {times(passing / step.gain)}, "
    return f": {made}their aggregation {times(step.gain)} ({expected} if they were independent)"


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


def _summed_edge_types(steps: Steps) -> Iterator[Symptom]:
    """Name the sum over edge types that makes the most of their variance."""
    sums = [s for s in steps if s.edge_types and _sum_gain(s) > math.sqrt(s.edge_types)]
    if not sums:
        return
    worst = max(sums, key=_sum_gain)
    many = worst.edge_types
    text = f"{titled(worst)}: the results of {many} edge types are summed, "
    if math.isnan(worst.expected_gain):  # an activation comes behind, and what was in front is gone
        text += f"which makes the variance {times(many)} if they are independent"
    else:
        text += (
            f"variance {times(worst.gain)} of their mean ({times(many)} if they were independent)"
        )
    text += ": it grows with the number of edge types"
    text += f"; such sums in all: {len(sums)}" if len(sums) > 1 else ""
    text += f"; to divide by √{many} would keep it (not tried: the sum is the model's code)"
    key = _key(worst)
    yield Symptom(
        worst.layer,
        text,
        _sum_gain(worst),
        lambda steps: next((_sum_gain(s) for s in steps if _key(s) == key), math.nan),
        _distance,
        times,
        backward=True,
    )


def _sum_gain(step: Step) -> float:
    """Return what a sum over edge types makes of the variance; where unseen, if independent."""
    return float(step.edge_types) if math.isnan(step.expected_gain) else step.gain


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
    known = [step for step in steps if math.isfinite(step.distance)]
    if len(known) < 2:
        return
    first, last = known[0], known[-1]
    alike_from_the_start = first.distance < _ALIKE
    if last.distance >= _ALIKE:
        return
    if not alike_from_the_start and last.distance > _ALIKE * first.distance:
        return
    if alike_from_the_start:
        like = "the same features" if _equal(first) else "features of nearly the same direction"
        text = (
            f"Neighbours have {like} at {first.name}, and in {titled(last)} hardly differ: "
            f"their mean distance is {number(first.distance)} and {number(last.distance)}"
        )
    else:
        since = next(step for step in known if step.distance <= _ALIKE * first.distance)
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


def _equal(step: Step) -> bool:
    """Tell whether neighbours do not differ at all: their cosine is 1 where lengths differ too."""
    square = step.forward.rms**2 * step.forward.count / max(1, step.shape[0])
    return step.dirichlet <= _ROUNDING * square


def _dead(steps: Steps) -> Iterator[Symptom]:
    steps_with_values = ("output", "update", "function")
    dead = [s for s in steps if s.step in steps_with_values and s.forward.zeros >= _DEAD]
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
        backward=first.step == "function",  # what a function is made of is seen with gradients
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
