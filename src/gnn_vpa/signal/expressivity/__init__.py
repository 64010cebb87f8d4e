"""Which graphs a random network tells apart, of those that 1-WL does: Lemma 2 made visible."""

from .atlas import atlas as atlas
from .figure import plot_expressivity as plot_expressivity
from .measure import Precision as Precision
from .measure import Separation as Separation
from .measure import measure_expressivity as measure_expressivity
from .sample import sample as sample

__all__ = [
    "Precision",
    "Separation",
    "atlas",
    "measure_expressivity",
    "plot_expressivity",
    "sample",
]
