"""Is vpa better? Every other aggregation against vpa in the same model, pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..aggregations import ordered
from ._published import published_p
from .ranks import holm, paired_wilcoxon
from .resampled import TEST_PER_TRAIN, Estimate, average, corrected_mean
from .style import DATASETS, MODELS, in_order
from .summary import fold_accuracies, only_setting, summarise

if TYPE_CHECKING:
    import pandas as pd

_PAIRED = ["pairs", "asked"]
_EFFECT = ["difference", "low", "high", "rank_biserial", "p_wilcoxon", "p_corrected"]


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

    Only folds that both have finished are compared. `asked` is how many pairs there would be if
    none were missing, on all data sets that either was run on.

    Args:
        folds: results of one setting.
        test_per_train: how many graphs are tested on for each one trained on.

    Returns:
        One row a comparison: model, aggregation, datasets, pairs, asked, difference, low, high,
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
    asked = _asked_pairs(folds)
    for model, aggregation, pairs in _comparisons(folds):
        estimates = [corrected_mean(d, test_per_train) for d in pairs.values()]
        rows.append(
            {
                "model": model,
                "aggregation": aggregation,
                "datasets": len(pairs),
                "pairs": sum(map(len, pairs.values())),
                "asked": sum(asked(model, aggregation).values()),
                **_effect(np.concatenate(list(pairs.values())), average(estimates)),
                "p_paper": published_p(table, model, aggregation, list(pairs)),
            }
        )
    return pd.DataFrame(
        rows, columns=["model", "aggregation", "datasets", *_PAIRED, *_EFFECT, "p_paper"]
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

    columns = ["model", "aggregation", "dataset", *_PAIRED, *_EFFECT]
    columns += ["p_wilcoxon_holm", "p_corrected_holm"]
    asked = _asked_pairs(folds)
    families = []
    for model, aggregation, pairs in _comparisons(folds):
        family = pd.DataFrame(
            {
                "model": model,
                "aggregation": aggregation,
                "dataset": dataset,
                "pairs": len(differences),
                "asked": asked(model, aggregation)[dataset],
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


def missing_pairs(pairs: int, asked: int) -> str:
    """What must be said beside a test of fewer pairs than there should be; empty if all are there.

    Example:
        >>> missing_pairs(87, 90), missing_pairs(90, 90)
        ('87 of 90 pairs', '')
    """
    return f"{pairs} of {asked} pairs" if pairs < asked else ""


def _asked_pairs(folds: pd.DataFrame) -> Callable[[str, str], dict[str, int]]:
    """How many pairs a comparison with vpa would have on each data set that either was run on."""
    cells = summarise(folds)
    asked = {(c.model, c.aggregation, c.dataset): int(c.asked) for c in cells.itertuples()}

    def of(model: str, aggregation: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for (of_model, method, dataset), number in asked.items():
            if of_model == model and method in ("vpa", aggregation):
                found[dataset] = max(number, found.get(dataset, 0))
        return found

    return of


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
    values = (estimate.mean, low, high, ranks.rank_biserial, ranks.p)
    return dict(zip(_EFFECT, (*values, estimate.p_greater), strict=True))
