"""Is vpa better? Every other aggregation against vpa in the same model, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..aggregations import ordered
from ._published import published_p
from .ranks import holm, paired_wilcoxon
from .resampled import TEST_PER_TRAIN, Estimate, average, corrected_mean
from .style import DATASETS, MODELS, in_order
from .summary import fold_accuracies, only_setting

if TYPE_CHECKING:
    import pandas as pd

_EFFECT = ["pairs", "difference", "low", "high", "rank_biserial", "p_wilcoxon", "p_corrected"]


def overall_tests(folds: pd.DataFrame, test_per_train: float = TEST_PER_TRAIN) -> pd.DataFrame:
    """Compare vpa with every other aggregation of its model over all data sets and folds.

    Two tests of the same one-sided question, "is vpa more accurate?":

    * `p_wilcoxon`, the paper's: signed ranks of all pairs (data set, fold) at once. It takes folds
      for independent, which they are not, and so tends to be too small. `p_paper` is the
      published one, where the data sets are the paper's nine.
    * `p_corrected`, Nadeau and Bengio's t-test, from the average over data sets of the mean
      difference with its corrected variance.

    The effect size is that average `difference` (vpa minus the other), in points of accuracy
    because that is the unit of every table here, with the 95 % confidence interval `low` to `high`
    of the corrected test. `rank_biserial` is the unitless one that belongs to Wilcoxon's test.

    Args:
        folds: results of one setting.
        test_per_train: how many graphs are tested on for each one trained on.

    Returns:
        One row a comparison: model, aggregation, datasets, pairs, difference, low, high,
        rank_biserial, p_wilcoxon, p_corrected, p_paper.

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_acc", "status"]
        >>> rows = [["MUTAG", "GIN", aggr, "released", "auto", fold, 0, accuracy, "done"]
        ...         for aggr, accuracy in (("sum", 0.7), ("vpa", 0.8)) for fold in range(5)]
        >>> tests = overall_tests(pd.DataFrame(rows, columns=columns))
        >>> tests[["difference", "p_wilcoxon"]].round(6).values.tolist()
        [[10.0, 0.03125]]
    """
    import pandas as pd

    table = only_setting(folds).published_table
    rows = []
    for model, aggregation, pairs in _comparisons(folds):
        estimates = [corrected_mean(d, test_per_train) for d in pairs.values()]
        rows.append(
            {
                "model": model,
                "aggregation": aggregation,
                "datasets": len(pairs),
                **_effect(np.concatenate(list(pairs.values())), average(estimates)),
                "p_paper": published_p(table, model, aggregation, list(pairs)),
            }
        )
    return pd.DataFrame(
        rows, columns=["model", "aggregation", "datasets", *_EFFECT, "p_paper"]
    ).astype({"p_paper": float})


def dataset_tests(folds: pd.DataFrame, test_per_train: float = TEST_PER_TRAIN) -> pd.DataFrame:
    """Compare vpa with every other aggregation of its model on each data set by itself.

    The tests and the effect are those of `overall_tests`. Holm's correction is for reading one
    comparison on several data sets: its family is the data sets of one model and aggregation.
    Ten folds cannot give Wilcoxon's p below 2^-10, so a family of a whole table could never be
    significant.

    Args:
        folds: results of one setting.
        test_per_train: how many graphs are tested on for each one trained on.

    Returns:
        One row a comparison and data set: as `overall_tests`, with dataset, p_wilcoxon_holm and
        p_corrected_holm.

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_acc", "status"]
        >>> rows = [[name, "GIN", aggr, "released", "auto", fold, 0, accuracy, "done"]
        ...         for aggr, accuracy in (("sum", 0.7), ("vpa", 0.8)) for fold in range(5)
        ...         for name in ("MUTAG", "PTC")]
        >>> dataset_tests(pd.DataFrame(rows, columns=columns))["p_wilcoxon_holm"].tolist()
        [0.0625, 0.0625]
    """
    import pandas as pd

    columns = ["model", "aggregation", "dataset", *_EFFECT, "p_wilcoxon_holm", "p_corrected_holm"]
    families = []
    for model, aggregation, pairs in _comparisons(folds):
        family = pd.DataFrame(
            {
                "model": model,
                "aggregation": aggregation,
                "dataset": dataset,
                **_effect(differences, corrected_mean(differences, test_per_train)),
            }
            for dataset, differences in pairs.items()
        )
        families.append(
            family.assign(
                p_wilcoxon_holm=holm(family["p_wilcoxon"]),
                p_corrected_holm=holm(family["p_corrected"]),
            )
        )
    return pd.concat(families)[columns] if families else pd.DataFrame(columns=columns)


def _comparisons(
    folds: pd.DataFrame,
) -> Iterator[tuple[str, str, dict[str, np.ndarray]]]:
    """Each model and aggregation that vpa can be paired with: vpa's lead, fold by fold."""
    wide = fold_accuracies(folds).pivot(
        index=["model", "dataset", "fold"], columns="aggregation", values="accuracy"
    )
    if "vpa" not in wide.columns:
        return
    lead = wide.drop(columns="vpa").rsub(wide["vpa"], axis=0)
    for model in in_order(lead.index.get_level_values("model"), MODELS):
        for aggregation in ordered(lead.columns):
            column = lead.loc[model][aggregation].dropna()
            datasets = in_order(column.index.get_level_values("dataset"), DATASETS)
            if datasets:
                yield model, aggregation, {name: column.loc[name].to_numpy() for name in datasets}


def _effect(differences: np.ndarray, estimate: Estimate) -> dict[str, float]:
    ranks = paired_wilcoxon(differences)
    low, high = estimate.interval()
    values = (ranks.pairs, estimate.mean, low, high, ranks.rank_biserial, ranks.p)
    return dict(zip(_EFFECT, (*values, estimate.p_greater), strict=True))
