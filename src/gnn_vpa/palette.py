"""One colour for each aggregation, in every figure; all of them safe for colour-blind readers."""

from typing import Final

#: Okabe and Ito's palette.
COLOURS: Final = {
    "sum": "#D55E00",
    "mean": "#0072B2",
    "max": "#CC79A7",
    "vpa": "#009E73",
    "default": "#666666",
}
