"""Checks of estimators whose X are graphs, in the place of scikit-learn's, which need tables."""

import copy
import pickle
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from torch_geometric.data import Data

from .graphs import GraphSet

GRAPHS = 40  # of the data that are made where none are given
_CLOSE = 1e-4  # batches of other sizes add in another order

Target = NDArray[Any]


def check_graph_estimator(
    estimator: Any, X: Sequence[Data] | None = None, y: Target | None = None
) -> None:
    """Check that an estimator of graphs keeps scikit-learn's rules, and those of graphs.

    ``sklearn.utils.estimator_checks.check_estimator`` hands tables to estimators, and so can check
    next to nothing here. These checks fit clones of the estimator some ten times: give it few
    epochs and a ``random_state``.

    Args:
        estimator: A classifier or regressor, not fitted.
        X: Graphs to check it with. None: rings and paths are made.
        y: Their targets.

    Raises:
        AssertionError: A rule is broken; the message says which.

    Example:
        >>> from gnn_vpa import GraphClassifier
        >>> check_graph_estimator(GraphClassifier(width=8, depth=2, epochs=2, random_state=0))
    """
    if X is None or y is None:
        X, y = _toy(is_classifier(estimator))
    for check in _CHECKS:
        try:
            # Copies: what one check's fits do to graphs must not pass unseen in the next.
            check(clone(estimator), copy.deepcopy(list(X)), np.array(y))
        except AssertionError as error:
            rule = (check.__doc__ or "").strip().rstrip(".")
            raise AssertionError(f"{type(estimator).__name__}: {rule}: {error}") from error


