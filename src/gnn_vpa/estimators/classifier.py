"""A classifier of graphs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from torch import nn

from ..errors import UsageError
from ..graphs import FeatureKind, GraphSet
from ..trained import TrainedModel
from .base import GraphEstimator
from .reading import Graphs, Learned, classes_in, graphs_in, held, labels_of

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GraphClassifier(ClassifierMixin, GraphEstimator):  # type: ignore[misc]
    """Learns classes of graphs, or several labels of each: an estimator of scikit-learn.

    Args:
        model: ``"gin"``, ``"gcn"``, ``"gat"``, ``"sgc"``, ``"deep"``; or a function
            ``make(in_channels, out_channels)`` that makes a PyG network, or its name
            ``"module:function"``.
        aggr: The aggregation of layers and readout, see `gnn_vpa.build_model`. A network that a
            function makes is converted to it; None leaves it as it is.
        width: Width of the layers; None: the model's default, as for the next two.
        depth: Number of layers.
        dropout: Probability of dropout.
        epochs: How often every training graph is seen, at most.
        learning_rate: Adam's.
        batch_size: Graphs of a step.
        weight_decay: Weight decay.
        validation_fraction: Share of the graphs in `fit` that choose the epoch, stratified.
        patience: Epochs without a better one after which the training ends; None: none.
        metric: What chooses the epoch, see `gnn_vpa.training.METRICS`; ``"auto"``: accuracy, or
            ROC-AUC for several labels.
        class_weight: ``"balanced"``: all classes weigh the same; None: all graphs do.
        features: Node features: ``"auto"``, ``"ones"``, ``"degree"`` or ``"labels"``, see
            `gnn_vpa.graphs.features`.
        device: Where it is trained: ``"auto"``, ``"cpu"``, ``"cuda"``. Afterwards the model is on
            the CPU.
        random_state: A seed, by which everything is the same again; None: one is drawn.

    Attributes:
        classes_: The classes, sorted, of the type they were given in; of several labels their
            numbers from 0.
        n_features_in_: Number of node features.
        model_: The `TrainedModel`.
        module_: The network, to be called as PyG's are.
        history_: Training loss and validation score by epoch.
        best_epoch_: The epoch whose weights these are, from 0.
        seed_: The seed.
        signal_: The probe of the network, see `gnn_vpa.probe`.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> mutag = load("MUTAG").to_pyg()
        >>> labels = ["mutagenic" if graph.y == 1 else "safe" for graph in mutag]
        >>> classifier = GraphClassifier(epochs=20, random_state=0).fit(mutag, labels)
        >>> classifier.classes_.tolist()
        ['mutagenic', 'safe']
        >>> classifier.predict_proba(mutag).shape, classifier.transform(mutag).shape
        ((188, 2), (188, 64))
        >>> classifier.score(mutag, labels) > 0.7
        True
    """

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
        class_weight: Literal["balanced"] | None = None,
        features: FeatureKind = "auto",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            model,
            aggr,
            width=width,
            depth=depth,
            dropout=dropout,
            epochs=epochs,
            learning_rate=learning_rate,
            batch_size=batch_size,
            weight_decay=weight_decay,
            validation_fraction=validation_fraction,
            patience=patience,
            metric=metric,
            features=features,
            device=device,
            random_state=random_state,
        )
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        """Say that there may be several labels."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def predict(self, X: Graphs) -> NDArray[Any]:
        """Return the class of each graph, or its labels ``[graphs, T]``."""
        model = self._trained()
        outputs = model.outputs(graphs_in(X))
        if model.target.kind == "labels":
            return model.target.predictions(outputs)
        said: NDArray[Any] = self.classes_[outputs.argmax(1)]
        return said

    def predict_proba(self, X: Graphs) -> NDArray[np.floating]:
        """Return the probability of each class, ``[graphs, classes]``, or of each label."""
        return self._trained().predict_proba(graphs_in(X))

    def score(
        self, X: Graphs, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the accuracy; without ``y``, on what the graphs have."""
        graphs = held(X)
        if y is None:
            y = self._known(graphs, self.read(graphs, None))
        elif isinstance(graphs, GraphSet):
            self._check_not_numbers(graphs, y)
        return float(super().score(graphs, y, sample_weight))

    def read(self, X: Graphs, y: ArrayLike | None) -> Learned:
        """Return the graphs with their classes."""
        return classes_in(X, y)

    def take(self, learned: Learned, model: TrainedModel) -> "GraphClassifier":
        """Take over a model that was trained."""
        super().take(learned, model)
        outputs = np.arange(model.target.outputs)
        self.classes_ = outputs if learned.classes is None else learned.classes
        return self

    def _known(self, graphs: "GraphSet | list[Data]", learned: Learned) -> NDArray[Any]:
        """Refuse labels of graphs that are none of the model's: another archive's, say."""
        labels = labels_of(learned)
        unknown = [] if labels.ndim > 1 else np.setdiff1d(labels, self.classes_).tolist()
        if unknown:
            raise UsageError(
                f"X: a graph is of class {unknown[0]!r}, and the model knows "
                f"{', '.join(map(repr, self.classes_.tolist()))}: give y"
            )
        if learned.classes is not None:
            there = graphs.classes if isinstance(graphs, GraphSet) else learned.classes.tolist()
            self._trained().target.check_names(learned.graphs, there)
        return labels

    def _check_not_numbers(self, graphs: GraphSet, y: ArrayLike) -> None:
        """Refuse the numbers of a data set's classes where the model knows the classes' labels."""
        labels, numbers = graphs.classes, np.arange(len(graphs.classes))
        is_named = graphs.kind == "classes" and not np.array_equal(labels, numbers)
        if (
            is_named
            and np.isin(self.classes_, labels).all()
            and np.array_equal(np.asarray(y), graphs.y.numpy())
        ):
            raise UsageError(
                f"y: these are numbers of classes, which are {', '.join(map(repr, labels))}: leave "
                "y away to score the graphs' labels"
            )

    def _weighs_classes(self) -> bool:
        if self.class_weight not in (None, "balanced"):
            raise UsageError(
                f"class_weight: expected None or 'balanced', got {self.class_weight!r}"
            )
        return self.class_weight == "balanced"
