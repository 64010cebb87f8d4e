"""The signal in a network: what theory predicts beside what is measured."""

from ._variance import variance as variance
from .calibration import Calibrated as Calibrated
from .calibration import CalibrationReport as CalibrationReport
from .calibration import calibrate as calibrate
from .correlation import message_correlation as message_correlation
from .expressivity import Separation as Separation
from .expressivity import atlas as atlas
from .expressivity import measure_expressivity as measure_expressivity
from .expressivity import plot_expressivity as plot_expressivity
from .figure import plot_variance as plot_variance
from .initialise import Drawn as Drawn
from .initialise import InitReport as InitReport
from .initialise import init_ as init_
from .layer_figure import average_signals as average_signals
from .layer_figure import plot_layers as plot_layers
from .layers import LayerSignal as LayerSignal
from .layers import signal_by_layer as signal_by_layer
from .neighbours import Measurement as Measurement
from .neighbours import VariancePoint as VariancePoint
from .neighbours import measure_attention_variance as measure_attention_variance
from .neighbours import measure_variance as measure_variance
from .neighbours import variance_by_neighbours as variance_by_neighbours
from .probing import Finding as Finding
from .probing import Group as Group
from .probing import Probe as Probe
from .probing import Report as Report
from .probing import Statistics as Statistics
from .probing import Step as Step
from .probing import Watch as Watch
from .probing import probe as probe
from .sampling import Sample as Sample
from .sampling import sample as sample
from .theory import predicted_attention_variance as predicted_attention_variance
from .theory import predicted_variance as predicted_variance

__all__ = [
    "Calibrated",
    "CalibrationReport",
    "Drawn",
    "Finding",
    "Group",
    "InitReport",
    "LayerSignal",
    "Measurement",
    "Probe",
    "Report",
    "Sample",
    "Separation",
    "Statistics",
    "Step",
    "VariancePoint",
    "Watch",
    "atlas",
    "average_signals",
    "calibrate",
    "init_",
    "measure_attention_variance",
    "measure_expressivity",
    "measure_variance",
    "message_correlation",
    "plot_expressivity",
    "plot_layers",
    "plot_variance",
    "predicted_attention_variance",
    "predicted_variance",
    "probe",
    "sample",
    "signal_by_layer",
    "variance",
    "variance_by_neighbours",
]
