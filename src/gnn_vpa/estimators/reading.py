"""From what users hand to `fit` to a data set of the engine."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import type_of_target
from torch import Tensor
from torch_geometric.data import Data

from ..errors import UsageError
from ..graphs import GraphSet, load
from ..graphs.targets import MISSING, known, narrowed
from ..trained import target_of

Graphs = str | GraphSet | Iterable[Data]

# The seeds of a lane depend on the data: with one name for all, the same random_state starts from
# the same weights in a part of the graphs as in all of them, as cross-validation in lanes needs.
NAME = "graphs"


class Learned(NamedTuple):
    """Graphs with what is to be learned of them."""

    graphs: GraphSet
    classes: NDArray[np.generic] | None = None  # the label of each class, in ascending order


def classes_in(X: Graphs, y: ArrayLike | None) -> Learned:
    """Return graphs with their classes, or with several labels at once.

    Args:
        X: The graphs.
        y: The class of each graph, of any type that can be sorted, or labels ``[G, T]`` of 0 and
            1. None: what the graphs have.

    Raises:
        UsageError: The targets are neither, or of other graphs.
    """
    if y is None:
        graphs = load(X)
        if graphs.kind == "regression":
            raise UsageError(
                f"{graphs.name}: its targets are numbers, and GraphClassifier learns classes: use "
                "GraphRegressor, or give classes as y"
            )
        if graphs.kind == "labels" and graphs.y.shape[1] > 1:
            return Learned(_named(graphs))
        own = graphs.y.flatten()  # a single label has two classes, as scikit-learn sees it
        there = known(own)
        labels = own[there].numpy()
        if graphs.kind == "classes":
            labels = np.asarray(target_of(graphs).classes)[labels]
    else:
        graphs, given = _without_target(X), _array(y)
        _check_all_there(given)
        kind = type_of_target(given, input_name="y")
        if kind == "multilabel-indicator":
            return Learned(_with_y(graphs, torch.tensor(given, dtype=torch.int8)))
        if kind not in ("binary", "multiclass"):
            raise UsageError(
                f"y is {kind}, and GraphClassifier learns classes, or labels [graphs, T] of 0 and "
                "1: use GraphRegressor for numbers"
            )
        labels = column_or_1d(given, warn=True)
        there = torch.ones(len(labels), dtype=torch.bool)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        only = classes.tolist()
        found = f"all graphs are of class {only[0]!r}" if only else "no graph has a class"
        raise UsageError(f"{graphs.name}: {found}, and two classes are the least to learn")
    numbered = torch.full((len(there),), MISSING)
    numbered[there] = torch.from_numpy(codes)
    return Learned(_with_y(graphs, numbered), classes)


def numbers_in(X: Graphs, y: ArrayLike | None) -> Learned:
    """Return graphs with their numbers.

    Args:
        X: The graphs.
        y: A number for each graph, or several: ``[G]`` or ``[G, T]``. None: what the graphs have,
            NaN where it is missing.

    Raises:
        UsageError: The targets are of another kind, or of other graphs.
    """
    if y is None:
        graphs = load(X, kind="regression")
        return Learned(_named(graphs))
    graphs = _without_target(X)
    given = _array(y)
    _check_all_there(given)
    try:
        table = check_array(given, ensure_2d=False, dtype=np.float64, input_name="y")
        numbers = narrowed(table.reshape(len(table), -1))
    except ValueError as error:
        raise UsageError(f"y: GraphRegressor learns numbers, and {error}") from None
    return Learned(_with_y(graphs, numbers))


def graphs_in(X: Graphs) -> GraphSet | Iterable[Data]:
    """Return graphs as a trained model takes them: a data set by its name is loaded."""
    return load(X) if isinstance(X, str) else X


def held(X: Graphs) -> GraphSet | list[Data]:
    """Return graphs that can be gone through twice."""
    graphs = graphs_in(X)
    return graphs if isinstance(graphs, GraphSet) else list(graphs)


def labels_of(learned: Learned) -> NDArray[Any]:
    """Return what is learned of each graph as users have it: ``[G]``, or ``[G, T]``.

    Raises:
        UsageError: A target is missing.
    """
    y = learned.graphs.y
    if not bool(known(y).all()):
        raise UsageError(
            f"{learned.graphs.name}: some targets are missing, and of these graphs nothing can be "
            "said: leave them out"
        )
    return y.numpy() if learned.classes is None else learned.classes[y.numpy()]


def weighted(learned: Learned, sample_weight: ArrayLike | None) -> Learned:
    """Return the same graphs, each with what it counts in the loss.

    Raises:
        UsageError: A weight is negative or not finite, or they are of other graphs.
    """
    if sample_weight is None:
        return learned
    weights, graphs = _array(sample_weight).astype(np.float64), learned.graphs
    if weights.shape != (graphs.num_graphs,):
        raise UsageError(
            f"sample_weight is of shape {weights.shape}, and X has {graphs.num_graphs} graphs"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise UsageError("sample_weight: expected finite numbers from 0 on, not all of them 0")
    column = torch.from_numpy(weights).float().unsqueeze(1)
    return learned._replace(graphs=replace(graphs, weights=column))


def _array(y: ArrayLike) -> NDArray[np.generic]:
    return np.asarray(y.detach().cpu() if isinstance(y, Tensor) else y)


def _check_all_there(y: NDArray[Any]) -> None:
    """Refuse an entry that stands for none."""
    if y.dtype.kind not in "fO":
        return
    import pandas as pd  # it loads slowly, and knows all that stands for a missing value

    missing = np.argwhere(pd.isna(y))
    if len(missing) > 0:
        place = tuple(missing[0])
        raise UsageError(
            f"y: that of graph {place[0]} is missing ({y[place]}): leave such graphs out, or give "
            "targets as y of the graphs themselves, where NaN counts for nothing"
        )


def _without_target(X: Graphs) -> GraphSet:
    """Return graphs whose own targets, if they have any, are not looked at."""
    if isinstance(X, str | GraphSet):
        return load(X)
    try:
        graphs = list(X)
    except TypeError:
        raise UsageError(
            "X: expected a list of torch_geometric.data.Data, a data set of PyG, a GraphSet or a "
            f"name, got {type(X).__name__}"
        ) from None
    found = GraphSet.from_pyg(graphs, NAME, target="")
    if found.num_edges == 0:
        raise UsageError("X: none of its graphs has an edge to pass a message along")
    return found


def _with_y(graphs: GraphSet, y: Tensor) -> GraphSet:
    if len(y) != graphs.num_graphs:
        raise UsageError(f"y has {len(y)} entries, and X has {graphs.num_graphs} graphs")
    numbering = replace(graphs.numbering, classes=None)
    return _named(replace(graphs, y=y, class_names=None, numbering=numbering))


def _named(graphs: GraphSet) -> GraphSet:
    return replace(graphs, seed_name=NAME, columns={})
