"""What needs no neural network: the majority class, and the Weisfeiler-Leman subtree kernel."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import one_hot

from ..errors import GnnVpaError
from ..graphs import FeatureKind, GraphSet, Split, features, kind_of
from ..graphs.targets import known
from ..training import METRICS, Lane, Metric, Outcome
from ..training.metrics import evaluate

BASELINES: Final = ("majority", "wl")
"""The baselines by name."""

_LEARNED = {"labels": "several labels", "regression": "numbers"}
_ITERATIONS = (1, 2, 3, 4, 5)
_PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0)
# grakel holds every graph as Python dictionaries, at more than 100 bytes an edge.
_MOST_EDGES = 3_000_000


def obstacle(name: str, graphs: GraphSet) -> str | None:
    """Say why a baseline cannot be had for a data set, or None.

    Raises:
        GnnVpaError: It needs a package that is not installed.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> pair = GraphSet.from_pyg([Data(edge_index=edges, num_nodes=2, y=0)])
        >>> obstacle("majority", pair) is None
        True
    """
    if (learned := kind_of(graphs.y)) != "classes":
        return f"it predicts classes, and here {_LEARNED[learned]} are learned"
    if name != "wl":
        return None
    if find_spec("grakel") is None:
        raise GnnVpaError(
            "the Weisfeiler-Leman baseline needs grakel: pip install 'gnn-vpa[baselines]'"
        )
    if graphs.num_edges > _MOST_EDGES:
        return f"{graphs.num_edges:,} edges are more than grakel can hold ({_MOST_EDGES:,})"
    if empty := int((graphs.node_ptr.diff() == 0).sum()):
        return f"{empty} graph(s) have no node, and grakel knows no such graph"
    return None


def fit_baseline(
    name: str, graphs: GraphSet, kind: FeatureKind, lanes: Sequence[Lane], metric: str = "accuracy"
) -> list[Outcome]:
    """Run a baseline in the same folds as everything else.

    `majority` predicts the most frequent class of the training graphs. `wl` is an SVM on the
    normalised subtree kernel, which starts from node labels (or degrees, or nothing, as `kind`
    says; node attributes are left out). The number of iterations and the SVM's C are those of the
    best validation score, the first of them where several are equal.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> graphs = [Data(edge_index=edges, num_nodes=2, y=y) for y in (0, 1, 1, 1)]
        >>> split = Split(torch.tensor([1, 2]), torch.tensor([3]), torch.tensor([0, 3]))
        >>> made = GraphSet.from_pyg(graphs)
        >>> fit_baseline("majority", made, "auto", [Lane(0, split, 0)])[0].test_score
        0.5
    """
    kernels = [] if name == "majority" else list(_kernels(graphs, kind))
    outcomes = []
    for lane in lanes:
        # A graph whose class is not known teaches nothing.
        train = lane.split.train[known(graphs.y[lane.split.train])]
        split = lane.split._replace(train=train)
        if name == "majority":
            valid, test = _majority(graphs.y, split)
        else:
            valid, test = _svm(kernels, graphs.y, split, METRICS[metric])
        outcomes.append(_outcome(lane, graphs, metric, valid, test))
    return outcomes


def _majority(y: Tensor, split: Split) -> tuple[Tensor, Tensor]:
    """Return the predicted classes of the validation and of the test graphs."""
    most = y[split.train].bincount().argmax()
    return most.expand(len(split.valid)), most.expand(len(split.test))


def _svm(kernels: list[Any], y: Tensor, split: Split, metric: Metric) -> tuple[Tensor, Tensor]:
    from sklearn.svm import SVC

    train, valid, test = (part.numpy() for part in split)
    labels, classes = y.numpy(), int(y.max()) + 1
    tried = []
    for kernel in kernels:
        for penalty in _PENALTIES:
            machine = SVC(C=penalty, kernel="precomputed", cache_size=500)
            machine.fit(kernel[np.ix_(train, train)], labels[train])
            predicted = torch.from_numpy(machine.predict(kernel[np.ix_(valid, train)]))
            score = metric.of(y[split.valid], one_hot(predicted, classes).float())
            tried.append((score, predicted, machine, kernel))
    _, predicted, machine, kernel = max(tried, key=itemgetter(0))  # the first of the highest
    return predicted, torch.from_numpy(machine.predict(kernel[np.ix_(test, train)]))


def _kernels(graphs: GraphSet, kind: FeatureKind) -> Iterator[NDArray[np.float64]]:
    from grakel import VertexHistogram, WeisfeilerLehman

    colours = _colours(graphs, kind)
    ends, col = graphs.rowptr.tolist(), graphs.col.tolist()
    pointers = graphs.node_ptr.tolist()
    listed = [
        [
            {node: col[ends[node] : ends[node + 1]] for node in range(first, last)},
            {node: colours[node] for node in range(first, last)},
        ]
        for first, last in pairwise(pointers)
    ]
    for iterations in _ITERATIONS:
        kernel = WeisfeilerLehman(
            n_iter=iterations, normalize=True, base_graph_kernel=VertexHistogram
        )
        yield kernel.fit_transform(listed)


def _colours(graphs: GraphSet, kind: FeatureKind) -> list[int]:
    if kind in ("auto", "labels") and graphs.node_labels is not None:
        rows = graphs.node_labels.numpy()
        return [int(code) for code in np.unique(rows, axis=0, return_inverse=True)[1].ravel()]
    codes = features(graphs, "degree" if kind == "degree" else "ones").codes
    return [] if codes is None else [int(code) for code in codes]


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
