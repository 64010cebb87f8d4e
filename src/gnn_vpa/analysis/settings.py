"""What a table may hold side by side: results that were made under one setting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gnn_vpa.errors import UsageError

from ._published import is_social
from .measure import ACCURACY, measure, metrics
from .once import once
from .style import BASELINES

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

RELEASED = "released"
KEYS = ("dataset", "model", "aggregation", "variant", "features", "fold", "seed")
#: What sets results apart as well, in frames that have it; without such a column there is nothing.
MORE_KEYS = ("options", "protocol")
MOST_SETTINGS = 20  # with 4 methods each: 300 lines in a terminal, 0.4 MB of page


@dataclass(frozen=True, order=True)
class Setting:
    """The models, how they are trained, and their node features: one table of results.

    Args:
        variant: "released", "printed" or a name of the user's own.
        features: "auto" (what the paper's Table 1 uses), "degree" (its appendix) or "ones".
        options: what was given to the models beside the variant, as in "K=5, width=8".
        protocol: what sets the training apart from others of the same run, as in "3 epochs".
        metric: what the scores are, see `measure`.
        division: how the folds were made, where they are not the paper's.

    Example:
        >>> Setting("released", "auto").published_table
        'table1'
        >>> Setting("released", "ones").published_table is None
        True
        >>> print(Setting("printed", "degree"))
        models as printed, node degree as feature
        >>> print(Setting("released", "auto", options="K=5"))
        models as released, K=5, the data's own node features
        >>> print(Setting("released", "auto", metric="mae"))
        models as released, the data's own node features, MAE
        >>> Setting("released", "auto", division="splits 3f2a").published_table is None
        True
    """

    variant: str
    features: str
    options: str = ""
    protocol: str = ""
    metric: str = ACCURACY
    division: str = ""

    @property
    def published_table(self) -> str | None:
        """The table of the paper with the same node features, where there is one."""
        if self.metric != ACCURACY or self.division:
            return None
        return {"auto": "table1", "degree": "table_a1"}.get(self.features)

    @property
    def models(self) -> str:
        """The models and their training in words, without the node features.

        Example:
            >>> Setting("released", "auto", "K=5", "3 epochs").models
            'released, K=5, 3 epochs'
        """
        return _joined(self.variant, self.options, self.protocol)

    @property
    def unusual(self) -> str:
        """What is not as the paper's authors released it; empty where all is.

        Example:
            >>> Setting("released", "auto", "K=5").unusual, Setting("released", "auto").unusual
            ('K=5', '')
        """
        return replace(self, variant=self.variant if self.variant != RELEASED else "").models

    def __str__(self) -> str:
        features = {
            "auto": "the data's own node features",
            "degree": "node degree as feature",
            "ones": "node features all ones",
        }
        models = f"models as {self.models}" if self.models else "models as given"
        nodes = features.get(self.features, f"node features {self.features}")
        metric = "" if self.metric == ACCURACY else measure(self.metric).title
        return _joined(models, nodes, metric, self.division)


def split_by_setting(frame: pd.DataFrame) -> Iterator[tuple[Setting, pd.DataFrame]]:
    """Split folds or curves into the parts that belong in one table each.

    Scores of different metrics have no common scale, so a metric is a part of its setting. A
    baseline does not depend on the models, nor on their training: it goes with every setting that
    has its node features, metric and folds, and stands alone only where nothing else was run.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     [["MUTAG", "GIN", "vpa", variant, "auto", 0, 0] for variant in "ab"], columns=KEYS
        ... )
        >>> [(setting.variant, len(part)) for setting, part in split_by_setting(frame)]
        [('a', 1), ('b', 1)]
    """
    return ((setting, frame.iloc[rows]) for setting, rows in _rows(frame).items())


def settings_of(frame: pd.DataFrame) -> list[Setting]:
    """Return the settings of folds or curves, in the order of `split_by_setting`."""
    return [*_rows(frame)] if len(frame) else []


@once
def _rows(frame: pd.DataFrame) -> dict[Setting, NDArray[np.intp]]:
    """Return the positions of the rows that belong to each setting."""
    keys = setting_columns(frame)
    baseline = frame["model"].isin(BASELINES).to_numpy()
    own = np.flatnonzero(~baseline | baseline.all())
    other = np.flatnonzero(baseline)
    common = ["features", "metric", "division"]
    shared = keys.iloc[other].groupby(common, sort=False).indices
    split = {
        Setting(*key): own[rows]
        for key, rows in keys.iloc[own].groupby([*keys], sort=False).indices.items()
    }
    return {
        one: np.union1d(split[one], other[shared.get((one.features, one.metric, one.division), [])])
        for one in sorted(split, key=_rank)
    }


@once
def shown_settings(folds: pd.DataFrame) -> list[tuple[Setting, pd.DataFrame]]:
    """Return the parts that a report has room for: all, or the `MOST_SETTINGS` best, best first.

    Settings are ranked by validation score for each data set and model, a setting's score being
    that of its best aggregation. A setting counts as its best rank.

    Example:
        >>> import pandas as pd
        >>> rows = [["MUTAG", "GIN", "vpa", "", "auto", 0, 0, f"K={k}", k / 99] for k in range(99)]
        >>> folds = pd.DataFrame(rows, columns=[*KEYS, "options", "val_score"])
        >>> shown = shown_settings(folds)
        >>> len(shown), shown[0][0].options, shown[1][0].options
        (20, 'K=98', 'K=97')
    """
    rows = _rows(folds)
    if len(rows) <= MOST_SETTINGS or "val_score" not in folds.columns:
        return list(split_by_setting(folds))
    keys, cell = setting_columns(folds), ["dataset", "model"]
    sign = keys["metric"].map({name: measure(name).sign for name in keys["metric"].unique()})
    score = (sign * folds["val_score"]).fillna(-math.inf)  # a training that diverged
    trained = keys.assign(**folds[[*cell, "aggregation"]], score=score)
    trained = trained[~trained["model"].isin(BASELINES)]
    means = trained.groupby([*keys, *cell, "aggregation"])["score"].mean()
    best = means.groupby([*keys, *cell]).max()
    rivals = best.groupby([*cell, "features", "metric", "division"])
    place = rivals.rank(ascending=False, method="min").groupby([*keys]).min().to_dict()
    ranked = sorted(rows, key=lambda setting: place.get(astuple(setting), math.inf))
    return [(setting, folds.iloc[rows[setting]]) for setting in ranked[:MOST_SETTINGS]]


def left_out(folds: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence on the settings that `shown_settings` leaves out; none if it shows all."""
    count = len(settings_of(folds))
    if count and (more := count - len(shown_settings(folds))):
        yield (
            f"{more:,} of {count:,} settings are left out here. Those shown have the best "
            "validation scores of each model on each data set. The folds of all settings are in "
            "the CSV: gnn-vpa report RUN --format csv."
        )


