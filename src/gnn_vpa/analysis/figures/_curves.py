"""The paper's figure: training loss against epochs, one line an aggregation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gnn_vpa.errors import UsageError

from ...aggregations import ordered
from ..format import listing
from ..settings import KEYS, require_columns
from ..style import colour, dashes, method_label
from ._svg import WIDTH, Scale, element, path, picture, text, width

if TYPE_CHECKING:
    import pandas as pd

HEIGHT = 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 42, WIDTH - 8, 28, HEIGHT - 36
_MOST_POINTS = 200
_SWATCH, _LINE = 28, 14  # of the legend: room for a piece of line, height of a row
# Where the largest mean loss is this many times the smallest, a linear axis hides the small ones.
_LOG_FROM = 30


def learning_curves(curves: pd.DataFrame) -> str:
    """Training loss of one model on one data set: mean over folds, and a band of ± std.

    Several seeds of a fold are averaged first. A loss that is not finite is left out, so behind
    the epoch where a fold diverged the line is the mean of the others. The axis is logarithmic
    where the losses span more than a factor of 30.

    Args:
        curves: the rows of one data set and model.

    Returns:
        The figure as SVG text.

    Example:
        >>> import pandas as pd
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", 0, 0, epoch, 1 / (1 + epoch)]
        ...         for epoch in range(5)]
        >>> svg = learning_curves(pd.DataFrame(rows, columns=[*KEYS, "epoch", "train_loss"]))
        >>> svg.startswith("<svg") and "GIN on MUTAG" in svg
        True
    """
    require_columns(curves, (*KEYS, "epoch", "train_loss"))
    names = curves[["dataset", "model"]].drop_duplicates().to_numpy().tolist()
    if len(names) != 1:
        raise UsageError(
            f"expected the curves of one data set and model, got {len(names)}: "
            "select with curves[(curves.dataset == ...) & (curves.model == ...)]"
        )
    (dataset, model), lines = names[0], _lines(curves)
    if not lines:
        return picture(HEIGHT, f"{model} on {dataset}", "No finite training loss.", [])
    legend = _rows_of_legend({name: _label(model, name) for name in lines})
    x, y = _scales(lines)
    more = _LINE * (len(legend) - 1)
    ends = [f"{name} {line['mean'].iloc[-1]:.3g}" for name, line in lines.items()]
    drawn = [
        *_axes(x, y),
        *(_band(line, name, x, y) for name, line in lines.items()),
        *(_line(line, name, x, y) for name, line in lines.items()),
    ]
    return picture(
        HEIGHT + more,
        f"Training loss of {model} on {dataset}",
        f"Mean over folds at the last epoch: {listing(ends)}.",
        [_lower(drawn, more), *_legend(legend)],
    )


def _lower(parts: list[str], by: float) -> str:
    """Move parts down, where the legend needs more than a row."""
    return element("g", "".join(parts), transform=f"translate(0 {by})") if by else "".join(parts)


def _lines(curves: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Mean and standard deviation over folds by epoch, for each aggregation."""
    loss = curves["train_loss"].astype(float)
    finite = curves.assign(train_loss=loss)[np.isfinite(loss)]
    by_fold = finite.groupby(["aggregation", "fold", "epoch"], as_index=False)["train_loss"].mean()
    table = by_fold.groupby(["aggregation", "epoch"])["train_loss"].agg(["mean", "std"]).fillna(0.0)
    lines = {}
    for name in ordered(by_fold["aggregation"]):
        line = table.loc[name]
        lines[name] = line.iloc[:: math.ceil(len(line) / _MOST_POINTS)]
    return lines


def _scales(lines: dict[str, pd.DataFrame]) -> tuple[Scale, Scale]:
    means = np.concatenate([line["mean"] for line in lines.values()])
    epochs = np.concatenate([line.index for line in lines.values()])
    upper = max((line["mean"] + line["std"]).max() for line in lines.values())
    first, last = float(epochs.min()), float(epochs.max())
    x = Scale(first, max(last, first + 1), _LEFT, _RIGHT)
    smallest = float(means[means > 0].min()) if (means > 0).any() else 1.0
    if means.max() > _LOG_FROM * smallest:
        return x, Scale(smallest / 1.5, upper * 1.1, _BOTTOM, _TOP, log=True)
    return x, Scale(0.0, upper * 1.05 or 1.0, _BOTTOM, _TOP)


def _axes(x: Scale, y: Scale) -> Iterator[str]:
    for tick in y.ticks():
        at = y(tick)
        yield element(
            "path", d=path([(_LEFT, at), (_RIGHT, at)]), stroke="currentColor", opacity=0.15
        )
        yield text(f"{tick:g}", _LEFT - 5, at + 3.5, text_anchor="end")
    for tick in x.ticks():
        yield text(f"{tick:g}", x(tick), _BOTTOM + 14, text_anchor="middle")
    yield element(
        "path", d=path([(_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)]), stroke="currentColor", opacity=0.6
    )
    yield text("epoch", (_LEFT + _RIGHT) / 2, _BOTTOM + 30, text_anchor="middle")
    label = "training loss, log scale" if y.log else "training loss"
    middle = (_TOP + _BOTTOM) / 2
    turned = f"rotate(-90 10 {middle:g})"
    yield text(label, 10, middle, text_anchor="middle", transform=turned)


def _band(line: pd.DataFrame, name: str, x: Scale, y: Scale) -> str:
    lower = [(x(e), y(v)) for e, v in (line["mean"] - line["std"]).items()]
    upper = [(x(e), y(v)) for e, v in (line["mean"] + line["std"]).items()]
    outline = path(upper + lower[::-1], closed=True)
    return element("path", d=outline, fill=colour(name), class_=f"area {name}", fill_opacity=0.16)


def _line(line: pd.DataFrame, name: str, x: Scale, y: Scale) -> str:
    return _stroke(path((x(epoch), y(value)) for epoch, value in line["mean"].items()), name)


def _stroke(d: str, name: str) -> str:
    return element(
        "path",
        d=d,
        fill="none",
        stroke=colour(name),
        stroke_width=1.8,
        stroke_dasharray=dashes(name),
        class_=f"line {name}",
    )


def _label(model: str, name: str) -> str:
    return method_label(model, name) if name == "default" else name


def _rows_of_legend(labels: dict[str, str]) -> list[list[tuple[float, str, str]]]:
    """Lay out the legend: rows of (place, name, label), as many side by side as there is room."""
    widest = _SWATCH + max(width(label) for label in labels.values())
    room = _RIGHT - _LEFT
    columns = max(1, min(max(len(labels), 4), int(room / widest)))
    entries = [
        (_LEFT + index % columns * room / columns, name, label)
        for index, (name, label) in enumerate(labels.items())
    ]
    return [entries[start : start + columns] for start in range(0, len(entries), columns)]


def _legend(rows: list[list[tuple[float, str, str]]]) -> Iterator[str]:
    for row, entries in enumerate(rows):
        y = 10 + _LINE * row
        for at, name, label in entries:
            yield _stroke(path([(at, y), (at + 24, y)]), name)
            yield text(label, at + _SWATCH, y + 4)
