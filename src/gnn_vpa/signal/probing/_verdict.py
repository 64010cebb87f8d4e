"""The verdict: the layer, the cause and the remedy in words, every number measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ._numbers import number, times
from ._remedies import trials
from ._run import Kept, Loss, Whole, observe
from ._step import Step
from ._symptoms import Symptom, has_broken_input, has_no_neighbours, layers_of, symptoms

_HELPS = 0.5  # a remedy that leaves at most this share of what is wrong is worth naming
_GOOD = 0.25  # after one that leaves at most this share no other is tried
_WORSE = 2.0  # a remedy that makes the loss larger by more is not named
_FAR = (
    100.0  # nor one after which the gradient is so much larger, or smaller, than it was and than 1
)


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a signal, and what would mend it.

    Attributes:
        layer: The path of the module where it shows; empty: the model.
        text: The finding as a sentence.
        value: What was measured.
        remedy: What would mend it, as one writes it; empty if nothing that was tried does.
        remedied: What was measured with the remedy; NaN without one.

    Example:
        >>> finding = Finding("convs.1", "convs.1, sum: variance ×12.", 12.0, "convert(model)", 1.1)
        >>> finding.remedy
        'convert(model)'
    """

    layer: str
    text: str
    value: float
    remedy: str = ""
    remedied: float = math.nan


def find(steps: Sequence[Step], kept: Kept | None, loss: Loss | None) -> tuple[Finding, ...]:
    """Return what is wrong; every remedy that is named has been tried, on a copy."""
    found = list(symptoms(steps))
    outcomes: list[dict[str, float]] = [{} for _ in found]  # of each symptom, by remedy
    harms: dict[str, str] = {}  # what a remedy does to the whole
    if kept is not None and found and not has_broken_input(steps):
        for name, changed in trials(kept.call()):
            run = observe(changed, loss, kept.run.random)
            harms[name] = _harm(kept.run.whole, run.whole)
            for symptom, values in zip(found, outcomes, strict=True):
                values[name] = symptom.measure(run.steps)
            if all(_is_mended(*pair, harms) for pair in zip(found, outcomes, strict=True)):
                break
    return tuple(_finding(*pair, harms) for pair in zip(found, outcomes, strict=True))


def _harm(before: Whole, after: Whole) -> str:
    """Say what a remedy makes worse in the network as a whole; empty: nothing."""
    if not math.isfinite(after.loss - before.loss) and math.isfinite(before.loss):
        return f"a loss of {number(after.loss)}"
    if after.loss - before.loss > (_WORSE - 1) * abs(before.loss):
        return f"a loss of {number(after.loss)} instead of {number(before.loss)}"
    large, small = max(before.gradient, 1) * _FAR, min(before.gradient, 1) / _FAR
    if math.isfinite(before.gradient) and not small <= after.gradient <= large:
        gradients = number(before.gradient), number(after.gradient)
        return f"a gradient of norm {gradients[1]} instead of {gradients[0]}"
    return ""


def words(steps: Sequence[Step], findings: Sequence[Finding], notes: Iterable[str]) -> str:
    """Return all that there is to say, a paragraph each."""
    empty = _without_nodes(steps)
    lines = [finding.text for finding in findings] or [empty or _healthy(steps)]
    if not any(step.step in ("aggregation", "readout") for step in steps):
        lines.append(
            "No message passing was seen (no layer of PyG's MessagePassing, no aggregation of "
            "gnn_vpa): there is nothing to tell by degree."
        )
    if empty is None:
        lines += _without_neighbours(steps)
    return "\n".join([*lines, *notes])


def _without_nodes(steps: Sequence[Step]) -> str | None:
    """Say that there was nothing to measure, if there was not."""
    aggregations = [step for step in steps if step.step == "aggregation"]
    # What comes behind the nodes has numbers all the same: graphs without nodes get the biases.
    known = aggregations[:1] or steps
    if not known or any(step.forward.count for step in known):
        return None
    first = known[0]
    return (
        f"There are no nodes: {first.name}, {first.step}, has the shape {list(first.shape)}. So "
        "nothing can be said of the signal."
    )


def _without_neighbours(steps: Sequence[Step]) -> Iterator[str]:
    """Say of aggregations that have nothing to aggregate that they have not been seen at work."""
    aggregations = [step for step in steps if step.step == "aggregation"]
    idle = [step for step in aggregations if has_no_neighbours(step)]
    if not idle:
        return
    where = "" if idle == aggregations else f" in {', '.join(step.name for step in idle)}"
    yield (
        f"No node has a neighbour{where}: there are no edges, or self-loops alone. So nothing can "
        f"be said of the aggregation{' there' if where else ''}."
    )


def _left(symptom: Symptom, value: float) -> float:
    """Return which share of what is wrong a remedy leaves."""
    if math.isnan(value):
        return math.inf
    before, after = symptom.badness(symptom.value), symptom.badness(value)
    return after / before if math.isfinite(before) else float(not math.isfinite(after))


def _is_mended(symptom: Symptom, values: dict[str, float], harms: dict[str, str]) -> bool:
    return any(_left(symptom, value) <= _GOOD and not harms[name] for name, value in values.items())


def _finding(symptom: Symptom, values: dict[str, float], harms: dict[str, str]) -> Finding:
    """Name the gentlest harmless remedy that helps, or a later one that leaves half as much."""
    choice, least = "", 2 * _HELPS
    for name, value in values.items():
        if not harms[name] and (left := _left(symptom, value)) <= least / 2:
            choice, least = name, left
    if choice:
        text = f"{symptom.text}; {choice} would make it {symptom.write(values[choice])}."
        return Finding(symptom.layer, text, symptom.value, choice, values[choice])
    tried = "; ".join(
        f"{name} ({symptom.write(value)}{_but(harms[name], _left(symptom, value))})"
        for name, value in values.items()
        if not math.isnan(value)
    )
    text = f"{symptom.text}; tried without success: {tried}." if tried else f"{symptom.text}."
    return Finding(symptom.layer, text, symptom.value)


def _but(harm: str, left: float) -> str:
    """Say why a remedy that helps is not named."""
    return f", but {harm}" if harm and left <= _HELPS else ""


def _healthy(steps: Sequence[Step]) -> str:
    layers = layers_of(steps)
    if len(layers) < 2:
        return "Nothing stands out."
    first, last = layers[0], layers[-1]
    text = (
        f"The signal keeps its scale: from {first.name} to {last.name}, {len(layers)} layers, the "
        f"variance goes from {number(first.forward.variance)} to {number(last.forward.variance)}"
    )
    if first.backward and last.backward and last.backward.variance > 0:
        ratio = first.backward.variance / last.backward.variance
        text += f", and the gradient's on its way back becomes {times(ratio)} of what it was"
    return f"{text}."
