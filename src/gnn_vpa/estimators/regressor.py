"""A regressor of graphs."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from .base import GraphEstimator
from .reading import Graphs, Learned, held, labels_of, numbers_in


class GraphRegressor(RegressorMixin, GraphEstimator):  # type: ignore[misc]
    """Learns numbers of graphs: an estimator of scikit-learn.

    Args:
        model: See `GraphClassifier`, as for all parameters.
        aggr: The aggregation of layers and readout.
        width: Width of the layers.
        depth: Number of layers.
        dropout: Probability of dropout.
        epochs: How often every training graph is seen, at most.
        learning_rate: Adam's.
        batch_size: Graphs of a step.
        weight_decay: Weight decay.
        validation_fraction: Share of the graphs in `fit` that choose the epoch.
        patience: Epochs without a better one after which the training ends.
        metric: What chooses the epoch: ``"mae"`` (the same as ``"auto"``), ``"rmse"``, ``"r2"``.
        features: Node features.
        device: Where it is trained.
        random_state: A seed.

    Attributes:
        n_features_in_: Number of node features.
        model_: The `TrainedModel`.
        module_: The network, to be called as PyG's are; its outputs are in the units of ``y``.
        history_: Training loss (in standard deviations of ``y``) and validation score by epoch.
        best_epoch_: The epoch whose weights these are, from 0.
        seed_: The seed.
        signal_: The probe of the network.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> mutag = load("MUTAG").to_pyg()
        >>> sizes = [graph.num_nodes for graph in mutag]
        >>> regressor = GraphRegressor(aggr="sum", dropout=0.0, epochs=60, random_state=0)
        >>> regressor = regressor.fit(mutag, sizes)
        >>> regressor.predict(mutag).shape
        (188,)
        >>> regressor.score(mutag, sizes) > 0.5
        True
    """

    def __sklearn_tags__(self) -> Any:
        """Say that there may be several numbers."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Graphs) -> NDArray[np.floating]:
        """Return the number of each graph, or its numbers ``[graphs, T]``, in the units of y."""
        return super().predict(X).astype(np.float64)

    def score(
        self, X: Graphs, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the coefficient of determination; without ``y``, on what the graphs have."""
        graphs = held(X)
        if y is None:
            y = labels_of(self.read(graphs, None))
        return float(super().score(graphs, y, sample_weight))

    def read(self, X: Graphs, y: ArrayLike | None) -> Learned:
        """Return the graphs with their numbers."""
        return numbers_in(X, y)
