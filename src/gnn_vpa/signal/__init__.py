"""The signal in a network: what theory predicts beside what is measured."""

from .expressivity import Separation as Separation
from .expressivity import atlas as atlas
from .expressivity import measure_expressivity as measure_expressivity
from .expressivity import plot_expressivity as plot_expressivity
from .figure import plot_variance as plot_variance
from .neighbours import Measurement as Measurement
from .neighbours import VariancePoint as VariancePoint
from .neighbours import measure_attention_variance as measure_attention_variance
from .neighbours import measure_variance as measure_variance
from .neighbours import variance_by_neighbours as variance_by_neighbours
from .theory import predicted_attention_variance as predicted_attention_variance
from .theory import predicted_variance as predicted_variance

__all__ = [
    "Measurement",
    "Separation",
    "VariancePoint",
    "atlas",
    "measure_attention_variance",
    "measure_expressivity",
    "measure_variance",
    "plot_expressivity",
    "plot_variance",
    "predicted_attention_variance",
    "predicted_variance",
    "variance_by_neighbours",
]
