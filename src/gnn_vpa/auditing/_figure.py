"""The expected variances as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..aggregations import aggregation
from ..signal.figure import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._variance import Variances


def draw(variances: Variances) -> Figure:
    """Draw the expected variance by layer: lines, with what was measured as their markers."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = figure.subplots()
        axes.axhline(1.0, color="#999999", linewidth=1)
        for name, layers in variances.items():
            entry, places = aggregation(name), range(1, len(layers) + 1)
            axes.plot(places, [one.correlated for one in layers], color=entry.colour, linewidth=1.8)
            measured = [one.second_moment for one in layers]
            axes.plot(places, measured, entry.marker, color=entry.colour, label=name, markersize=6)
        axes.set(yscale="log", xlabel="layer", ylabel="variance before activation")
        axes.set_xticks(list(places))
        figure.legend(loc="outside upper left", ncols=len(variances), frameon=False)
    return figure
