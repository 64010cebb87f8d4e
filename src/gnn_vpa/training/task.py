"""What is trained, how, and what comes out: plain records."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..aggregations import aggregation
from ..graphs import FeatureKind, Split
from ..nn import Model, build_model

Curve = NDArray[np.floating]  # of the type that was trained in


@dataclass(frozen=True)
class Task:
    """A model and the features that it sees.

    Attributes:
        model: A name that ``build_model`` knows.
        aggr: Its aggregation.
        variant: ``"released"`` or ``"printed"``.
        features: Node features, see ``gnn_vpa.graphs.features``.
        options: Other settings of the model, as pairs of name and value; ``start`` is what its
            initial weights are, see `initial.py`.

    Example:
        >>> Task("gin", "vpa", options=(("width", 32),)).options
        (('width', 32),)
    """

    model: str
    aggr: str
    variant: str = "released"
    features: FeatureKind = "auto"
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        # Equal tasks must look equal too, because seeds are made from how they look: no "GIN"
        # beside "gin", and no member of an enumeration in the place of a string.
        for name in ("model", "aggr", "variant", "features"):
            object.__setattr__(self, name, str.__str__(getattr(self, name)).lower())
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

    def build(self, in_channels: int, num_classes: int) -> Model:
        """Build the model, with PyTorch's weights from the global generator.

        Example:
            >>> Task("sgc", "vpa", options=(("K", 3),)).build(in_channels=7, num_classes=2).K
            3
        """
        options = {name: value for name, value in self.options if name != "start"}
        return build_model(self.model, in_channels, num_classes, self.aggr, self.variant, **options)


@dataclass(frozen=True)
class Protocol:
    """How a model is trained: Adam on cross-entropy, in shuffled batches, for so many epochs.

    Example:
        >>> Protocol().epochs
        200
    """

    epochs: int = 200
    batch_size: int = 64
    learning_rate: float = 1e-3


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
    """A task on one lane's graphs.

    Example:
        >>> import torch
        >>> one = torch.tensor([0])
        >>> Training(Task("gin", "vpa"), Lane(3, Split(one, one, one))).lane.fold
        3
    """

    task: Task
    lane: Lane


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one training came to.

    Attributes:
        fold: The lane's fold.
        seed: The lane's seed.
        best_epoch: The first epoch, from 0, with the highest validation accuracy.
        val_acc: Validation accuracy at that epoch.
        test_acc: Test accuracy at that epoch.
        train_loss: Training loss of that epoch, the mean over its graphs.
        diverged_epoch: The epoch in which the loss stopped being finite; the accuracies are then
            NaN. None: it stayed finite.
        curve_train_loss: The training loss by epoch.
        curve_val_acc: The validation accuracy by epoch.
        curve_test_acc: The test accuracy by epoch.

    Example:
        >>> loss, valid, test = ([2.0, 1.0, 0.5], [0.6, 0.8, 0.8], [0.5, 0.7, 0.9])
        >>> outcome = Outcome.of(0, 0, *(np.array(c, np.float32) for c in (loss, valid, test)))
        >>> outcome.best_epoch, round(outcome.test_acc, 3)
        (1, 0.7)
    """

    fold: int
    seed: int
    best_epoch: int
    val_acc: float
    test_acc: float
    train_loss: float
    diverged_epoch: int | None
    curve_train_loss: Curve
    curve_val_acc: Curve
    curve_test_acc: Curve

    @classmethod
    def of(cls, fold: int, seed: int, loss: Curve, valid: Curve, test: Curve) -> "Outcome":
        """Choose the epoch by validation accuracy alone.

        Example:
            >>> nan = np.array([1.0, np.nan], np.float32)
            >>> Outcome.of(0, 0, nan, nan, nan).diverged_epoch
            1
        """
        broken = np.flatnonzero(~np.isfinite(loss))
        if len(broken) > 0:
            nan = float("nan")
            return cls(fold, seed, 0, nan, nan, nan, int(broken[0]), loss, valid, test)
        best = int(valid.argmax())  # the first of the highest
        at_best = float(valid[best]), float(test[best]), float(loss[best])
        return cls(fold, seed, best, *at_best, None, loss, valid, test)
