"""What is trained, how, and what comes out: plain records."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ..aggregations import aggregation
from ..errors import UsageError
from ..graphs import FeatureKind, Split
from ..nn import all_options, build_model
from .own import build, is_own

Curve = NDArray[np.floating]  # of the type that was trained in
Curves = NDArray[np.float32]  # [3, epochs]: training loss, validation and test score


@dataclass(frozen=True)
class Task:
    """A model and the features that it sees.

    Attributes:
        model: A name that ``build_model`` knows, or ``module:function`` that makes a user's model.
        aggr: Its aggregation.
        variant: ``"released"`` or ``"printed"``.
        features: Node features, see ``gnn_vpa.graphs.features``.
        options: Other settings of the model, as pairs of name and value; ``start`` is what its
            initial weights are, see `initial.py`.
        source: A hash of the source of a model that is not among ours.

    Example:
        >>> Task("gin", "vpa", options=(("width", 32),)).options
        (('width', 32),)
    """

    model: str
    aggr: str
    variant: str = "released"
    features: FeatureKind = "auto"
    options: tuple[tuple[str, Any], ...] = ()
    source: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        # Equal tasks must look equal too, because seeds are made from how they look: no "GIN"
        # beside "gin", and no member of an enumeration in the place of a string.
        for name in ("model", "aggr", "variant", "features"):
            text = str.__str__(getattr(self, name))
            is_reference = name == "model" and ":" in text  # a name in Python
            object.__setattr__(self, name, text if is_reference else text.lower())
        if self.aggr:  # a baseline has none
            object.__setattr__(self, "aggr", aggregation(self.aggr).name)
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    @property
    def start(self) -> str:
        """What the initial weights are: ``"default"``, ``"init"`` or ``"calibrated"``.

        Example:
            >>> Task("gin", "vpa").start
            'default'
        """
        return str(dict(self.options).get("start", "default"))

    @property
    def parameters(self) -> dict[str, Any]:
        """All options of the model, with the defaults of those that nobody has said.

        Of a model of a user's only what was said is known.

        Example:
            >>> Task("gin", "vpa", options=(("width", 32),)).parameters
            {'width': 32, 'depth': 4, 'dropout': 0.5, 'hidden': None}
        """
        said = dict(self.options)
        if is_own(self.model):
            return said
        start = {"start": said.pop("start")} if "start" in said else {}
        return {**all_options(self.model, self.variant, **said), **start}

    def build(self, in_channels: int, num_classes: int) -> nn.Module:
        """Build the model, with PyTorch's weights from the global generator.

        Example:
            >>> Task("sgc", "vpa", options=(("K", 3),)).build(in_channels=7, num_classes=2).K
            3
        """
        if is_own(self.model):
            return build(self, in_channels, num_classes).model
        options = {name: value for name, value in self.options if name != "start"}
        return build_model(self.model, in_channels, num_classes, self.aggr, self.variant, **options)


Optimizer = Literal["adam", "adamw", "sgd"]
Schedule = Literal["constant", "cosine", "step"]
Loss = Literal["auto", "cross_entropy", "bce", "l1", "mse", "huber"]
ClassWeight = Literal["none", "balanced"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True)
class Protocol:
    """How a model is trained, in shuffled batches.

    Attributes:
        epochs: How often every training graph is seen, at most.
        batch_size: Graphs of a step.
        learning_rate: The optimiser's, at the start.
        weight_decay: Added to the gradient (adam, sgd) or taken off the weights (adamw).
        optimizer: ``"adam"``, ``"adamw"``, or ``"sgd"`` with a momentum of 0.9.
        schedule: The learning rate by epoch: ``"constant"``, ``"cosine"`` (to 0 over ``epochs``) or
            ``"step"`` (halved every 50 epochs).
        patience: A training ends after so many epochs in which its validation metric has not
            improved; None: it never does.
        clip: Gradients of a larger norm, over all of a model's weights, are scaled down to it.
        loss: ``"cross_entropy"`` for classes, ``"bce"`` for labels, ``"l1"``, ``"mse"`` or
            ``"huber"`` for regression; ``"auto"`` is the first of the kind.
        class_weight: ``"balanced"``: classes, and labels that are there or not, weigh as much as
            if they were equally frequent among the training graphs.
        metric: What chooses the epoch, see `metrics.py`; ``"auto"``: accuracy for classes, ROC-AUC
            for labels, MAE for regression.
        precision: What nodes' rows are kept in between the operations of a step on a GPU:
            ``"bfloat16"`` halves what is read and written. Sums over rows are formed in float32;
            statistics, losses and the optimiser's weights are float32. Models of ours alone.

    Raises:
        UsageError: A setting is none that there is.

    Example:
        >>> Protocol().epochs
        200
        >>> Protocol(optimizer="sdg")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: optimizer: 'sdg' is unknown, expected one of adam, adamw, sgd.
    """

    epochs: int = 200
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    optimizer: Optimizer = "adam"
    schedule: Schedule = "constant"
    patience: int | None = None
    clip: float | None = None
    loss: Loss = "auto"
    class_weight: ClassWeight = "none"
    metric: str = "auto"
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "learning_rate", "patience", "clip"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{name}: expected more than 0, got {value}.")
        if not self.weight_decay >= 0:
            raise UsageError(f"weight_decay: expected 0 or more, got {self.weight_decay}.")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(
                    f"{name}: {getattr(self, name)!r} is unknown, expected one of "
                    f"{', '.join(choices)}."
                )

    def settings(self) -> dict[str, Any]:
        """Return what results are known by: the first three settings, and others if not usual.

        Example:
            >>> Protocol(epochs=50, schedule="step").settings()
            {'epochs': 50, 'batch_size': 64, 'learning_rate': 0.001, 'schedule': 'step'}
        """
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        usual = {each.name: each.default for each in fields(self)[3:]}
        return {name: v for name, v in own.items() if name not in usual or v != usual[name]}


_CHOICES: dict[str, tuple[str, ...]] = {
    "optimizer": get_args(Optimizer),
    "schedule": get_args(Schedule),
    "loss": get_args(Loss),
    "class_weight": get_args(ClassWeight),
    "precision": get_args(Precision),
}


class Lane(NamedTuple):
    """One training among those that run side by side.

    Example:
        >>> import torch
        >>> one = torch.tensor([0])
        >>> Lane(fold=3, split=Split(one, one, one), seed=0).fold
        3
    """

    fold: int
    split: Split
    seed: int = 0


class Training(NamedTuple):
    """A task on one lane's graphs, and how it is trained.

    Example:
        >>> import torch
        >>> one = torch.tensor([0])
        >>> Training(Task("gin", "vpa"), Lane(3, Split(one, one, one))).lane.fold
        3
    """

    task: Task
    lane: Lane
    protocol: Protocol = Protocol()


class Predictions(NamedTuple):
    """What a network says of graphs, in the order of their split.

    A score for each class (the highest is the prediction) or label (there, where it is above 0), or
    numbers in the data's own units.

    Example:
        >>> import torch
        >>> Predictions(valid=torch.zeros(3, 2), test=torch.zeros(4, 2)).test.shape
        torch.Size([4, 2])
    """

    valid: Tensor  # [graphs, outputs]
    test: Tensor  # [graphs, outputs]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one training came to.

    Attributes:
        fold: The lane's fold.
        seed: The lane's seed.
        best_epoch: The first epoch, from 0, with the best validation score.
        val_score: Validation score at that epoch, in the metric of the protocol.
        test_score: Test score at that epoch.
        train_loss: Training loss of that epoch, the mean over its graphs.
        diverged_epoch: The epoch in which the loss stopped being finite, or the first one if no
            validation score ever was; the scores are then NaN. None: they stayed finite.
        curve_train_loss: The training loss by epoch, as far as it was trained.
        curve_val: The validation score by epoch.
        curve_test: The test score by epoch.
        scores: Each metric of the kind: in validation and test, at the best epoch; NaN where it is
            undefined.
        predictions: What the network said at the best epoch.
        weights: The network's weights and statistics at the best epoch, if asked for.

    Example:
        >>> loss, valid, test = ([2.0, 1.0, 0.5], [0.6, 0.8, 0.8], [0.5, 0.7, 0.9])
        >>> outcome = Outcome.of(0, 0, *(np.array(c, np.float32) for c in (loss, valid, test)))
        >>> outcome.best_epoch, round(outcome.test_score, 3)
        (1, 0.7)
    """

    fold: int
    seed: int
    best_epoch: int
    val_score: float
    test_score: float
    train_loss: float
    diverged_epoch: int | None
    curve_train_loss: Curve
    curve_val: Curve
    curve_test: Curve
    scores: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    predictions: Predictions | None = None
    weights: dict[str, Tensor] | None = None

    @classmethod
    def of(
        cls,
        fold: int,
        seed: int,
        loss: Curve,
        valid: Curve,
        test: Curve,
        *,
        higher_is_better: bool = True,
    ) -> "Outcome":
        """Choose the epoch by validation alone: the first of the best.

        Example:
            >>> nan = np.array([1.0, np.nan], np.float32)
            >>> Outcome.of(0, 0, nan, nan, nan).diverged_epoch
            1
        """
        broken = np.flatnonzero(~np.isfinite(loss))
        if len(broken) == 0 and not np.isfinite(valid).any():  # the network says nothing finite
            broken = np.zeros(1, np.int64)
        if len(broken) > 0:
            nan = float("nan")
            return cls(fold, seed, 0, nan, nan, nan, int(broken[0]), loss, valid, test)
        best = int(np.nanargmax(valid) if higher_is_better else np.nanargmin(valid))
        at_best = float(valid[best]), float(test[best]), float(loss[best])
        return cls(fold, seed, best, *at_best, None, loss, valid, test)
