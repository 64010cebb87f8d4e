"""The picture of Lemma 2: pairs of graphs that 1-WL tells apart and a network does not."""

from collections.abc import Sequence
from itertools import groupby
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ...aggregations import aggregation
from ...errors import UsageError
from ...escape import figure_text
from .measure import Separation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "axes.edgecolor": "#999999",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "text.color": "#222222",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}
_NONE = 1e-8  # where the axis, which is logarithmic, shows 0
_TICKS = {1: "all", 1e-2: "1 %", 1e-4: "0.01 %", 1e-6: "0.0001 %", _NONE: "none"}


def plot_expressivity(rows: Sequence[Separation]) -> "Figure":
    """Draw the share of pairs that networks miss against their depth.

    A row of panels for each data set, a column for each precision. Points are the mean over the
    seeds.

    Args:
        rows: What ``measure_expressivity`` returns, of one or more data sets one after the other.

    Returns:
        A matplotlib figure: ``figure.savefig("expressivity.png")``.

    Example:
        >>> from gnn_vpa.signal import atlas, measure_expressivity
        >>> rows = measure_expressivity(atlas(), precisions=["float32"], depths=[1], seeds=[0])
        >>> len(plot_expressivity(rows).axes)
        1
    """
    if not rows:
        raise UsageError("rows must hold at least one measurement, and is empty")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    datasets, precisions = (list(dict.fromkeys(row[i] for row in rows)) for i in (0, 3))
    with rc_context(STYLE):
        figure = Figure(
            figsize=(1.2 + 2.4 * len(precisions), 1.5 + 1.3 * len(datasets)), layout="constrained"
        )
        panels = figure.subplots(
            len(datasets), len(precisions), sharex=True, sharey=True, squeeze=False
        )
        for dataset, line in zip(datasets, panels, strict=True):
            for precision, axes in zip(precisions, line, strict=True):
                _draw(axes, [row for row in rows if (row[0], row[3]) == (dataset, precision)])
            line[0].set_title(figure_text(str(dataset)), loc="left", fontsize=10, fontweight="bold")
        for precision, axes in zip(precisions, panels[0], strict=True):
            axes.set_title(precision, loc="right", fontsize=10, color="#555555")
        for axes in panels[-1]:
            axes.set_xlabel("layers")
        _label(figure, panels[0, 0], sorted({row.depth for row in rows}))
    return figure


def _draw(axes: "Axes", rows: list[Separation]) -> None:
    aggrs = list(dict.fromkeys(row.aggr for row in rows))
    alone = [row for row in rows if row.seed is not None]
    for place, aggr in enumerate(aggrs):
        mine = sorted((row for row in alone if row.aggr == aggr), key=lambda row: row.depth)
        missed = {
            depth: fmean(1 - row.share for row in group)
            for depth, group in groupby(mine, key=lambda row: row.depth)
        }
        shift = 0.07 * (place - (len(aggrs) - 1) / 2)  # so that equal values do not hide each other
        axes.plot(
            [depth + shift for depth in missed],
            [max(share, _NONE) for share in missed.values()],
            color=aggregation(aggr).colour,
            marker=aggregation(aggr).marker,
            markersize=5.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            linewidth=1.6,
            label=aggr,
            clip_on=False,
        )


def _label(figure: "Figure", axes: "Axes", depths: list[int]) -> None:
    axes.set(ylim=(_NONE / 2, 2), xlim=(depths[0] - 0.3, depths[-1] + 0.3), yscale="log")
    axes.set_xticks(depths)
    axes.set_yticks(list(_TICKS), list(_TICKS.values()))
    axes.minorticks_off()
    figure.suptitle(
        "Pairs of graphs that 1-WL tells apart and a random network does not",
        x=0.015,
        horizontalalignment="left",
        fontsize=12,
        fontweight="bold",
    )
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
