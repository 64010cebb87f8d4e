"""Cross-validation as scikit-learn has it, with the folds trained side by side."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config, model_selection
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)

from ..errors import GnnVpaError, UsageError
from ..graphs import GraphSet, load
from ..host import Host
from ..training.own import elsewhere
from ..training.workers import started_ahead
from .base import GraphEstimator
from .folds import can_share, fit_folds, sets_of
from .reading import Graphs, labels_of, weighted

LONG = 1 << 18  # graphs, counted in every epoch, that take longer than a process needs to start


def cross_validate(
    estimator: Any,
    X: Graphs,
    y: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    params: Mapping[str, Any] | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Cross-validate an estimator, as `sklearn.model_selection.cross_validate` does, but faster.

    A `GraphClassifier` or `GraphRegressor` is trained on all folds side by side. Every fold is the
    training that scikit-learn's function would start: the same weights at the start, the same
    validation graphs (of the fold's training part), the same order of graphs. Only sums are added
    in another order. Other estimators, and folds that lack a class or a degree, are left to
    scikit-learn.

    Args:
        estimator: The estimator.
        X: The graphs; a `GraphSet` or the name of a data set is taken as PyG has it
            (``GraphSet.to_pyg``).
        y: What is learned of each graph. None: what the graphs have as ``y``.
        groups: Group of each graph, for splitters that keep groups together.
        scoring: As scikit-learn has it.
        cv: Any splitter of scikit-learn, a number of folds, or pairs of indices.
        n_jobs: Number of processes that share the folds; -1 for as many as cores. None: as many as
            cores where trainings are long enough for that to pay, unless joblib's
            ``parallel_config`` says how many. The scores do not depend on it.
        params: Metadata: ``sample_weight``, and ``groups`` where metadata routing is enabled.
        **others: What else scikit-learn's function takes.

    Returns:
        As scikit-learn's function; ``fit_time`` is the same for all folds: a share of the whole.

    Raises:
        UsageError: It cannot be trained so.

    Example:
        >>> from gnn_vpa.estimators import GraphClassifier
        >>> classifier = GraphClassifier(epochs=5, random_state=0)
        >>> scores = cross_validate(classifier, "MUTAG", cv=3)
        >>> scores["test_score"].shape
        (3,)
    """
    if isinstance(X, str | GraphSet):
        whole = load(X)
        if y is None and isinstance(estimator, GraphEstimator):
            y = labels_of(estimator.read(whole, None))
        if whole.weights is not None:
            raise UsageError(
                f"{whole.name}: its graphs have weights, which folds cannot keep. Pass "
                "X=graphs.to_pyg() with the weights as sample_weight in params"
            )
        X = whole.to_pyg()
    X = list(X)
    others["scoring"] = scoring
    if not isinstance(estimator, GraphEstimator):
        others |= {"groups": groups, "cv": cv, "params": params}
        return dict(model_selection.cross_validate(estimator, X, y, n_jobs=n_jobs, **others))
    if y is None:
        y = labels_of(estimator.read(X, None))
    asked = _asked(estimator, X, y, groups, scoring, cv, params)
    asked.splits = [tuple(_numbers(part, len(X)) for part in parts) for parts in asked.splits]
    others |= {"cv": asked.splits, "params": asked.later}
    parts = [train for train, _ in asked.splits]
    workers = _workers(estimator, n_jobs, sum(map(len, parts)) * estimator.epochs)
    begin = time.perf_counter()
    with started_ahead(int(_starts_early(estimator, workers, len(parts)))) as ahead:
        learned = weighted(estimator.read(X, y), asked.fit.get("sample_weight"))
        sets = sets_of(learned, parts)
        is_usual = not asked.fit.keys() - {"sample_weight"}
        is_joint = is_usual and can_share(estimator, learned, sets)
        if is_joint:
            fitted = fit_folds(
                estimator, learned, parts, sets, workers,
                in_full=_is_kept(scoring, others), ahead=ahead,
            )  # fmt: skip
    if not is_joint:
        return dict(model_selection.cross_validate(estimator, X, y, n_jobs=n_jobs, **others))
    seconds = (time.perf_counter() - begin) / len(parts)
    found = model_selection.cross_validate(_Fitted(estimator, iter(fitted)), X, y, **others)
    found["fit_time"] = np.full(len(parts), seconds)
    if "estimator" in found:
        found["estimator"] = [fold.estimator for fold in found["estimator"]]
    return dict(found)