def _toy(classes: bool) -> tuple[list[Data], Target]:
    """Return rings and paths of several sizes; text or the number of nodes is learned."""
    graphs = []
    for number in range(GRAPHS):
        nodes = 3 + number // 2 % 6
        line = torch.arange(nodes - 1)
        edges = torch.stack([line, line + 1])
        if number % 2:
            edges = torch.cat([edges, torch.tensor([[nodes - 1], [0]])], dim=1)
        both = torch.cat([edges, edges.flip(0)], dim=1)
        # The smallest network, after a single step, shall tell them apart: checks compare outputs.
        x = torch.stack([torch.ones(nodes), torch.arange(nodes) % 2 + number % 2], dim=1)
        graphs.append(Data(x=x, edge_index=both))
    if classes:
        return graphs, np.array(["path", "ring"] * (GRAPHS // 2))
    return graphs, np.array([float(graph.num_nodes or 0) for graph in graphs])


def _says(estimator: Any, X: Any) -> Target:
    """Return all that an estimator says of graphs, as numbers."""
    method = estimator.predict_proba if hasattr(estimator, "predict_proba") else estimator.predict
    return np.asarray(method(X), dtype=np.float64)


def _check_parameters(estimator: Any, X: list[Data], y: Target) -> None:
    """Parameters are stored as they are given, and a fit leaves them alone."""
    before = estimator.get_params(deep=False)
    assert all(getattr(estimator, name) is value for name, value in before.items()), before
    assert not [name for name in vars(estimator) if name.endswith("_")], vars(estimator).keys()
    assert estimator.fit(X, y) is estimator, "fit must return the estimator"
    after = estimator.get_params(deep=False)
    assert all(after[name] is value for name, value in before.items()), after
    again = clone(estimator)
    assert not [name for name in vars(again) if name.endswith("_")], "a clone is fitted"
    assert again.set_params(**after).get_params(deep=False).keys() == after.keys(), after


def _check_unfitted(estimator: Any, X: list[Data], y: Target) -> None:
    """What is not fitted says so."""
    for name in ("predict", "predict_proba", "transform"):
        if hasattr(estimator, name):
            try:
                getattr(estimator, name)(X)
            except NotFittedError:
                continue
            raise AssertionError(f"{name} must raise NotFittedError")


def _check_tags(estimator: Any, X: list[Data], y: Target) -> None:
    """The tags say that X is no table, and that scikit-learn cannot validate it."""
    tags = get_tags(estimator)
    assert not tags.input_tags.two_d_array, "two_d_array"
    assert tags.no_validation, "no_validation"


def _check_same_again(estimator: Any, X: list[Data], y: Target) -> None:
    """The same seed comes to the same, and no global generator of random numbers is used."""
    if isinstance(estimator.get_params().get("random_state"), int):
        first = _says(clone(estimator).fit(X, y), X)
        torch.rand(3)
        states = torch.get_rng_state(), random.getstate()
        second = _says(estimator.fit(X, y), X)
        assert np.array_equal(first, second), "another fit says something else"
        assert torch.equal(states[0], torch.get_rng_state()), "torch's generator was used"
        assert states[1] == random.getstate(), "Python's generator was used"


def _check_data_untouched(estimator: Any, X: list[Data], y: Target) -> None:
    """Graphs and targets are left as they are."""
    graphs, targets = copy.deepcopy(X), y.copy()
    _says(estimator.fit(X, y), X)
    assert np.array_equal(y, targets), "y was changed"
    for mine, theirs in zip(graphs, X, strict=True):
        assert list(mine.keys()) == list(theirs.keys()), "an attribute came or went"
        for name in mine.keys():  # noqa: SIM118  (a graph is no mapping)
            assert _same(mine[name], theirs[name]), f"{name} was changed"


def _same(one: Any, other: Any) -> bool:
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else bool(one == other)


def _check_own_targets(estimator: Any, X: list[Data], y: Target) -> None:
    """Where y is given, what the graphs have as y is not looked at."""
    other = [copy.copy(graph) for graph in X]
    for number, graph in enumerate(other):
        graph.y = f"nonsense {number}"
    assert np.array_equal(_says(estimator.fit(X, y), X), _says(clone(estimator).fit(other, y), X))


def _check_predictions(estimator: Any, X: list[Data], y: Target) -> None:
    """Predictions are of the form and type of the targets."""
    said = estimator.fit(X, y).predict(X)
    assert said.shape == y.shape, (said.shape, y.shape)
    assert np.isfinite(estimator.score(X, y)), "the score is not finite"
    if is_classifier(estimator) and y.ndim == 1:
        assert np.array_equal(estimator.classes_, np.unique(y)), estimator.classes_
        assert np.isin(said, estimator.classes_).all(), "a class that is none"
        shares = estimator.predict_proba(X)
        assert shares.shape == (len(X), len(estimator.classes_)), shares.shape
        assert np.allclose(shares.sum(1), 1), "probabilities must add to 1"
        assert np.array_equal(estimator.classes_[shares.argmax(1)], said), "predict is another"


def _check_batches(estimator: Any, X: list[Data], y: Target) -> None:
    """What is said of a graph does not depend on the graphs beside it, nor on how they come."""
    everything = _says(estimator.fit(X, y), X)
    alone = np.concatenate([_says(estimator, [graph]) for graph in X[:5]])
    assert np.allclose(everything[:5], alone, atol=_CLOSE), "one by one"
    assert np.allclose(everything[::-1], _says(estimator, X[::-1]), atol=_CLOSE), "in another order"
    objects = np.empty(len(X), object)
    objects[:] = X
    whole = GraphSet.from_pyg(X, target="")
    for form, given in {"a tuple": tuple(X), "an array": objects, "a GraphSet": whole}.items():
        assert np.array_equal(everything, _says(estimator, given)), form


def _check_numbering(estimator: Any, X: list[Data], y: Target) -> None:
    """How the nodes of a graph are numbered does not matter."""
    turned = []
    for graph in X:
        order = torch.arange(int(graph.num_nodes or 0)).flip(0)  # its own inverse
        other = copy.copy(graph)
        other.edge_index = order[graph.edge_index]
        for name in ("x", "pos"):
            if graph.get(name) is not None:
                other[name] = graph[name][order]
        turned.append(other)
    estimator.fit(X, y)
    assert np.allclose(_says(estimator, X), _says(estimator, turned), atol=_CLOSE)


def _check_copies(estimator: Any, X: list[Data], y: Target) -> None:
    """Copies say the same, and pickled ones do."""
    said = _says(estimator.fit(X, y), X)
    assert np.array_equal(said, _says(copy.deepcopy(estimator), X)), "deepcopy"
    assert np.array_equal(said, _says(pickle.loads(pickle.dumps(estimator)), X)), "pickle"


def _check_refusals(estimator: Any, X: list[Data], y: Target) -> None:
    """What cannot be learned is refused with a ValueError."""
    wrong: dict[str, tuple[Any, Any]] = {
        "fewer targets than graphs": (X, y[:-1]),
        "a table": (np.zeros((len(y), 3)), y),
        "no graph": ([], y[:0]),
    }
    for what, (graphs, targets) in wrong.items():
        try:
            estimator.fit(graphs, targets)
        except ValueError:
            continue
        raise AssertionError(f"{what} must raise ValueError")


_CHECKS: tuple[Callable[[Any, list[Data], Target], None], ...] = (
    _check_parameters,
    _check_unfitted,
    _check_tags,
    _check_same_again,
    _check_data_untouched,
    _check_own_targets,
    _check_predictions,
    _check_batches,
    _check_numbering,
    _check_copies,
    _check_refusals,
)