def setting_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the setting of each row: a column for each field of `Setting`, in the same order."""
    require_columns(frame, KEYS)
    # Curves have many rows and few distinct ones, so each of those is looked up once.
    of_pair = frame.groupby(["dataset", "features"], sort=False, dropna=False, observed=True)
    canonical = [_canonical(*pair) for pair in of_pair.size().index]
    # Frames with and without such a column may have been put together: then some rows have nothing.
    more = {n: frame[n].fillna("") if n in frame.columns else "" for n in MORE_KEYS}
    features = [canonical[number] for number in of_pair.ngroup()]
    division = frame["division"].fillna("") if "division" in frame.columns else ""
    keys = frame[["variant"]].assign(features=features, **more, metric=metrics(frame))
    return keys.assign(division=division)


def ceilings_of(
    setting: Setting, ceiling: Mapping[tuple[str, str], float] | None
) -> dict[str, float]:
    """Return what the best network can reach with the node features of a setting, by data set.

    Example:
        >>> both = {("IMDB-B", "auto"): 0.886, ("IMDB-B", "degree"): 0.886, ("PTC", "ones"): 0.7}
        >>> ceilings_of(Setting("released", "auto"), both)
        {'IMDB-B': 0.886}
    """
    if ceiling is None or setting.metric != ACCURACY:
        return {}
    return {
        dataset: score
        for (dataset, features), score in ceiling.items()
        if _canonical(dataset, features) == setting.features
    }


def require_columns(frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    """Refuse a frame that lacks one of the columns."""
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise UsageError(
            f"the frame has no column {', '.join(missing)}: "
            f"expected at least {', '.join(columns)}, as a run's results have them"
        )


def _canonical(dataset: str, features: str) -> str:
    # Nothing distinguishes the nodes of a social set, so "auto" and "ones" are the same there.
    same_as_auto = features in ("", "labels") or (features == "ones" and is_social(dataset))
    return "auto" if same_as_auto else features


def _joined(*words: str) -> str:
    return ", ".join(word for word in words if word)


def _rank(setting: Setting) -> tuple[bool, bool, bool, str, Setting]:
    return (
        setting.metric != ACCURACY,
        setting.models != RELEASED,
        setting.features != "auto",
        setting.models,
        setting,
    )
