"""The signal as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...escape import figure_text
from ._step import Step
from ._symptoms import layers_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, safe for colour-blind readers; markers differ too.
_LOOKS: dict[str, tuple[str, str]] = {
    "message": ("#56B4E9", "v"),
    "aggregation": ("#D55E00", "o"),
    "update": ("#009E73", "s"),
    "readout": ("#CC79A7", "D"),
    "output": ("#8a8a8a", "."),
    "function": ("#E69F00", "x"),
    "input": ("#000000", "*"),
}
STYLE: dict[Any, Any] = {
    "axes.edgecolor": "#999999",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "font.size": 9.5,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "text.color": "#222222",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}
_MOST_GROUPS = 6


def draw(steps: Sequence[Step]) -> Figure:
    """Draw the four panels of a report."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(11, 7), layout="constrained")
        (forward, backward), (degrees, distances) = figure.subplots(2, 2)
        _draw_variance(forward, steps, back=False)
        _draw_variance(backward, steps, back=True)
        _draw_degrees(degrees, steps)
        _draw_distances(distances, steps)
        handles, labels = forward.get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside upper right", ncols=len(labels))
    return figure


def draw_training(series: Sequence[tuple[int, Sequence[Step]]]) -> Figure:
    """Draw the variance of every layer, and of its gradient, over the steps of a training."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(11, 3.8), layout="constrained")
        panels = figure.subplots(1, 2)
        names = list(dict.fromkeys(step.name for _, steps in series for step in steps))
        for axes, back in zip(panels, (False, True), strict=True):
            for place, name in enumerate(names):
                points = [
                    (number, _variance(step, back))
                    for number, steps in series
                    for step in steps
                    if step.name == name
                ]
                shade = _shade(place, len(names))
                style = {"color": shade, "marker": "o", "markersize": 3, "linewidth": 1.3}
                shown = (
                    figure_text(name) if len(names) <= 8 or place in (0, len(names) - 1) else None
                )
                axes.plot(*zip(*points, strict=True), label=shown, **style)
            axes.set_title("Variance of the gradient" if back else "Variance", loc="left")
            axes.set_xlabel("training step")
            _logarithmic(axes)
        if names:
            panels[0].legend(fontsize=8)
    return figure


def _draw_variance(axes: Axes, steps: Sequence[Step], *, back: bool) -> None:
    layers = [step for step in layers_of(steps) if _variance(step, back) > 0]
    axes.plot(
        [step.index for step in layers],
        [_variance(step, back) for step in layers],
        color="#009E73" if any(step.step == "update" for step in layers) else "#8a8a8a",
        linewidth=1.2,
        zorder=1,
    )
    for name, (colour, marker) in _LOOKS.items():
        points = [(s.index, _variance(s, back)) for s in steps if s.step == name]
        points = [(x, y) for x, y in points if y > 0 and math.isfinite(y)]
        if points:
            x, y = zip(*points, strict=True)
            size = 40 if name == "input" else 16
            axes.scatter(x, y, s=size, color=colour, marker=marker, label=name, zorder=2)
    axes.set_title(
        "Variance of the gradient, loss to the right" if back else "Variance", loc="left"
    )
    _label_layers(axes, steps)
    _logarithmic(axes)


def _draw_degrees(axes: Axes, steps: Sequence[Step]) -> None:
    found = [step for step in steps if step.step == "aggregation" and step.by_degree]
    axes.set_title("Mean square after each aggregation, by in-degree", loc="left")
    if not found:
        return _nothing(axes, "no message passing was seen")
    lows = sorted({group.low for step in found for group in step.by_degree})
    shown = lows[:: math.ceil(len(lows) / _MOST_GROUPS)]
    for place, low in enumerate(shown):
        groups = [(s.index, g) for s in found for g in s.by_degree if g.low == low and g.rms > 0]
        if groups:
            colour = _shade(place, len(shown))
            x, y = [index for index, _ in groups], [group.rms**2 for _, group in groups]
            axes.plot(x, y, color=colour, marker="o", markersize=3, label=str(groups[0][1]))
    axes.legend(title="in-degree", fontsize=8, title_fontsize=8)
    _label_layers(axes, steps)
    _logarithmic(axes)
    return None


def _draw_distances(axes: Axes, steps: Sequence[Step]) -> None:
    found = [step for step in steps if not math.isnan(step.distance)]
    axes.set_title("Distance of neighbours", loc="left")
    if not found:
        return _nothing(axes, "no features of nodes with neighbours were seen")
    x = [step.index for step in found]
    axes.plot(
        x, [step.distance for step in found], color="#0072B2", marker="o", markersize=3,
        label="mean average distance (1 - cosine)",
    )  # fmt: skip
    relative = [
        step.dirichlet / square if (square := _mean_row_square(step)) else math.nan
        for step in found
    ]
    axes.plot(
        x, relative, color="#E69F00", marker="s", markersize=3, linestyle="--",
        label="Dirichlet energy ÷ mean square of a node",
    )  # fmt: skip
    axes.legend(fontsize=8)
    _label_layers(axes, steps)
    _logarithmic(axes)
    return None


def _mean_row_square(step: Step) -> float:
    rows = step.shape[0] if step.shape else 1
    return step.forward.rms**2 * step.forward.count / max(rows, 1)


def _variance(step: Step, back: bool) -> float:
    found = step.backward if back else step.forward
    return math.nan if found is None else found.variance


def _label_layers(axes: Axes, steps: Sequence[Step]) -> None:
    layers = layers_of(steps)
    shown = layers[:: math.ceil(len(layers) / 10)] if layers else []
    axes.set_xticks([step.index for step in shown], [figure_text(step.name) for step in shown])
    axes.tick_params(axis="x", rotation=30, labelsize=8)
    axes.set_xlim(-1, len(steps))


def _shade(place: int, count: int) -> Any:
    """Return one of ``count`` colours in order, all of them visible on white and on black."""
    from matplotlib import colormaps

    return colormaps["viridis"](0.25 + 0.65 * place / max(1, count - 1))


def _logarithmic(axes: Axes) -> None:
    if any((np.asarray(line.get_ydata(), float) > 0).any() for line in axes.get_lines()):
        axes.set_yscale("log", nonpositive="mask")


def _nothing(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color="#777777")
    axes.set_xticks([])
    axes.set_yticks([])
