"""Is vpa better? Every other aggregation against vpa in the same model, pair by pair.

That is the paper's question; which of all may be the best is asked in `answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..aggregations import ordered
from ._published import published_p
from .format import count
from .measure import measure_of
from .once import once
from .ranks import holm, paired_wilcoxon
from .relative import percents
from .resampled import Estimate, average, corrected_mean
from .rounding import usual
from .style import DATASETS, MODELS, in_order
from .summary import decimals, fold_scores, only_setting, summarise, tested_per_trained

if TYPE_CHECKING:
    import pandas as pd

_PAIRED = ["pairs", "asked", "missing"]
_EFFECT = ["difference", "low", "high", "rank_biserial", "p_wilcoxon", "p_corrected"]


@dataclass(frozen=True)
class _Pairs:
    """vpa's lead over another aggregation, fold by fold.

    Args:
        leads: one a fold.
        size: what is usual for the scores of both.
        missing: trainings of these folds without a score.
    """

    leads: np.ndarray
    size: float
    missing: int = 0

    def mean(self, test_per_train: float) -> Estimate:
        return corrected_mean(self.leads, test_per_train, size=self.size)

    def times(self, factor: float) -> _Pairs:
        return _Pairs(factor * self.leads, factor * self.size, self.missing)


@once
def overall_tests(folds: pd.DataFrame, test_per_train: float | None = None) -> pd.DataFrame:
    """Compare vpa with every other aggregation of its model over all data sets and folds.

    Two tests of the same one-sided question, "is vpa better?":

    * `p_wilcoxon`, the paper's: signed ranks of all pairs (data set, fold) at once. It takes folds
      for independent, which they are not, and so tends to be too small. `p_paper` is the
      published one, where the data sets are the paper's nine.
    * `p_corrected`, Nadeau and Bengio's t-test, from the average over data sets of the mean
      difference with its corrected variance.

    The effect size is that average `difference`: vpa's lead, positive where vpa is better, which
    for an error is where it is smaller. It is in `unit`: points of what is printed in percent, the
    metric's own unit, or, where an error has another unit on each of several data sets, percent of
    the best median there: the smallest, over the model's aggregations, of medians over folds (see
    `percents`). `low` to `high` is the 95 % confidence interval of the corrected test.
    `rank_biserial` is the unitless effect size that belongs to Wilcoxon's test.

    Repeats of the folds are pairs too, and the corrected test allows for what they share. Only
    folds that both have finished are compared. `asked` is how many pairs there would be if none
    were missing, on all data sets that either was run on, and `missing` how many trainings of the
    pairs have no score: a fold's score is the mean of the others.

    Args:
        folds: results of one setting.
        test_per_train: how many graphs are tested on for each one trained on; None for what the
            number of folds says.

    Returns:
        One row a comparison: model, aggregation, datasets, pairs, asked, missing, difference, low,
        high, rank_biserial, p_wilcoxon, p_corrected, p_paper, unit, digits (to print the
        difference).

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status"]
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
    measure, shares = measure_of(folds), _shares(folds, test_per_train)
    digits, percent = decimals(folds), percents(fold_scores(folds))
    for model, aggregation, pairs in _comparisons(folds):
        relative = measure.has_unit and len(pairs) > 1
        if relative:
            pairs = {name: there.times(percent[model, name]) for name, there in pairs.items()}
        estimates = [own.mean(shares[name]) for name, own in pairs.items()]
        rows.append(
            {
                "model": model,
                "aggregation": aggregation,
                "datasets": len(pairs),
                "pairs": sum(len(own.leads) for own in pairs.values()),
                "asked": sum(asked(model, aggregation).values()),
                "missing": sum(own.missing for own in pairs.values()),
                **_effect(_joined(pairs), average(estimates)),
                "p_paper": published_p(table, model, aggregation, list(pairs)),
                "unit": measure.unit(relative),
                "digits": 1 if relative else max(digits[name] for name in pairs),
            }
        )
    columns = ["model", "aggregation", "datasets", *_PAIRED, *_EFFECT, "p_paper", "unit", "digits"]
    return pd.DataFrame(rows, columns=columns).astype({"p_paper": float})


