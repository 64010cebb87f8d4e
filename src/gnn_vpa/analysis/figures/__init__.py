"""Figures as SVG text, for the report or a file of their own.

Text and axes are drawn in `currentColor`, so that a figure takes on the colour of the page it is
in, light or dark.
"""

from ._curves import learning_curves as learning_curves
from ._dots import axis_name as axis_name
from ._dots import fold_dots as fold_dots
from ._grid import curves_by_dataset as curves_by_dataset
from ._powers import power_lines as power_lines
from ._signals import signal_lines as signal_lines

__all__ = [
    "axis_name",
    "curves_by_dataset",
    "fold_dots",
    "learning_curves",
    "power_lines",
    "signal_lines",
]
