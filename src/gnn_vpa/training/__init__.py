"""Many trainings at once: the paper's protocol on stacked lanes."""

from .initial import initial_model as initial_model
from .lanes import family_of as family_of
from .metrics import METRICS as METRICS
from .metrics import Metric as Metric
from .metrics import better as better
from .metrics import default_metric as default_metric
from .metrics import metric_for as metric_for
from .metrics import metrics_for as metrics_for
from .plain_batch import PlainBatch as PlainBatch
from .plain_batch import plain_batch as plain_batch
from .task import Lane as Lane
from .task import Outcome as Outcome
from .task import Predictions as Predictions
from .task import Protocol as Protocol
from .task import Task as Task
from .task import Training as Training
from .trainer import fit as fit

__all__ = [
    "METRICS",
    "Lane",
    "Metric",
    "Outcome",
    "PlainBatch",
    "Predictions",
    "Protocol",
    "Task",
    "Training",
    "better",
    "default_metric",
    "family_of",
    "fit",
    "initial_model",
    "metric_for",
    "metrics_for",
    "plain_batch",
]