@once
def dataset_tests(folds: pd.DataFrame, test_per_train: float | None = None) -> pd.DataFrame:
    """Compare vpa with every other aggregation of its model on each data set by itself.

    The tests and the effect are those of `overall_tests`. Holm's correction is for reading one
    comparison on several data sets: its family is the data sets of one model and aggregation.
    Ten folds cannot give Wilcoxon's p below 2^-10, so a family of a whole table could never be
    significant.

    Args:
        folds: results of one setting.
        test_per_train: how many graphs are tested on for each one trained on; None for what the
            number of folds says.

    Returns:
        One row a comparison and data set: as `overall_tests`, with dataset, p_wilcoxon_holm and
        p_corrected_holm; differences in points or in the metric's own unit.

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status"]
        >>> rows = [[name, "GIN", aggr, "released", "auto", fold, 0, accuracy, "done"]
        ...         for aggr, accuracy in (("sum", 0.7), ("vpa", 0.8)) for fold in range(5)
        ...         for name in ("MUTAG", "PTC")]
        >>> dataset_tests(pd.DataFrame(rows, columns=columns))["p_wilcoxon_holm"].tolist()
        [0.0625, 0.0625]
    """
    import pandas as pd

    columns = ["model", "aggregation", "dataset", *_PAIRED, *_EFFECT]
    columns += ["p_wilcoxon_holm", "p_corrected_holm", "digits"]
    asked = _asked_pairs(folds)
    shares, digits = _shares(folds, test_per_train), decimals(folds)
    families = []
    for model, aggregation, pairs in _comparisons(folds):
        family = pd.DataFrame(
            {
                "model": model,
                "aggregation": aggregation,
                "dataset": dataset,
                "pairs": len(own.leads),
                "asked": asked(model, aggregation)[dataset],
                "missing": own.missing,
                **_effect(own, own.mean(shares[dataset])),
                "digits": digits[dataset],
            }
            for dataset, own in pairs.items()
        )
        families.append(
            family.assign(
                p_wilcoxon_holm=holm(family["p_wilcoxon"]),
                p_corrected_holm=holm(family["p_corrected"]),
            )
        )
    return pd.concat(families)[columns] if families else pd.DataFrame(columns=columns)


def missing_pairs(pairs: int, asked: int, missing: int = 0) -> str:
    """What must be said beside a test of less than there should be; empty if all is there.

    Args:
        pairs: how many there are.
        asked: how many there should be.
        missing: trainings of these pairs without a score.

    Example:
        >>> missing_pairs(87, 90), missing_pairs(90, 90)
        ('87 of 90 pairs', '')
        >>> missing_pairs(90, 90, missing=3)
        '90 of 90 pairs, 3 trainings missing'
    """
    if pairs >= asked and not missing:
        return ""
    said = f", {count(missing, 'training')} missing" if missing else ""
    return f"{pairs} of {asked} pairs{said}"


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


def _comparisons(folds: pd.DataFrame) -> Iterator[tuple[str, str, dict[str, _Pairs]]]:
    """Each model and aggregation that vpa can be paired with: vpa's lead, fold by fold."""
    scores = fold_scores(folds)
    scores = scores.assign(missing=(scores["seeds"] - scores["trainings"]).clip(lower=0))
    index = ["model", "dataset", "repeat", "fold"]
    wide = scores.pivot(index=index, columns="aggregation", values="score")
    missing = scores.pivot(index=index, columns="aggregation", values="missing")
    if "vpa" not in wide.columns:
        return
    sign = measure_of(folds).sign
    for model in in_order(wide.index.get_level_values("model"), MODELS):
        for aggregation in ordered(wide.columns.drop("vpa")):
            both = wide.loc[model][["vpa", aggregation]].dropna()
            datasets = in_order(both.index.get_level_values("dataset"), DATASETS)
            less = missing.loc[model].loc[both.index, both.columns].sum(axis=1)
            if datasets:
                yield (
                    model,
                    aggregation,
                    {name: _pairs(both.loc[name], sign, less.loc[name]) for name in datasets},
                )


def _pairs(scores: pd.DataFrame, sign: int, missing: pd.Series) -> _Pairs:
    vpa, other = scores.to_numpy().T
    return _Pairs(sign * (vpa - other), usual(vpa, other), int(missing.sum()))


def _joined(pairs: dict[str, _Pairs]) -> _Pairs:
    """The pairs of all data sets as one sample."""
    leads = np.concatenate([own.leads for own in pairs.values()])
    return _Pairs(leads, max(own.size for own in pairs.values()))


def _shares(folds: pd.DataFrame, given: float | None) -> dict[str, float]:
    shares = tested_per_trained(folds)
    return shares if given is None else dict.fromkeys(shares, given)


def _effect(pairs: _Pairs, estimate: Estimate) -> dict[str, float]:
    ranks = paired_wilcoxon(pairs.leads, size=pairs.size)
    low, high = estimate.interval()
    values = (estimate.mean, low, high, ranks.rank_biserial, ranks.p)
    return dict(zip(_EFFECT, (*values, estimate.p_greater), strict=True))
