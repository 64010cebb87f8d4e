"""Trained models: what they know, what they say of new graphs, and how they are kept in files."""

from .encoding import Encoding as Encoding
from .encoding import encoding_of as encoding_of
from .ensemble import Ensemble as Ensemble
from .exporting import export_model as export_model
from .model import Predictor as Predictor
from .model import TrainedModel as TrainedModel
from .model import Units as Units
from .record import DataRecord as DataRecord
from .record import Record as Record
from .saving import load_model as load_model
from .target import Target as Target
from .target import target_of as target_of
from .train import model_of as model_of
from .train import train_model as train_model
from .train import validation_split as validation_split

__all__ = [
    "DataRecord",
    "Encoding",
    "Ensemble",
    "Predictor",
    "Record",
    "Target",
    "TrainedModel",
    "Units",
    "encoding_of",
    "export_model",
    "load_model",
    "model_of",
    "target_of",
    "train_model",
    "validation_split",
]
