"""What a report is of: a part for each setting, from which every section takes what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ..answer import Answer, answer
from ..comparison import compare_with_paper
from ..findings import findings
from ..measure import ACCURACY, Measure, measure
from ..settings import KEYS, Setting, require_columns, shown_settings, split_by_setting
from ..significance import overall_tests
from ..style import DATASETS, in_order
from ..summary import repeats

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Part:
    """The results of one setting.

    Attributes:
        setting: What they were made under.
        folds: A row for each training.
        curves: A row for each training and epoch; may be empty.
        signals: A row for each method, data set and layer; None where they are not known.
        number: The part's place in the report, from 1.
        alone: Whether it is the only one.
        ceiling: The best score that any network can reach, by data set and node features.
    """

    setting: Setting
    folds: pd.DataFrame
    curves: pd.DataFrame
    signals: pd.DataFrame | None
    number: int = 1
    alone: bool = True
    ceiling: Mapping[tuple[str, str], float] | None = None

    @property
    def level(self) -> str:
        """The signs in front of a section's heading in Markdown."""
        return "##" if self.alone else "###"

    @property
    def measure(self) -> Measure:
        """The metric of all its scores."""
        return measure(self.setting.metric)

    @property
    def is_repeated(self) -> bool:
        """Whether the folds were drawn several times."""
        return int(repeats(self.folds).nunique()) > 1

    @property
    def datasets(self) -> list[str]:
        """The data sets in the order of tables and figures."""
        return in_order(self.folds["dataset"], DATASETS)

    @cached_property
    def answer(self) -> Answer:
        """Which aggregations may be the best."""
        return answer(self.folds, self.signals, self.ceiling)

    @cached_property
    def findings(self) -> list[str]:
        """What came out, in sentences."""
        return findings(self.folds)

    @cached_property
    def compared(self) -> pd.DataFrame:
        """Ours beside the paper's, where it has the same."""
        return compare_with_paper(self.folds)

    @cached_property
    def tests(self) -> pd.DataFrame:
        """Tests of vpa against each method, over all data sets."""
        return overall_tests(self.folds)


def parts(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    signals: pd.DataFrame | None = None,
    ceiling: Mapping[tuple[str, str], float] | None = None,
) -> list[Part]:
    """Split the results by setting; where there are none, return one part without any."""
    folds = _with_columns(folds, (*KEYS, "test_score", "status"))
    curves = _with_columns(curves, (*KEYS, "epoch", "train_loss"))
    curves_of = dict(split_by_setting(curves))
    signals_of = {} if signals is None else dict(split_by_setting(signals.assign(fold=0, seed=0)))
    split = shown_settings(folds) or [(Setting("released", "auto"), folds)]
    return [
        Part(
            setting,
            part,
            _of(setting, part, curves_of, curves.iloc[:0]),
            None if signals is None else _of(setting, part, signals_of, signals.iloc[:0]),
            number=number,
            alone=len(split) == 1,
            ceiling=ceiling,
        )
        for number, (setting, part) in enumerate(split, 1)
    ]


def _of(
    setting: Setting, folds: pd.DataFrame, split: dict[Setting, pd.DataFrame], nothing: pd.DataFrame
) -> pd.DataFrame:
    """What belongs to a setting's folds, of a frame that may know nothing of metrics."""
    without = replace(setting, metric=ACCURACY)
    found = split.get(setting, split.get(without, nothing))
    return found if found.empty else found[found["dataset"].isin(set(folds["dataset"]))]


def _with_columns(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """An empty frame may come without columns; any other must have them."""
    if frame.empty:
        return frame.reindex(columns=[*columns])
    require_columns(frame, columns)
    return frame
