"""What the numbers of a frame are: their metric, and which direction of it is better."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gnn_vpa.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

ACCURACY = "accuracy"
"""The metric of a frame that names none."""

_SIGNIFICANT = 3  # digits of a score that is printed in its own unit
_EXPLODED = 10  # times as large as what errs least: such scores set no decimals
_LARGE = -3  # decimals below which a score is long before the point, and has an exponent
_IN_UNITS = ("mae", "rmse")  # of what is predicted: not comparable between data sets


@dataclass(frozen=True)
class Measure:
    """A metric as tables, figures and sentences need to know it.

    Args:
        name: as in the column `metric` of a run's results.
        title: as written in tables.
        higher_is_better: whether a larger number is the better one.
        is_share: whether it lies between 0 and 1 and is printed in percent.
        has_unit: whether it is in the data's own unit, so that data sets have no common scale.

    Example:
        >>> measure("mae").gain(0.3, 0.5) > 0, measure("accuracy").gain(0.3, 0.5) > 0
        (True, False)
        >>> measure("accuracy").label, measure("mae").label
        ('test accuracy in percent', 'test MAE')
    """

    name: str
    title: str
    higher_is_better: bool
    is_share: bool
    has_unit: bool = False

    @property
    def noun(self) -> str:
        """Its name within a sentence."""
        return self.title[0].lower() + self.title[1:] if self.title[1:2].islower() else self.title

    @property
    def label(self) -> str:
        """What a number of a table or an axis is."""
        return f"test {self.noun}" + (" in percent" if self.is_share else "")

    @property
    def percent(self) -> str:
        """What stands behind a number in a sentence: a percent sign, or nothing."""
        return " %" if self.is_share else ""

    @property
    def scale(self) -> float:
        """What a score of the results is multiplied by before it is printed."""
        return 100.0 if self.is_share else 1.0

    @property
    def sign(self) -> int:
        """1 where higher is better, otherwise -1: a score times it is better the larger it is."""
        return 1 if self.higher_is_better else -1

    @property
    def better(self) -> str:
        """The word for being better, as in “vpa is … than sum”."""
        return "more accurate" if self.name == ACCURACY else "better"

    @property
    def worse(self) -> str:
        """The word for being worse."""
        return "less accurate" if self.name == ACCURACY else "worse"

    @property
    def extreme(self) -> str:
        """The word for the better end of its scale."""
        return "highest" if self.higher_is_better else "lowest"

    def gain(self, score: float, other: float) -> float:
        """How much better one score is than another; negative where it is worse."""
        return self.sign * (score - other)

    def digits(self, scores: Iterable[float]) -> int:
        """Decimals to print scores with: one for percent, three significant digits otherwise.

        Whole numbers have all of their digits; from a million on it is fewer than 0, as `number`
        prints with an exponent. What is far larger than the smallest error, or than what an R2 can
        be, does not count: of a training that exploded an error may be 1e13, and with its decimals
        all others would be 0.

        Args:
            scores: what is usual for each of those that are printed.

        Example:
            >>> measure("accuracy").digits([86.7]), measure("mae").digits([0.0312, 0.0297])
            (1, 4)
            >>> measure("mae").digits([1.2e-8]), measure("mae").digits([1.2e8])
            (10, -6)
            >>> measure("mae").digits([0.0312, 1.2e13, 1.3e13])
            4
        """
        if self.is_share:
            return 1
        sizes = sorted(abs(score) for score in scores if math.isfinite(score) and score)
        if not sizes:
            return _SIGNIFICANT - 1
        most = _EXPLODED * (sizes[0] if self.has_unit else max(sizes[0], 1.0))
        near = [size for size in sizes if size <= most]
        places = _SIGNIFICANT - 1 - math.floor(math.log10(near[len(near) // 2]))
        return 0 if _LARGE <= places < 0 else places

    def unit(self, relative: bool = False) -> str:
        """What a difference of two scores is in."""
        if relative:
            return f"% of the best median {self.noun}"
        return "points" if self.is_share else f"of {self.noun}"


def measure(name: str) -> Measure:
    """Return what is known of a metric.

    Raises:
        UsageError: There is no such metric: which direction is better cannot be guessed.

    Example:
        >>> measure("rmse").higher_is_better
        False
    """
    from ..training import METRICS

    if name not in METRICS:
        raise UsageError(f"the metric {name!r} is unknown: expected one of {', '.join(METRICS)}")
    entry = METRICS[name]
    return Measure(
        name, entry.title, entry.higher_is_better, entry.is_share, has_unit=name in _IN_UNITS
    )


def measure_of(frame: pd.DataFrame) -> Measure:
    """Return the one metric of a frame; without a column `metric` it is the accuracy.

    Raises:
        UsageError: The frame has several, or says of one that its other direction is better.

    Example:
        >>> import pandas as pd
        >>> measure_of(pd.DataFrame({"metric": ["mae", "mae"]})).title
        'MAE'
    """
    names = metrics(frame).unique().tolist()
    if len(names) > 1:
        raise UsageError(
            f"the scores are of several metrics ({', '.join(names)}), which have no common scale: "
            "take them one by one from split_by_setting(folds)"
        )
    found = measure(names[0] if names else ACCURACY)
    said = set(frame["higher_is_better"].dropna()) if "higher_is_better" in frame.columns else set()
    if said - {found.higher_is_better}:
        raise UsageError(
            f"the results say that of {found.name} the {'lower' if found.sign > 0 else 'higher'} "
            "is better, which is not so: they cannot be trusted"
        )
    return found


def metrics(frame: pd.DataFrame) -> pd.Series:
    """Return the metric of each row."""
    import pandas as pd

    if "metric" not in frame.columns:
        return pd.Series(ACCURACY, index=frame.index, dtype=object)
    return frame["metric"].fillna(ACCURACY)
