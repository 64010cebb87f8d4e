"""Who can be compared: the aggregations of one model on one data set, on folds that all have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...aggregations import ordered
from ..format import count
from ._contest import Folds

if TYPE_CHECKING:
    import pandas as pd

_ENOUGH = 0.5  # of the folds must have finished before an aggregation is compared


@dataclass(frozen=True)
class Entrants:
    """The aggregations of one model that can be compared on one data set.

    Args:
        dataset: its name.
        names: the aggregations, a column of `folds` each.
        folds: their scores, larger being better.
        left_out: aggregations that cannot be compared, each with the reason.
        cautions: what is odd about the comparison, in sentences.
    """

    dataset: str
    names: tuple[str, ...]
    folds: Folds
    left_out: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]


def entrants(
    dataset: str, scores: pd.DataFrame, asked: int, test_per_train: float, sign: int
) -> Entrants:
    """Pair the folds of one model on one data set.

    What has finished no more than half of its folds is left out: the others would have to be
    compared on so few. A fold that one of the rest is missing is left out for all of them.

    Args:
        dataset: its name.
        scores: its rows of `fold_scores`.
        asked: how many folds there should be, of all repeats.
        test_per_train: see `corrected_mean`.
        sign: -1 where lower scores are better.
    """
    wide = scores.pivot(index=["repeat", "fold"], columns="aggregation", values="score")
    wide = wide[ordered(wide.columns)]
    lost = scores.groupby("aggregation")["diverged"].sum()
    finished = wide.notna().sum()
    few = [name for name in wide if finished[name] <= _ENOUGH * asked]
    common = wide.drop(columns=few).dropna()
    flattered = [name for name in common if finished[name] < asked]
    repeats = int(common.index.get_level_values("repeat").nunique())
    return Entrants(
        dataset,
        tuple(common.columns),
        Folds(sign * common.to_numpy(dtype=float), max(repeats, 1), test_per_train),
        tuple((name, _reason(int(finished[name]), asked, int(lost[name]))) for name in few),
        tuple(_flattered(name, asked - int(finished[name]), asked, lost) for name in flattered),
    )


def _reason(finished: int, asked: int, diverged: int) -> str:
    lost = f", {count(diverged, 'training')} diverged" if diverged else ""
    return f"{finished} of {count(asked, 'fold')} finished{lost}"


def _flattered(name: str, missed: int, asked: int, lost: pd.Series) -> str:
    how = "diverged" if lost[name] else "has not finished"
    return (
        f"In {missed} of {count(asked, 'fold')} {name} {how}: it is compared on the others, which "
        "may flatter it."
    )
