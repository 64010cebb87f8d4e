"""Many trainings at once: the paper's protocol on stacked lanes."""

from .task import Lane as Lane
from .task import Outcome as Outcome
from .task import Protocol as Protocol
from .task import Task as Task
from .trainer import fit as fit

__all__ = ["Lane", "Outcome", "Protocol", "Task", "fit"]
