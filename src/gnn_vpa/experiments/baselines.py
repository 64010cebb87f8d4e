"""Baselines under the same folds: the majority, forests, the Weisfeiler-Leman kernel."""

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ..baselines import BASELINES
from ..errors import UsageError
from ..graphs import FeatureKind, GraphSet, Split, features, kind_of
from ..graphs.targets import known
from ..training import Lane, Outcome
from ..training.metrics import evaluate
from .forest import degree_numbers, forest, pooled_features
from .predicted import score
from .subtree_kernel import subtree_kernels

_LEARNED = {"labels": "several labels", "regression": "numbers"}
_ITERATIONS = 5
_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
_MOST_GRAPHS = 10_000  # the kernel has a number for each pair: 800 MB
_MOST_NUMBERS = 50_000_000  # of pooled features: sums and means are 800 MB

_Predicted = tuple[Tensor, Tensor]  # classes of the validation graphs and of the test graphs


def obstacle(name: str, graphs: GraphSet) -> str | None:
    """Return why a baseline cannot be run on a data set, or None.

    Example:
        >>> from torch_geometric.data import Data
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> pair = GraphSet.from_pyg([Data(edge_index=edges, num_nodes=2, y=0)])
        >>> obstacle("wl", pair) is None
        True
    """
    if (learned := kind_of(graphs.y)) != "classes":
        return f"it predicts classes, and here {_LEARNED[learned]} are learned"
    if name == "wl" and graphs.num_graphs > _MOST_GRAPHS:
        return f"{graphs.num_graphs:,} graphs are too many for a kernel ({_MOST_GRAPHS:,})"
    own = graphs.own_features
    if name == "no_edges" and own is not None and graphs.num_graphs * own.width > _MOST_NUMBERS:
        return f"{graphs.num_graphs:,} graphs with {own.width:,} columns are too many for a forest"
    return None


def fit_baseline(
    name: str,
    graphs: GraphSet,
    kind: FeatureKind,
    lanes: Sequence[Lane],
    metric: str = "accuracy",
) -> list[Outcome]:
    """Run a baseline in the same folds as everything else.

    `majority` predicts the most frequent class of the training graphs. `no_edges` is a random
    forest on the number of nodes, and sum and mean of the node features; `no_features` one on
    numbers of nodes and edges and on the degrees. `wl` is an SVM on the normalised subtree kernel,
    which starts from node labels (or degrees, or nothing, as `kind` says; node attributes are left
    out). Least graphs in a leaf, the number of iterations and the SVM's C are those of the best
    validation score, the first of them where several are equal.

    Example:
        >>> from torch_geometric.data import Data
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> graphs = [Data(edge_index=edges, num_nodes=2, y=y) for y in (0, 1, 1, 1)]
        >>> made = GraphSet.from_pyg(graphs)
        >>> split = Split(torch.tensor([1, 2]), torch.tensor([3]), torch.tensor([0, 3]))
        >>> fit_baseline("majority", made, "auto", [Lane(0, split, 0)])[0].test_score
        0.5
    """
    y = graphs.y
    # A graph whose class is not known teaches nothing.
    folds = [
        lane.split._replace(train=lane.split.train[known(y[lane.split.train])]) for lane in lanes
    ]
    match name:
        case "majority":
            found = [_majority(y, split) for split in folds]
        case "no_edges":
            numbers = pooled_features(graphs, kind)
            found = [forest(numbers, y, split, metric) for split in folds]
        case "no_features":
            numbers = degree_numbers(graphs)
            found = [forest(numbers, y, split, metric) for split in folds]
        case "wl":
            found = _svm(graphs, kind, folds, metric)
        case _:
            raise UsageError(f"no baseline is called {name!r}: use {', '.join(BASELINES)}")
    return [
        _outcome(lane, graphs, metric, *predicted)
        for lane, predicted in zip(lanes, found, strict=True)
    ]


def _majority(y: Tensor, split: Split) -> _Predicted:
    most = y[split.train].bincount().argmax()
    return most.expand(len(split.valid)), most.expand(len(split.test))


def _svm(
    graphs: GraphSet, kind: FeatureKind, folds: Sequence[Split], metric: str
) -> list[_Predicted]:
    from sklearn.svm import SVC

    y, labels = graphs.y, graphs.y.numpy()
    tried: list[list[tuple[float, Tensor, Tensor]]] = [[] for _ in folds]
    for kernel in subtree_kernels(graphs, _colours(graphs, kind), _ITERATIONS):
        for split, of_fold in zip(folds, tried, strict=True):
            train, valid, test = (part.numpy() for part in split)
            seen, chosen, tested = (kernel[np.ix_(part, train)] for part in (train, valid, test))
            for penalty in _PENALTIES:
                machine = SVC(C=penalty, kernel="precomputed", cache_size=500, random_state=0)
                machine.fit(seen, labels[train])
                predicted = torch.from_numpy(machine.predict(chosen))
                worth = score(metric, y[split.valid], predicted, graphs.num_classes)
                of_fold.append((worth, predicted, torch.from_numpy(machine.predict(tested))))
    best = [max(of_fold, key=itemgetter(0)) for of_fold in tried]  # the first of the highest
    return [(valid, test) for _, valid, test in best]


def _colours(graphs: GraphSet, kind: FeatureKind) -> Tensor:
    """Return the colours that refinement starts from: [N]."""
    if kind in ("auto", "labels") and graphs.node_labels is not None:
        colours: Tensor = torch.unique(graphs.node_labels, dim=0, return_inverse=True)[1]
        return colours
    codes = features(graphs, "degree" if kind == "degree" else "ones").codes
    assert codes is not None  # degrees and ones are one-hot
    return codes


def _outcome(lane: Lane, graphs: GraphSet, metric: str, valid: Tensor, test: Tensor) -> Outcome:
    judged = [
        evaluate(graphs.y[ids], one_hot(predicted, graphs.num_classes).float())
        for ids, predicted in ((lane.split.valid, valid), (lane.split.test, test))
    ]
    none = np.empty(0, np.float32)
    return Outcome(
        fold=lane.fold,
        seed=lane.seed,
        best_epoch=0,
        val_score=judged[0][metric],
        test_score=judged[1][metric],
        train_loss=float("nan"),
        diverged_epoch=None,
        curve_train_loss=none,
        curve_val=none,
        curve_test=none,
        scores={name: (judged[0][name], judged[1][name]) for name in judged[0]},
    )
