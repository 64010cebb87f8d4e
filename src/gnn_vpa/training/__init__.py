"""Many trainings at once: the paper's protocol on stacked lanes."""

from .initial import initial_model as initial_model
from .plain_batch import PlainBatch as PlainBatch
from .plain_batch import plain_batch as plain_batch
from .task import Lane as Lane
from .task import Outcome as Outcome
from .task import Protocol as Protocol
from .task import Task as Task
from .task import Training as Training
from .trainer import fit as fit

__all__ = [
    "Lane",
    "Outcome",
    "PlainBatch",
    "Protocol",
    "Task",
    "Training",
    "fit",
    "initial_model",
    "plain_batch",
]
