"""The picture of the method: variance against the number of neighbours."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ..aggregations import aggregation
from ..errors import UsageError
from .neighbours import VariancePoint
from .theory import predicted_variance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "axes.edgecolor": "#999999",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.1,
    "font.size": 10.5,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "text.color": "#222222",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}
_CAPTION: dict[str, Any] = {"loc": "left", "fontsize": 10.5, "color": "#555555"}


def plot_variance(points: Sequence[VariancePoint]) -> "Figure":
    """Draw measured variances as dots over the predicted lines, on logarithmic axes.

    A second panel shows the measured divided by the predicted variance, where the error bars
    (one standard error) are large enough to be seen.

    Args:
        points: What ``variance_by_neighbours`` returns.

    Returns:
        A matplotlib figure: ``figure.savefig("variance.png")``.

    Example:
        >>> from gnn_vpa.signal import variance_by_neighbours
        >>> figure = plot_variance(variance_by_neighbours(["sum", "vpa"], [1, 10], trials=100))
        >>> [axes.get_xscale() for axes in figure.axes]
        ['log', 'log']
    """
    if not points:
        raise UsageError("points must hold at least one measurement, and is empty")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(7.2, 6.0), layout="constrained")
        variances, ratios = figure.subplots(2, sharex=True, height_ratios=[3, 1.1])
        series = [list(group) for _, group in groupby(points, key=lambda point: point.aggr)]
        for place, line in enumerate(series):
            _draw_variances(variances, line)
            _draw_ratios(ratios, line, shift=1.07 ** (place - (len(series) - 1) / 2))
        _label(figure, variances, ratios)
    return figure


def _draw_variances(axes: "Axes", points: list[VariancePoint]) -> None:
    aggr, last = points[0].aggr, points[-1].n
    counts = sorted({round(last ** (i / 60)) for i in range(61)})
    predicted = [predicted_variance(aggr, n) for n in counts]
    axes.plot(counts, predicted, color=aggregation(aggr).colour, linewidth=2.0, alpha=0.7)
    axes.errorbar(
        [point.n for point in points],
        [point.measured.variance for point in points],
        [point.measured.standard_error for point in points],
        fmt="o",
        markersize=5.5,
        color=aggregation(aggr).colour,
        markeredgecolor="white",
        markeredgewidth=0.7,
        zorder=3,
        clip_on=False,
    )
    axes.annotate(
        aggr,
        (last, predicted[-1]),
        xytext=(9, 0),
        textcoords="offset points",
        color=aggregation(aggr).colour,
        fontsize=12,
        fontweight="bold",
        verticalalignment="center",
    )


def _draw_ratios(axes: "Axes", points: list[VariancePoint], shift: float) -> None:
    axes.errorbar(
        [point.n * shift for point in points],
        [point.measured.variance / point.predicted for point in points],
        [point.measured.standard_error / point.predicted for point in points],
        fmt="o",
        markersize=3.5,
        elinewidth=1.2,
        color=aggregation(points[0].aggr).colour,
    )


def _label(figure: "Figure", variances: "Axes", ratios: "Axes") -> None:
    figure.suptitle(
        "Variance after aggregating N independent messages of variance 1",
        x=0.015,
        horizontalalignment="left",
        fontsize=13,
        fontweight="bold",
    )
    variances.set(xscale="log", yscale="log")
    variances.set_title("dots: measured    lines: predicted", **_CAPTION)
    variances.yaxis.set_major_formatter(lambda v, _: f"{v:,.{max(0, -math.floor(math.log10(v)))}f}")

    largest = max(abs(limit - 1.0) for limit in ratios.get_ylim())
    ratios.set(ylim=(1.0 - largest, 1.0 + largest), xlabel="number of neighbours N")
    ratios.set_title("measured ÷ predicted, with one standard error", **_CAPTION)
    ratios.xaxis.set_major_formatter(lambda n, _: f"{n:,.0f}")
    ratios.axhline(1.0, color="#999999", linewidth=1.0, zorder=1)
    for axes in (variances, ratios):
        axes.minorticks_off()
