"""The score, and the signal at the start, against the exponent p of N^-p."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...aggregations import AGGREGATIONS
from ..format import listing, mean_std, noted
from ..measure import ACCURACY, Measure, measure
from ..style import colour
from ._svg import WIDTH, Scale, element, path, picture, text

if TYPE_CHECKING:
    import pandas as pd

_LEFT, _RIGHT = 62, WIDTH - 16
_SCORE = (24, 130)  # top and bottom of a panel
_VARIANCE = (152, 240)
_BELOW = 36  # room for the numbers and the name of p


def power_lines(points: pd.DataFrame, metric: str = ACCURACY) -> str:
    """Score and variance of one model on one data set, against the exponent p of N^-p.

    Powers are a line, with a band of one standard deviation; what has a name of its own (sum, vpa,
    mean) is a mark at its p. What has no number has a cross at the bottom, and the line a gap.

    Args:
        points: a row for each aggregation: dataset, model, aggregation, p, mean and std (of the
            score, as in `summarise`), digits, note and variance (of the last layer at the start;
            NaN throughout where it is not known).
        metric: what the scores are.

    Returns:
        The figure as SVG text.

    Example:
        >>> import pandas as pd
        >>> points = pd.DataFrame({
        ...     "dataset": "MUTAG", "model": "GIN", "note": "", "std": 1.0, "digits": 1,
        ...     "mean": [70, 75, 72], "aggregation": ["power(0)", "power(0.5)", "power(1)"],
        ...     "p": [0.0, 0.5, 1.0], "variance": [100.0, 1.0, 0.01],
        ... })
        >>> svg = power_lines(points)
        >>> svg.startswith("<svg") and "GIN on MUTAG" in svg
        True
    """
    rows = list(points.sort_values("p", kind="stable").itertuples())
    probed = any(_positive(row.variance) for row in rows)
    bottom = (_VARIANCE if probed else _SCORE)[1]
    x = _p_scale([row.p for row in rows])
    parts = [*_names(x, bottom), *_p_axis(x, bottom)]
    scores, known = _score_scale(rows), measure(metric)
    parts += _axis(scores, known.noun + (", %" if known.is_share else ""))
    parts += _band([row for row in rows if row.aggregation not in AGGREGATIONS], x, scores)
    parts += _values(rows, lambda row: row.mean, x, scores)
    if probed:
        variance = _variance_scale(rows)
        parts += _axis(variance, "variance, log")
        parts += _values(rows, lambda row: row.variance, x, variance)
    return picture(
        bottom + _BELOW,
        f"Powers of {rows[0].model} on {rows[0].dataset}",
        f"By exponent: {listing([_said(row, probed, known) for row in rows])}.",
        parts,
    )


def _said(row: Any, probed: bool, metric: Measure) -> str:
    score = mean_std(row.mean, row.std, row.digits) + metric.percent
    score = f"no {metric.noun}" if math.isnan(row.mean) else score
    variance = f", variance {row.variance:.3g}" if probed else ""
    return f"{row.aggregation} {noted(score, row.note)}{variance}"


def _positive(value: float) -> bool:
    return value > 0 and math.isfinite(value)


def _p_scale(exponents: Sequence[float]) -> Scale:
    margin = max(0.04 * (max(exponents) - min(exponents)), 0.01)
    return Scale(min(exponents) - margin, max(exponents) + margin, _LEFT, _RIGHT)


def _score_scale(rows: Sequence[Any]) -> Scale:
    known = [row for row in rows if not math.isnan(row.mean)]
    spread = [0.0 if math.isnan(row.std) else row.std for row in known]
    ends = [row.mean + sign * s for row, s in zip(known, spread, strict=True) for sign in (-1, 1)]
    top, bottom = _SCORE
    if not ends:
        return Scale(0.0, 100.0, bottom, top)
    margin = 0.05 * (max(ends) - min(ends)) or 0.01 * abs(ends[0]) or 0.5
    return Scale(min(ends) - margin, max(ends) + margin, bottom, top)


def _variance_scale(rows: Sequence[Any]) -> Scale:
    known = [row.variance for row in rows if _positive(row.variance)]
    top, bottom = _VARIANCE
    return Scale(min(known) / 1.5, max(known) * 1.5, bottom, top, log=True)


def _names(x: Scale, bottom: float) -> Iterator[str]:
    """Mark the exponents that have a name."""
    for name, entry in AGGREGATIONS.items():
        if entry.exponent is not None and x.low <= entry.exponent <= x.high:
            at = x(entry.exponent)
            yield element(
                "path", d=path([(at, _SCORE[0] - 6), (at, bottom)]), stroke=colour(name),
                stroke_dasharray="3 3", class_=f"line {name}", opacity=0.7,
            )  # fmt: skip
            yield text(name, at, 12, text_anchor="middle", fill=colour(name), class_=f"area {name}")


def _p_axis(x: Scale, bottom: float) -> Iterator[str]:
    for tick in x.ticks():
        yield text(f"{tick:g}", x(tick), bottom + 14, text_anchor="middle")
    middle = (_LEFT + _RIGHT) / 2
    yield text("p: a sum over N neighbours, times N^-p", middle, bottom + 30, text_anchor="middle")


def _axis(y: Scale, name: str) -> Iterator[str]:
    for tick in y.ticks(4):
        line = path([(_LEFT, y(tick)), (_RIGHT, y(tick))])
        yield element("path", d=line, stroke="currentColor", opacity=0.15)
        written = f"{tick:g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
        yield text(written, _LEFT - 5, y(tick) + 3.5, text_anchor="end")
    middle = (y.start + y.end) / 2
    yield text(name, 10, middle, text_anchor="middle", transform=f"rotate(-90 10 {middle:g})")


def _band(powers: Iterable[Any], x: Scale, y: Scale) -> Iterator[str]:
    for known, run in groupby(powers, lambda row: not math.isnan(row.mean + row.std)):
        if known:
            rows = list(run)
            upper = [(x(row.p), y(row.mean + row.std)) for row in rows]
            lower = [(x(row.p), y(row.mean - row.std)) for row in reversed(rows)]
            yield element("path", d=path(upper + lower, closed=True), fill_opacity=0.14)


def _values(
    rows: Sequence[Any], value: Callable[[Any], float], x: Scale, y: Scale
) -> Iterator[str]:
    """Draw a line through the powers, a dot for each, and a diamond for what has a name."""

    def known(row: Any) -> bool:
        return _positive(value(row)) if y.log else not math.isnan(value(row))

    powers = [row for row in rows if row.aggregation not in AGGREGATIONS]
    for there, run in groupby(powers, known):
        if there:
            line = path((x(row.p), y(value(row))) for row in run)
            yield element("path", d=line, fill="none", stroke="currentColor", stroke_width=1.5)
    for row in rows:
        at, name = x(row.p), row.aggregation
        if not known(row):
            yield text("\N{MULTIPLICATION SIGN}", at, y.start - 2, text_anchor="middle")
            continue
        height = y(value(row))
        if name in AGGREGATIONS:
            corners = [(at - 5, height), (at, height - 5), (at + 5, height), (at, height + 5)]
            yield element(
                "path", d=path(corners, closed=True), fill="none", stroke=colour(name),
                stroke_width=1.8, class_=f"line {name}",
            )  # fmt: skip
        else:
            yield element("circle", cx=at, cy=height, r=2.8, fill=colour(name))
        if row.note and not y.log:
            yield text("*", at, height - 5, text_anchor="middle")
