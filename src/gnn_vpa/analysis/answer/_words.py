"""A choice in words: what may be the best, what to avoid, how sure that is, what to take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..format import count, listing, number
from ._choice import Candidate, Choice


def called(choice: Choice, names: Iterable[str]) -> list[str]:
    """What aggregations are called in a sentence: `default` is the plain model."""
    return [f"plain {choice.model}" if name == "default" else name for name in names]


def sentences(choice: Choice) -> list[str]:
    """Say all that there is to say of a choice, the most important first."""
    said = [headline(choice)]
    if choice.is_compared:
        said += [_leads(choice), *_avoid(choice), *_take(choice), *choice.surer]
    said += [*_left_out(choice), *choice.cautions]
    return said


def headline(choice: Choice) -> str:
    """Say in one sentence which aggregations may be the best."""
    subject, names = _subject(choice), called(choice, choice.may_be_best)
    if not choice.candidates:
        return f"{subject}, nothing can be compared: no fold has finished with every aggregation."
    best = choice.candidates[0]
    if len(choice.candidates) == 1:
        return (
            f"{subject}, only {_name(choice, best)} can be judged ({_score(choice, best)}): there "
            "is nothing to compare it with. Run others beside it (--aggr)."
        )
    folds = count(choice.folds, "fold")
    if choice.repeats > 1:
        folds += f" of {choice.repeats} repeats"
    if not choice.is_compared:
        return (
            f"{subject}, any of {listing(names)} may be the best: {folds} cannot tell a "
            f"difference from chance. {_so_far(choice)} ({_score(choice, best)})."
        )
    of_all = f"of {len(choice.candidates)} aggregations"
    if len(names) == 1:
        return f"{subject}, {names[0]} is the best {of_all} (95 % confidence, {folds})."
    if not choice.avoid:
        return (
            f"{subject}, no aggregation is shown to be better than another ({folds}): "
            f"{_or(choice)} may be the best."
        )
    return (
        f"{subject}, {_or(choice)} may be the best {of_all}: with 95 % confidence it is one of "
        f"them ({folds})."
    )


def _so_far(choice: Choice) -> str:
    """Say who has the best score, which is nobody where all have the same."""
    names = called(choice, choice.tied)
    if len(names) == len(choice.candidates):
        return "All have the same score"
    return f"The best score so far {'has' if len(names) == 1 else 'have'} {listing(names)}"


def summary(choices: Sequence[Choice]) -> str:
    """Say in one sentence what may be the best in each of several questions."""
    if len(choices) == 1:
        return headline(choices[0])
    places = {_place(choice) for choice in choices}
    shared = f" {places.pop()}" if len(places) == 1 else ""
    said = [
        f"{short(choice)[0]} with {choice.model}{'' if shared else ' ' + _place(choice)}"
        for choice in choices
    ]
    return f"The best{shared}, as far as can be told: {'; '.join(said)}."


def short(choice: Choice) -> tuple[str, str]:
    """Return what may be the best, and what to avoid with its cost, for a line of a table."""
    if not choice.is_compared:
        names = listing(called(choice, choice.may_be_best))
        return (f"cannot tell ({names})" if names else "cannot tell"), ""
    avoid = [f"{_name(choice, c)} ({_cost(choice, c, '')})" for c in choice.candidates if c.beaten]
    return _or(choice), ", ".join(avoid)


def _subject(choice: Choice) -> str:
    comma = "" if len(choice.datasets) == 1 else ","
    return f"With {choice.model}{comma} {_place(choice)}"


def _place(choice: Choice) -> str:
    return f"on {choice.place}" if len(choice.datasets) == 1 else f"averaged over {choice.place}"


def _or(choice: Choice) -> str:
    names = called(choice, choice.may_be_best)
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _name(choice: Choice, candidate: Candidate) -> str:
    return called(choice, [candidate.name])[0]


def _score(choice: Choice, candidate: Candidate) -> str:
    score = number(candidate.score, choice.digits)
    return score + (" % of the best median" if choice.relative else choice.measure.percent)


def _cost(choice: Choice, candidate: Candidate, unit: str) -> str:
    """How much a candidate costs, and at least; a unit is named once in a sentence."""
    cost, least = (number(value, choice.digits) for value in (candidate.cost, candidate.low))
    return f"{cost}{unit}, at least {least}"


def _leads(choice: Choice) -> str:
    """Say how often each that may be the best leads; with one alone, how often that does."""
    shown = [c for c in choice.candidates if not c.beaten]
    first, *others = [
        f"{_name(choice, c)} ({_score(choice, c)}) in {100 * c.share:.0f} %" for c in shown
    ]
    return f"The lead has {listing([f'{first} of resampled folds', *others])}."


def _avoid(choice: Choice) -> list[str]:
    beaten = [c for c in choice.candidates if c.beaten]
    if not beaten:
        return []
    units = [f" {choice.unit}", *[""] * (len(beaten) - 1)]
    named = [
        f"{_name(choice, c)} (costs {_cost(choice, c, unit)})"
        for c, unit in zip(beaten, units, strict=True)
    ]
    return [f"Avoid {listing(named)}."]


def _take(choice: Choice) -> list[str]:
    if len(choice.may_be_best) == 1:
        return []
    (most,) = [c.high for c in choice.candidates if c.name == choice.default]
    bound = (
        ""
        if math.isinf(most) or math.isnan(most)
        else f" Against the true best that costs at most {number(most, choice.digits)} "
        f"{choice.unit}."
    )
    (taken,) = called(choice, [choice.default or ""])
    return [f"As a default, take {taken}: {choice.why}.{bound}"]


def _left_out(choice: Choice) -> list[str]:
    if not choice.left_out:
        return []
    named = "; ".join(f"{called(choice, [n])[0]} ({reason})" for n, reason in choice.left_out)
    return [f"Not compared: {named}."]
