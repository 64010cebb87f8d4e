"""What needs no graph network: the majority class, random forests, the subtree kernel."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import UsageError
from ..graphs import FeatureKind, GraphSet, Split, features
from ..training import Lane, Outcome
from .forest import degree_numbers, forest, pooled_features
from .subtree_kernel import subtree_kernels

#: Every baseline that `fit_baseline` knows, and what it is in words.
LABELS: Final = {
    "majority": "majority class",
    "no_edges": "no edges: random forest on pooled node features",
    "no_features": "no features: random forest on degrees and sizes",
    "wl": "WL subtree kernel and SVM",
}

BASELINES: Final = ("majority", "wl")
"""Those that a run adds where baselines are asked for, by name."""

_ITERATIONS = 5
_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
_MOST_GRAPHS = 10_000  # the kernel has a number for each pair: 800 MB
_MOST_NUMBERS = 50_000_000  # of pooled features: sums and means are 800 MB


def obstacle(name: str, graphs: GraphSet) -> str | None:
    """Say why a baseline cannot be had for a data set, or None.

    Example:
        >>> from torch_geometric.data import Data
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> pair = GraphSet.from_pyg([Data(edge_index=edges, num_nodes=2, y=0)])
        >>> obstacle("wl", pair) is None
        True
    """
    if name == "wl" and graphs.num_graphs > _MOST_GRAPHS:
        return f"{graphs.num_graphs:,} graphs are too many for a kernel ({_MOST_GRAPHS:,})"
    own = graphs.own_features
    if name == "no_edges" and own is not None and graphs.num_graphs * own.width > _MOST_NUMBERS:
        return f"{graphs.num_graphs:,} graphs with {own.width:,} columns are too many for a forest"
    return None


def fit_baseline(
    name: str, graphs: GraphSet, kind: FeatureKind, lanes: Sequence[Lane]
) -> list[Outcome]:
    """Run a baseline in the same folds as everything else.

    `majority` predicts the most frequent class of the training graphs. `no_edges` is a random
    forest on the number of nodes, and sum and mean of the node features; `no_features` one on
    numbers of nodes and edges and on the degrees. `wl` is an SVM on the normalised subtree kernel,
    which starts from node labels (or degrees, or nothing, as `kind` says; node attributes are left
    out). Least graphs in a leaf, the number of iterations and the SVM's C are those of the highest
    validation accuracy, the first of them where several are equal.

    Example:
        >>> from torch_geometric.data import Data
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> graphs = [Data(edge_index=edges, num_nodes=2, y=y) for y in (0, 1, 1, 1)]
        >>> split = Split(torch.tensor([1, 2]), torch.tensor([3]), torch.tensor([0, 3]))
        >>> made = GraphSet.from_pyg(graphs)
        >>> fit_baseline("majority", made, "auto", [Lane(0, split, 0)])[0].test_score
        0.5
    """
    y, folds = graphs.y.numpy(), [lane.split for lane in lanes]
    match name:
        case "majority":
            scores = [_majority(y, split) for split in folds]
        case "no_edges":
            numbers = pooled_features(graphs, kind)
            scores = [forest(numbers, y, split) for split in folds]
        case "no_features":
            numbers = degree_numbers(graphs)
            scores = [forest(numbers, y, split) for split in folds]
        case "wl":
            scores = _svm(graphs, kind, folds)
        case _:
            raise UsageError(f"no baseline is called {name!r}: use {', '.join(LABELS)}")
    return [_outcome(lane, *score) for lane, score in zip(lanes, scores, strict=True)]


def _majority(y: NDArray[np.int64], split: Split) -> tuple[float, float]:
    most = np.bincount(y[split.train]).argmax()
    return float(np.mean(y[split.valid] == most)), float(np.mean(y[split.test] == most))


def _svm(graphs: GraphSet, kind: FeatureKind, folds: Sequence[Split]) -> list[tuple[float, float]]:
    from sklearn.svm import SVC

    y = graphs.y.numpy()
    tried: list[list[tuple[float, float]]] = [[] for _ in folds]
    for kernel in subtree_kernels(graphs, _colours(graphs, kind), _ITERATIONS):
        for (train, valid, test), scores in zip(_arrays(folds), tried, strict=True):
            seen, chosen, tested = (kernel[np.ix_(part, train)] for part in (train, valid, test))
            for penalty in _PENALTIES:
                machine = SVC(C=penalty, kernel="precomputed", cache_size=500)
                machine.fit(seen, y[train])
                valid_score = float(machine.score(chosen, y[valid]))
                scores.append((valid_score, float(machine.score(tested, y[test]))))
    return [max(scores, key=itemgetter(0)) for scores in tried]  # the first of the highest


def _arrays(folds: Sequence[Split]) -> list[list[NDArray[np.int64]]]:
    return [[part.numpy() for part in split] for split in folds]


def _colours(graphs: GraphSet, kind: FeatureKind) -> Tensor:
    """Return the colours that refinement starts from: [N]."""
    if kind in ("auto", "labels") and graphs.node_labels is not None:
        colours: Tensor = torch.unique(graphs.node_labels, dim=0, return_inverse=True)[1]
        return colours
    codes = features(graphs, "degree" if kind == "degree" else "ones").codes
    assert codes is not None  # degrees and ones are one-hot
    return codes


def _outcome(lane: Lane, valid: float, test: float) -> Outcome:
    none = np.empty(0, np.float32)
    return Outcome(
        fold=lane.fold,
        seed=lane.seed,
        best_epoch=0,
        val_score=valid,
        test_score=test,
        train_loss=float("nan"),
        diverged_epoch=None,
        curve_train_loss=none,
        curve_val=none,
        curve_test=none,
    )
