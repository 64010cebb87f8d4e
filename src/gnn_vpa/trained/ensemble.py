"""Several models that say something together: those of the folds of a run."""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from ..errors import UsageError
from .batch import Part
from .model import Predictor, TrainedModel

_LEAST = 1e-300  # probability, which must have a logarithm


class Ensemble(Predictor):
    """The mean of models: of their probabilities, or of the numbers that they say.

    Its outputs are the logarithms (for labels the log-odds) of mean probabilities.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> from gnn_vpa.trained import train_model
        >>> from gnn_vpa.training import Protocol, Task
        >>> mutag, protocol = load("MUTAG"), Protocol(epochs=1)
        >>> two = [train_model(mutag, Task("gin", "vpa"), protocol, seed=seed) for seed in (0, 1)]
        >>> mean = (two[0].predict_proba(mutag) + two[1].predict_proba(mutag)) / 2
        >>> bool(abs(Ensemble(two).predict_proba(mutag) - mean).max() < 1e-6)
        True
    """

    def __init__(self, models: Sequence[TrainedModel]) -> None:
        if not models:
            raise UsageError("an ensemble needs a model")
        self.models, self.target = list(models), models[0].target
        if any(model.target != self.target for model in models):
            raise UsageError("models of an ensemble must say the same of a graph")

    @property
    def size(self) -> int:
        """Size of a batch that suits all models."""
        return min(model.size for model in self.models)

    def part_outputs(self, part: Part) -> Tensor:
        """Return the mean of what the models say of a batch."""
        said = torch.stack([model.part_outputs(part).double() for model in self.models])
        if self.target.kind == "regression":
            return said.mean(0)
        if self.target.kind == "labels":
            return torch.logit(said.sigmoid().mean(0), eps=torch.finfo(torch.float64).eps)
        return said.softmax(2).mean(0).clamp(min=_LEAST).log()

    def to(self, device: torch.device | str) -> Self:
        """Move the models to a device, and return them."""
        for model in self.models:
            model.to(device)
        return self
