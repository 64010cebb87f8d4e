"""The signal by layer at the start, one line an aggregation, with the score it came to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...aggregations import ordered
from ..format import listing, noted
from ..style import colour, dashes
from ._svg import WIDTH, Scale, element, path, picture, room, text

if TYPE_CHECKING:
    import pandas as pd

HEIGHT = 210
_LEFT, _TOP, _BELOW = 54, 14, 36
_NARROWEST = 92  # of the room at the right for names and scores
_APART = 13  # between two labels


def signal_lines(
    signals: pd.DataFrame, scores: Mapping[str, str], notes: Mapping[str, str] | None = None
) -> str:
    """Variance after each layer of one model on one data set, before training.

    Args:
        signals: the rows for one data set and model, one for each layer of each aggregation.
        scores: the mean test score of each aggregation, as printed; shown where it is known.
        notes: what must be said beside a score, see `summarise`: there it gets an asterisk,
            because there is no room for words, and the description has the note.

    Returns:
        The figure as SVG text.

    Example:
        >>> import pandas as pd
        >>> rows = [["MUTAG", "GCN", "vpa", layer, 1.0] for layer in ("convs.0", "convs.1")]
        >>> columns = ["dataset", "model", "aggregation", "layer", "variance"]
        >>> svg = signal_lines(pd.DataFrame(rows, columns=columns), {"vpa": "86.7 %"})
        >>> svg.startswith("<svg") and "vpa 86.7 %" in svg
        True
    """
    dataset, model = signals[["dataset", "model"]].iloc[0]
    lines = {
        name: [float(v) for v in signals[signals["aggregation"] == name]["variance"]]
        for name in ordered(signals["aggregation"])
    }
    title = f"Variance by layer of {model} on {dataset}, before training"
    known = [v for line in lines.values() for v in line if v > 0 and math.isfinite(v)]
    if not known:
        return picture(HEIGHT, title, "No layer has a variance.", [])
    bottom = max(HEIGHT - _BELOW, _TOP + _APART * (len(lines) - 1))
    y = Scale(min(known) / 1.5, max(known) * 1.5, bottom, _TOP, log=True)
    count = max(len(line) for line in lines.values())
    notes = notes or {}
    labels = {name: f"{name} {scores.get(name, '')}".strip() for name in lines}
    ends = [
        f"{noted(labels[name], notes.get(name, ''))}, variance {line[-1]:.3g}"
        for name, line in lines.items()
    ]
    labels = {name: f"{label}*" if notes.get(name) else label for name, label in labels.items()}
    right = WIDTH - room(labels.values(), _NARROWEST)
    x = Scale(1.0, float(max(count, 2)), _LEFT, right)
    return picture(
        bottom + _BELOW,
        title,
        f"After the last layer: {listing(ends)}.",
        [*_axes(x, y, count), *_drawn(lines, x, y), *_labelled(lines, labels, right, y)],
    )


def _axes(x: Scale, y: Scale, count: int) -> Iterator[str]:
    for tick in y.ticks():
        at = y(tick)
        yield element(
            "path", d=path([(_LEFT, at), (x.end, at)]), stroke="currentColor", opacity=0.15
        )
        written = f"{tick:g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
        yield text(written, _LEFT - 5, at + 3.5, text_anchor="end")
    for layer in range(1, count + 1, math.ceil(count / 6)):
        yield text(str(layer), x(layer), y.start + 14, text_anchor="middle")
    yield text("layer", (_LEFT + x.end) / 2, y.start + 30, text_anchor="middle")
    middle = (_TOP + y.start) / 2
    turned = f"rotate(-90 10 {middle:g})"
    yield text("variance, log scale", 10, middle, text_anchor="middle", transform=turned)


def _drawn(lines: Mapping[str, list[float]], x: Scale, y: Scale) -> Iterator[str]:
    for name, line in lines.items():
        points = [(x(place), y(v)) for place, v in enumerate(line, 1) if v > 0]
        yield element(
            "path", d=path(points) if points else "M0 0", fill="none", stroke=colour(name),
            stroke_width=1.8, stroke_dasharray=dashes(name), class_=f"line {name}",
        )  # fmt: skip
        for cx, cy in points:
            yield element("circle", cx=cx, cy=cy, r=2.2, fill=colour(name), class_=f"area {name}")


def _labelled(
    lines: Mapping[str, list[float]], labels: Mapping[str, str], right: float, y: Scale
) -> Iterator[str]:
    """Write each line's name and score at its end, none over another."""
    wanted = sorted(
        (y(line[-1]) if line[-1] > 0 else y.start, name) for name, line in lines.items()
    )
    places = [at for at, _ in wanted]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + _APART)
    places[-1] = min(places[-1], y.start)
    for i in reversed(range(len(places) - 1)):
        places[i] = min(places[i], places[i + 1] - _APART)
    for at, (_, name) in zip(places, wanted, strict=True):
        yield text(labels[name], right + 8, at + 3.5, fill=colour(name), class_=f"area {name}")
