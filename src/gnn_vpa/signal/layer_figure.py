"""Theory beside measurement, layer by layer, as a table of draws and as a picture."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..aggregations import aggregation
from ..errors import UsageError
from ..escape import figure_text
from .figure import STYLE
from .layers import LayerSignal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_VARIANCES = ("independent", "correlated", "measured", "second_moment")


def average_signals(draws: Sequence[Sequence[LayerSignal]]) -> list[LayerSignal]:
    """Average what ``signal_by_layer`` says of several draws of initial weights.

    Variances are averaged by their logarithms, because the layers' random factors multiply.

    Example:
        >>> one, other = (LayerSignal("convs.0", v, v, v, v, rho=0.5) for v in (1.0, 4.0))
        >>> average_signals([[one], [other]])[0].measured
        2.0
    """
    return [_average(layer) for layer in zip(*draws, strict=True)]


def _average(layer: Sequence[LayerSignal]) -> LayerSignal:
    variances = {
        name: math.exp(
            math.fsum(math.log(max(getattr(one, name), 1e-300)) for one in layer) / len(layer)
        )
        for name in _VARIANCES
    }
    rho = math.fsum(one.rho for one in layer) / len(layer)
    return LayerSignal(layer[0].layer, **variances, rho=rho)


def plot_layers(
    signals: Mapping[str, Mapping[str, Sequence[LayerSignal]]], title: str = ""
) -> "Figure":
    """Draw measured variances as dots, over both predictions, a panel for each data set.

    Args:
        signals: The records of each aggregation, for each data set.
        title: What is drawn, such as the model's name.

    Returns:
        A matplotlib figure: ``figure.savefig("theory.png")``.

    Example:
        >>> one = [LayerSignal("convs.0", 1.0, 2.0, 2.1, 2.1, rho=0.5)]
        >>> len(plot_layers({"MUTAG": {"vpa": one}}).axes)
        1
    """
    if not signals:
        raise UsageError("signals must hold at least one data set, and is empty")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        # One panel is wider, for the words above it.
        figure = Figure(figsize=(max(8.0, 0.9 + 4.1 * len(signals)), 5.0))
        panels = figure.subplots(1, len(signals), squeeze=False)[0]
        edge = 0.75 / figure.get_figwidth()
        figure.subplots_adjust(edge, 0.12, 1 - edge / 3, 0.76, wspace=0.2)
        for axes, (name, aggrs) in zip(panels, signals.items(), strict=True):
            for aggr, layers in aggrs.items():
                _draw(axes, aggr, layers)
            axes.set(yscale="log", xlabel="layer")
            axes.set_title(figure_text(name), loc="left", fontsize=11)
        panels[0].set_ylabel("variance before activation")
        figure.suptitle(title, x=0.01, horizontalalignment="left", fontsize=13, fontweight="bold")
        figure.text(
            0.01,
            0.9,
            "dots: measured    solid: predicted with measured correlation    "
            "dashed: predicted for independent messages",
            color="#555555",
            fontsize=10,
        )
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="upper left",
            bbox_to_anchor=(0.0, 0.895),
            borderaxespad=0.2,
            ncols=len(labels),
            frameon=False,
        )
    return figure


def _draw(axes: "Axes", aggr: str, layers: Sequence[LayerSignal]) -> None:
    places = range(1, len(layers) + 1)
    names = [layer.layer.removeprefix("convs.") for layer in layers]
    ticks = ["readout" if "head" in n else str(p) for p, n in zip(places, names, strict=True)]
    style: dict[str, Any] = {"color": aggregation(aggr).colour, "linewidth": 1.8}
    axes.plot(places, [layer.independent for layer in layers], "--", alpha=0.8, **style)
    axes.plot(places, [layer.correlated for layer in layers], "-", **style)
    measured = [layer.measured for layer in layers]
    axes.plot(places, measured, "o", color=aggregation(aggr).colour, label=aggr, markersize=6)
    axes.set_xticks(list(places), ticks)