def _asked(
    estimator: GraphEstimator,
    X: Sequence[Any],
    y: ArrayLike,
    groups: ArrayLike | None,
    scoring: Any,
    cv: Any,
    params: Mapping[str, Any] | None,
) -> Bunch:
    """Return the folds, what is for fits, and what is left when folds and fits are there."""
    cv = check_cv(cv, y, classifier=is_classifier(estimator))
    given = dict(params or {})
    if groups is not None and get_config()["enable_metadata_routing"]:
        raise UsageError(
            "groups: with metadata routing, groups go to who asks for them: give "
            "params={'groups': groups}"
        )
    if not get_config()["enable_metadata_routing"]:
        return Bunch(splits=list(cv.split(X, y, groups)), fit=given, later=given)
    scorer = check_scoring(estimator, scoring=scoring)
    router = MetadataRouter(owner="cross_validate")
    for name, target, callee in (
        ("splitter", cv, "split"), ("estimator", estimator, "fit"), ("scorer", scorer, "score")
    ):  # fmt: skip
        mapping = MethodMapping().add(caller="fit", callee=callee)
        router.add(**{name: target}, method_mapping=mapping)
    routed = process_routing(router, "fit", **given)
    later = {
        name
        for target, method in ((estimator, "fit"), (scorer, "score"))
        for name in get_routing_for_object(target).consumes(method, given)
    }
    return Bunch(
        splits=list(cv.split(X, y, **routed.splitter.split)),
        fit=routed.estimator.fit,
        later={name: given[name] for name in later},
    )


def _numbers(part: ArrayLike, count: int) -> NDArray[np.int64]:
    """Return the numbers of a part's graphs; a mask and negative numbers mean what NumPy says."""
    given = np.asarray(part)
    numbers: NDArray[np.int64] = np.arange(count)[given if given.size else given.astype(np.int64)]
    return numbers


def _workers(estimator: GraphEstimator, n_jobs: int | None, passes: int) -> int:
    """Return how many processes train the estimator's model, of graphs that pass so many times."""
    if elsewhere(estimator.task().model):
        return 1
    backend, asked = get_active_backend()
    if n_jobs is None and asked is None and not backend.nesting_level:
        return Host.here().cores if passes >= LONG else 1
    return int(effective_n_jobs(n_jobs))


def _starts_early(estimator: GraphEstimator, workers: int, folds: int) -> bool:
    """Say whether one more process is needed: it starts while graphs are read."""
    from ..experiments.devices import resolve_device

    return workers > 1 and folds > 1 and resolve_device(str(estimator.device)) == "cpu"


def _is_kept(scoring: Any, others: Mapping[str, Any]) -> bool:
    """Say whether anybody but scikit-learn's own scorers gets to see the fitted estimators."""
    named = [scoring] if scoring is None or isinstance(scoring, str) else scoring
    is_named = isinstance(named, list | tuple | set)
    is_named = is_named and all(name is None or isinstance(name, str) for name in named)
    return bool(others.get("return_estimator")) or not is_named


class _Fitted(BaseEstimator):  # type: ignore[misc]
    """An estimator whose clones are fitted beforehand: one for each fold, in order."""

    def __init__(self, estimator: GraphEstimator, fitted: Iterator[Any]) -> None:
        self.estimator, self.fitted = estimator, fitted

    def __sklearn_clone__(self) -> "_Fold":
        found = next(self.fitted)
        if isinstance(found, GnnVpaError):
            return _Fold(clone(self.estimator), found)
        return _Fold(found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.estimator, name)

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    def get_metadata_routing(self) -> Any:
        return self.estimator.get_metadata_routing()


class _Fold:
    """What a fold has come to, in the place of an estimator that is to be fitted to it."""

    def __init__(self, estimator: GraphEstimator, failure: GnnVpaError | None = None) -> None:
        self.estimator, self.failure = estimator, failure

    def fit(self, X: object, y: object = None, **params: object) -> "_Fold":
        """Do nothing, or fail as the training did."""
        if self.failure is not None:
            raise self.failure
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.estimator, name)
