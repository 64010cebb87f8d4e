"""Errors in the data's own unit: in percent they can be averaged over data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .rounding import usual

if TYPE_CHECKING:
    import pandas as pd


def percents(scores: pd.DataFrame) -> dict[tuple[str, str], float]:
    """What scores are multiplied by to be in percent of the best median, by model and data set.

    That is the smallest of the methods' medians over folds. Of a training that exploded an error
    may be 1e13: a factor with it would make all that others differ by nothing. Methods without a
    score on some of the model's data sets do not count, so that one that was run on a single data
    set changes no average of others; where every method lacks some, all count.

    Args:
        scores: a row for each cell, repeat and fold, see `fold_scores`.

    Example:
        >>> import pandas as pd
        >>> rows = [["mine", "GIN", aggr, 0, fold, score] for fold in range(2)
        ...         for aggr, score in (("sum", 1e13), ("vpa", 0.5), ("mean", 0.8))]
        >>> columns = ["dataset", "model", "aggregation", "repeat", "fold", "score"]
        >>> percents(pd.DataFrame(rows, columns=columns))
        {('GIN', 'mine'): 200.0}
    """
    index = ["dataset", "repeat", "fold"]
    found = {}
    for model, of_model in scores.groupby("model"):
        wide = of_model.pivot(index=index, columns="aggregation", values="score")
        for dataset, part in wide[_everywhere(wide)].groupby(level="dataset"):
            size = usual(part.to_numpy())
            found[str(model), str(dataset)] = 100 / size if size else 100.0  # 0 where nobody errs
    return found


def _everywhere(wide: pd.DataFrame) -> list[str]:
    """The methods with a score on every data set that has any; all methods where there is none."""
    there = np.isfinite(wide).groupby(level="dataset").any()
    whole = there[there.any(axis=1)].all()
    return list(wide.columns[whole] if whole.any() else wide.columns)
