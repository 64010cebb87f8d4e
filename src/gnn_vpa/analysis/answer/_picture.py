"""A choice as a picture: a dot with its interval for each aggregation, baselines as lines."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..figures import axis_name
from ..figures._svg import WIDTH, Scale, element, path, picture, room, text
from ..format import number
from ..style import SHORT_NAMES, colour
from ._choice import Candidate, Choice
from ._words import headline

_ROW, _LABEL = 22, 13
_NARROWEST = 60  # of the room at the left for names
_SHARES = 52  # room at the right for the shares
_NEAR = 1.5  # a line this many spans away from the dots is named at the edge and not drawn


def answer_dots(choice: Choice) -> str:
    """Draw the candidates of a choice, the best mean on top.

    The dot is the mean score. The bar about it is how far chance may move its difference to the
    best mean, which is the upright line: a bar that does not reach the line is of an aggregation
    that is shown not to be the best, and its dot is hollow. At the right, the share of resampled
    folds in which it leads.

    Returns:
        The figure as SVG text; empty where there are no two to compare.

    Example:
        >>> from gnn_vpa.analysis import Setting
        >>> from gnn_vpa.analysis.answer import Candidate, Choice
        >>> both = (Candidate("vpa", 85.1, 0.0, 0.0, 0.0, 4.9, 1.0, False),
        ...         Candidate("mean", 77.1, 8.0, 3.1, 12.9, 4.9, 0.0, True))
        >>> found = Choice(Setting("released", "auto"), "GIN", ("MUTAG",), 10, 1, both)
        >>> answer_dots(found).count("<circle")
        2
    """
    if len(choice.candidates) < 2:
        return ""
    left = room((candidate.name for candidate in choice.candidates), _NARROWEST)
    low, high = _span(choice)
    near = {
        name: score
        for name, score in choice.lines.items()
        if low - _NEAR * (high - low) <= score <= high + _NEAR * (high - low)
    }
    low, high = min([low, *near.values()]), max([high, *near.values()])
    margin = 0.05 * (high - low)
    x = Scale(low - margin, high + margin, left, WIDTH - _SHARES)
    top = 8 + _LABEL * (len(choice.lines) + 1)
    bottom = top + _ROW * len(choice.candidates)
    parts = [*_axis(choice, x, top, bottom), *_lines(choice, near, x, bottom)]
    parts += [
        part
        for index, candidate in enumerate(choice.candidates)
        for part in _candidate(candidate, x, top + _ROW * (index + 0.5))
    ]
    title = f"Which aggregation of {choice.where}"
    return picture(bottom + 36, title, headline(choice), parts)


def _span(choice: Choice) -> tuple[float, float]:
    ends = [
        candidate.score + side * (candidate.half if math.isfinite(candidate.half) else 0.0)
        for candidate in choice.candidates
        for side in (-1, 1)
    ]
    low, high = min(ends), max(ends)
    reach = 1.0 if choice.measure.is_share else 0.01 * abs(low) or 1.0
    return (low, high) if high > low else (low - reach, high + reach)


def _axis(choice: Choice, x: Scale, top: float, bottom: float) -> Iterator[str]:
    for tick in x.ticks():
        line = path([(x(tick), top), (x(tick), bottom)])
        yield element("path", d=line, stroke="currentColor", opacity=0.15)
        yield text(f"{tick:g}", x(tick), bottom + 14, text_anchor="middle")
    name = axis_name(choice.measure)
    if choice.relative:
        name = f"test {choice.measure.noun}, {choice.unit} (lower is better)"
    yield text(name, (x.start + x.end) / 2, bottom + 30, text_anchor="middle")
    best = x(choice.candidates[0].score)
    line = path([(best, top), (best, bottom)])
    yield element("path", d=line, stroke="currentColor", opacity=0.7)
    if not math.isnan(choice.candidates[0].share):
        yield text("leads", WIDTH - 4, top - 4, text_anchor="end", opacity=0.7)


def _lines(choice: Choice, near: dict[str, float], x: Scale, bottom: float) -> Iterator[str]:
    """Name each line above the dots, at its place or, where it is far away, at the edge."""
    for row, (name, score) in enumerate(choice.lines.items()):
        at, y = x(score), 12 + _LABEL * row
        label = f"{SHORT_NAMES.get(name, name)} {number(score, choice.digits)}"
        if name in near:
            line = path([(at, y - 5), (at, bottom)])
            yield element("path", d=line, stroke="currentColor", stroke_dasharray="2 3")
        elif score < x.low:
            label = f"◂ {label}"
        else:
            label = f"{label} ▸"
        is_right = at > (x.start + x.end) / 2
        anchor = "end" if is_right else "start"
        yield text(label, at - (3 if is_right else -3), y + 3, text_anchor=anchor, opacity=0.8)


def _candidate(candidate: Candidate, x: Scale, y: float) -> Iterator[str]:
    name = candidate.name
    yield text(name, x.start - 8, y + 4, text_anchor="end")
    if not math.isnan(candidate.half):
        ends = [(x(candidate.score + side * candidate.half), y) for side in (-1, 1)]
        yield element(
            "path", d=path(ends), stroke=colour(name), stroke_width=3, class_=f"line {name}",
            opacity=0.55,
        )  # fmt: skip
    look = {"fill": "none", "class_": f"line hollow {name}"}
    if not candidate.beaten:
        look = {"fill": colour(name), "class_": f"area {name}"}
    yield element(
        "circle", cx=x(candidate.score), cy=y, r=5, stroke=colour(name), stroke_width=1.8, **look
    )
    if not math.isnan(candidate.share):
        yield text(f"{100 * candidate.share:.0f} %", WIDTH - 4, y + 4, text_anchor="end")
