"""What needs no graph network, under the same folds."""

import statistics
from collections.abc import Sequence

from ..baselines import BASELINES
from ..graphs import FeatureKind, GraphSet, Split
from ._record import Baseline

#: Data sets of up to so many graphs have baselines without being asked: within a minute or so.
MOST_GRAPHS = 2000


def fit_baselines(graphs: GraphSet, kind: FeatureKind, folds: Sequence[Split]) -> list[Baseline]:
    """Run all of them; what cannot be run says why."""
    from ..experiments.baselines import fit_baseline, obstacle
    from ..training import Lane

    lanes = [Lane(fold, split) for fold, split in enumerate(folds)]
    found = []
    for name, (_, _, meaning) in BASELINES.items():
        if (reason := obstacle(name, graphs)) is not None:
            found.append(Baseline(name, meaning, None, None, reason))
            continue
        scores = [outcome.test_score for outcome in fit_baseline(name, graphs, kind, lanes)]
        found.append(Baseline(name, meaning, statistics.fmean(scores), statistics.stdev(scores)))
    return found
