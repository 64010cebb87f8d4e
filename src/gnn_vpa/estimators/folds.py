"""Several fits of one estimator, on parts of one data set, as lanes of one training."""

from collections import deque
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone

from ..errors import GnnVpaError
from ..graphs import FeatureKind, GraphSet, Split, subset
from ..trained import Encoding, encoding_of, model_of, validation_split
from ..training import Lane, fit
from ..training.workers import Started
from .base import GraphEstimator
from .reading import Learned

Estimator = TypeVar("Estimator", bound=GraphEstimator)


def fit_folds(
    estimator: Estimator,
    learned: Learned,
    parts: Sequence[NDArray[np.integer]],
    sets: Sequence[GraphSet],
    workers: int,
    dtype: torch.dtype = torch.float32,
    *,
    in_full: bool = True,
    ahead: deque[Started] | None = None,
) -> list[Estimator | GnnVpaError]:
    """Fit a clone of an estimator to each part of the graphs.

    They are what ``clone(estimator).fit`` would come to, up to the order of additions.

    Args:
        estimator: The estimator.
        learned: All graphs.
        parts: The graphs that each clone is fitted to, by their numbers …
        sets: … and as data sets, see `sets_of`.
        workers: Number of processes that divide the trainings on the CPU.
        dtype: Type of weights.
        in_full: Whether somebody gets to see the models' records, see `model_of`.
        ahead: Processes that were started before, see `training.fit`.

    Returns:
        The clones, fitted; in the place of one that cannot be fitted, why.
    """
    clones = [clone(estimator) for _ in parts]
    plans = [own.plan(learned) for own in clones]
    ids = [torch.from_numpy(np.asarray(part, dtype=np.int64)) for part in parts]
    fitted: dict[int, Estimator | GnnVpaError] = {}
    local, lanes = {}, {}
    for number, (own, plan, graphs) in enumerate(zip(ids, plans, sets, strict=True)):
        try:
            split = validation_split(graphs.y, plan.validation_fraction, plan.seed)
        except GnnVpaError as error:
            fitted[number] = error
            continue
        split = split._replace(test=split.valid)
        local[number] = Lane(0, split, plan.seed)
        lanes[number] = Lane(0, Split(*(own[part] for part in split)), plan.seed)
    if lanes:
        first = plans[0]
        outcomes = fit(
            learned.graphs,
            first.task,
            first.protocol,
            list(lanes.values()),
            device=first.device,
            workers=workers,
            dtype=dtype,
            keep_weights=True,
            ahead=ahead,
        )
        for (number, lane), outcome in zip(local.items(), outcomes, strict=True):
            graphs = sets[number]
            try:
                model = model_of(
                    graphs, first.task, first.protocol, lane, outcome,
                    has_test=False, in_full=in_full,
                )  # fmt: skip
            except GnnVpaError as error:
                fitted[number] = error
            else:
                fitted[number] = clones[number].take(learned._replace(graphs=graphs), model)
    return [fitted[number] for number in range(len(parts))]


def sets_of(learned: Learned, parts: Sequence[NDArray[np.integer]]) -> list[GraphSet]:
    """Return parts of the graphs as data sets."""
    ids = (torch.from_numpy(np.asarray(part, dtype=np.int64)) for part in parts)
    return [subset(learned.graphs, own) for own in ids]


def can_share(estimator: GraphEstimator, learned: Learned, sets: Sequence[GraphSet]) -> bool:
    """Say whether a model of each part has the inputs and outputs of a model of all graphs.

    It has not where a part lacks a class, or a degree that is a feature.
    """
    whole = _shape(learned.graphs, estimator.features)
    return all(_shape(part, estimator.features) == whole for part in sets)


def _shape(graphs: GraphSet, features: FeatureKind) -> tuple[Encoding, list[int]]:
    classes = np.unique(graphs.y.numpy()).tolist() if graphs.kind == "classes" else []
    return encoding_of(graphs, features), classes
