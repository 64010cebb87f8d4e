"""What both estimators have in common: parameters, training, and what is known after it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ..errors import UsageError
from ..graphs import FeatureKind, subset
from ..signal import probe
from ..spelling import whole_number
from ..trained import TrainedModel, train_model
from ..trained.batch import Part
from ..training import Protocol, Task
from ..training.own import is_own, planned
from .in_units import InUnits
from .reading import Graphs, Learned, graphs_in, weighted

if TYPE_CHECKING:
    from ..signal.probing import Report

_PROBED = 16  # graphs that the signal is measured on
_MAX_SEED = (1 << 32) - 1  # what scikit-learn's splitters take


class Plan(NamedTuple):
    """How a fit is done: arguments of `train_model`."""

    task: Task
    protocol: Protocol
    seed: int
    validation_fraction: float
    device: str


class GraphEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A model of graphs that is trained by the engine of `run`; see the two kinds of it."""

    def __init__(
        self,
        model: str | Callable[..., nn.Module] = "gin",
        aggr: str | None = "vpa",
        *,
        width: int | None = None,
        depth: int | None = None,
        dropout: float | None = None,
        epochs: int = 200,
        learning_rate: float = 1e-3,
        batch_size: int = 64,
        weight_decay: float = 0.0,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        metric: str = "auto",
        features: FeatureKind = "auto",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.model = model
        self.aggr = aggr
        self.width = width
        self.depth = depth
        self.dropout = dropout
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.metric = metric
        self.features = features
        self.device = device
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Say that X are graphs, which scikit-learn cannot look into."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        tags.target_tags.required = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def fit(
        self, X: Graphs, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train the model; the epoch is chosen by a part of the graphs that is not trained on.

        Args:
            X: The graphs: a list of PyG ``Data``, a data set of PyG, a `GraphSet`, or the name of
                a data set.
            y: What is learned of each graph. None: what the graphs have as ``y``.
            sample_weight: How much each graph counts in the loss, on the CPU; the epoch is chosen
                by all validation graphs alike. None: all count the same.

        Raises:
            UsageError: It cannot be trained so.
            GnnVpaError: The training diverged.
        """
        learned = weighted(self.read(X, y), sample_weight)
        plan = self.plan(learned)
        # Threads would wait for each other, and how many there are would be seen.
        return self.take(learned, train_model(learned.graphs, workers=1, **plan._asdict()))

    def predict(self, X: Graphs) -> NDArray[Any]:
        """Return what the model says of each graph."""
        return self._trained().predict(graphs_in(X))

    def transform(self, X: Graphs) -> NDArray[np.floating]:
        """Return what the network makes of each graph before its head, ``[graphs, width]``."""
        return self._trained().embed(graphs_in(X))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trained model into a folder.

        `gnn_vpa.load_model` reads it, with the same predictions.
        """
        self._trained().save(path)

    @property
    def signal_(self) -> Report:
        """The probe of the fitted model, on the first graphs that it was fitted on."""
        model = self._trained()
        args, kwargs = model.caller.arguments(Part(self._probed, 0, self._probed.num_graphs))
        return probe(model.module, *args, **kwargs)

    @property
    def _n_features_out(self) -> int:
        return int(self._trained().embed(self._probed).shape[1])

    # What cross-validation in lanes needs -----------------------------------------------------

    @abstractmethod
    def read(self, X: Graphs, y: ArrayLike | None) -> Learned:
        """Return the graphs with what is to be learned of them."""

    def plan(self, learned: Learned) -> Plan:
        """Return how a fit to these graphs would be done now; a seed is drawn if there is none.

        Raises:
            UsageError: A parameter cannot be used.
        """
        from ..experiments.devices import resolve_device

        device = str(self.device)
        if device == "auto" and learned.graphs.weights is not None:
            device = "cpu"  # where graphs may count differently
        task, protocol, seed = self.task(), self._protocol(), self._seed()
        return Plan(task, protocol, seed, self.validation_fraction, resolve_device(device))

    def take(self, learned: Learned, model: TrainedModel) -> Self:
        """Take over a model that was trained."""
        if learned.classes is not None:
            of_time = learned.classes.dtype.kind in "mM"  # which Python might have as plain numbers
            classes = list(learned.classes) if of_time else learned.classes.tolist()
            model.target = replace(model.target, classes=tuple(classes))
        self.model_ = model
        self.module_ = model.module if model.units is None else InUnits(model.module, model.units)
        self.n_features_in_ = model.encoding.width
        self.history_ = {name: list(values) for name, values in model.record.history.items()}
        self.best_epoch_ = model.record.best_epoch
        self.seed_ = model.record.seed
        self._probed = subset(learned.graphs, torch.arange(min(_PROBED, learned.graphs.num_graphs)))
        return self

    def _trained(self) -> TrainedModel:
        check_is_fitted(self)
        return self.model_

    def task(self) -> Task:
        """Return the model that is trained.

        Raises:
            UsageError: There is no such model.
        """
        # As Python's numbers: seeds depend on how a task looks, and NumPy's numbers look different.
        given = {
            "width": None if self.width is None else whole_number(self.width, "width", 1),
            "depth": None if self.depth is None else whole_number(self.depth, "depth", 1),
            "dropout": None if self.dropout is None else _real(self.dropout, "dropout"),
        }
        options = tuple((name, value) for name, value in given.items() if value is not None)
        if isinstance(self.model, str) and not is_own(self.model):
            name, source = self.model, ""
        else:
            name, source = planned(self.model)
        aggr = "default" if self.aggr is None else self.aggr
        return Task(name, aggr, features=self.features, options=options, source=source)

    def _protocol(self) -> Protocol:
        patience = None if self.patience is None else whole_number(self.patience, "patience", 1)
        return Protocol(
            epochs=whole_number(self.epochs, "epochs", 1),
            batch_size=whole_number(self.batch_size, "batch_size", 1),
            learning_rate=_real(self.learning_rate, "learning_rate"),
            weight_decay=_real(self.weight_decay, "weight_decay"),
            patience=patience,
            class_weight="balanced" if self._weighs_classes() else "none",
            metric=self.metric,
        )

    def _weighs_classes(self) -> bool:
        return False

    def _seed(self) -> int:
        given = self.random_state
        if isinstance(given, Integral):
            if not 0 <= given <= _MAX_SEED:
                raise UsageError(f"random_state: expected 0 to {_MAX_SEED}, got {given}")
            return int(given)
        if given is None:  # NumPy's global generator is the user's
            return int(np.random.default_rng().integers(np.iinfo(np.int32).max))
        return int(check_random_state(given).randint(np.iinfo(np.int32).max))


def _real(number: Any, what: str) -> float:
    try:
        return float(number)
    except (TypeError, ValueError):
        raise UsageError(f"{what}: expected a number, got {number!r}") from None
