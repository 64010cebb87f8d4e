"""One call from a data set to all that can be known before training."""

import os
from collections.abc import Sequence
from typing import cast, get_args

from torch import Tensor

from ..errors import UsageError
from ..graphs import Ceiling, FeatureKind, GraphSet, Split, alike, splits
from ..graphs import features as features_of
from ..graphs.alike import members, node_kinds, right_at_best
from ..graphs.targets import MISSING
from ..spelling import whole_number
from ._baselines import MOST_GRAPHS, fit_baselines
from ._columns import columns_of
from ._given import ONE_CLASS, Source, given
from ._record import Audit, Label, Round
from ._structure import structure_of
from ._twins import twins_of
from ._variance import expected_variances


def audit(
    data: Source,
    *,
    task: str = "auto",
    features: str = "auto",
    folds: int = 10,
    rounds: int = 5,
    baselines: bool | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> Audit:
    """Tell what can be known of a data set before anything is trained.

    The best accuracy that any message-passing network can have (exact, by colour refinement),
    contradictory labels, test graphs that have a twin in training, classes, sizes, degrees, odd
    edges and features, quick baselines under the paper's folds, and the variance that sum, mean,
    max and vpa are expected to leave. What cannot be told, and why, is in `untold`.

    Args:
        data: A name, the path of a TU archive or `module:function`, see `gnn_vpa.graphs.load`; or
            the graphs: a `GraphSet`, a list of PyG `Data` objects or a data set of PyG. Own graphs
            may be without labels.
        task: What the targets are: auto, classes, labels or regression.
        features: Node features: auto, ones, degree or labels.
        folds: Number of folds.
        rounds: The largest number of rounds of message passing.
        baselines: Whether to run the baselines too; by default where there are at most 2,000
            graphs.
        data_dir: A folder to look for data in first.

    Raises:
        UsageError: The data or an argument cannot be used; the message says which and why.

    Example:
        >>> found = audit("MUTAG", baselines=False)
        >>> found.classes, found.rounds[0].distinct, found.last.distinct
        ((63, 125), 77, 175)
    """
    from ..experiments.asked import target_of  # it loads slowly

    if features not in get_args(FeatureKind):
        known = ", ".join(get_args(FeatureKind))
        raise UsageError(f"features: expected one of {known}, got {features!r}")
    if not isinstance(baselines, bool | None):
        raise UsageError(f"baselines: expected True, False or None, got {baselines!r}")
    rounds = whole_number(rounds, "rounds", least=0)
    folds = whole_number(folds, "folds", least=2)
    kind = cast(FeatureKind, features)

    graphs, without_classes, not_finite = given(data, data_dir, target_of(None, task).kind)
    own = features_of(graphs, kind)
    untold = []
    y, parts = None, None
    if without_classes is not None:
        untold.append(f"{without_classes}: no best accuracy, no twins and no baselines can be told")
    else:
        y = graphs.y
        try:
            parts = splits(y, folds, classes=graphs.classes)
        except UsageError as error:
            untold.append(f"no folds, and so neither twins nor baselines: {error}")
    if baselines is None:
        baselines = graphs.num_graphs <= MOST_GRAPHS
    variances = expected_variances(graphs, kind, rounds)
    if not variances:
        untold.append("no layer, edge or feature to expect a variance of")
    return Audit(
        name=graphs.name,
        content=graphs.checksum(),
        graphs=graphs.num_graphs,
        features=kind,
        folds=None if parts is None else folds,
        classes=_class_sizes(graphs, without_classes),
        labels=_label_sizes(graphs.y) if graphs.kind == "labels" else None,
        rounds=tuple(
            _round(number, kinds, y, parts)
            for number, kinds in enumerate(alike(graphs, kind, rounds))
        ),
        structure=structure_of(graphs),
        columns=columns_of(own, node_kinds(own)),
        variances=variances,
        baselines=tuple(fit_baselines(graphs, kind, parts)) if baselines and parts else (),
        not_finite=not_finite,
        untold=tuple(untold),
    )


def _class_sizes(graphs: GraphSet, without_classes: str | None) -> tuple[int, ...] | None:
    if without_classes not in (None, ONE_CLASS):
        return None
    return tuple(graphs.y.bincount().tolist())


def _label_sizes(y: Tensor) -> tuple[Label, ...]:
    columns = zip(*((y == value).sum(dim=0).tolist() for value in (0, 1, MISSING)), strict=True)
    return tuple(Label(*counts) for counts in columns)


def _round(number: int, kinds: Tensor, y: Tensor | None, folds: Sequence[Split] | None) -> Round:
    distinct = int(kinds.max()) + 1
    if y is None:
        return Round(number, distinct, None, None, None)
    table = members(kinds, y)
    several = (table > 0).sum(dim=1) > 1
    best = Ceiling(number, distinct, right_at_best(kinds, y), len(y))
    found = None if folds is None else twins_of(kinds, y, folds)
    return Round(number, distinct, int(table[several].sum()), best, found)
