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
        flattered: those that are compared without some of their trainings.
    """

    dataset: str
    names: tuple[str, ...]
    folds: Folds
    left_out: tuple[tuple[str, str], ...]
    cautions: tuple[str, ...]
    flattered: tuple[str, ...] = ()


def entrants(
    dataset: str, scores: pd.DataFrame, asked: int, test_per_train: float, sign: int
) -> Entrants:
    """Pair the folds of one model on one data set.

    What has finished no more than half of its folds is left out: the others would have to be
    compared on so few. A fold that one of the rest is missing is left out for all of them. A fold
    counts with the trainings that have a score, and where others have none that is said.

    Args:
        dataset: its name.
        scores: its rows of `fold_scores`.
        asked: how many folds there should be, of all repeats.
        test_per_train: see `corrected_mean`.
        sign: -1 where lower scores are better.
    """
    wide = scores.pivot(index=["repeat", "fold"], columns="aggregation", values="score")
    wide = wide[ordered(wide.columns)]
    whole = scores["score"].notna()
    lost = scores["diverged"].groupby(scores["aggregation"]).sum()
    lost_folds = scores["diverged"].mask(whole, 0).groupby(scores["aggregation"]).sum()
    finished = wide.notna().sum()
    few = [name for name in wide if finished[name] <= _ENOUGH * asked]
    common = wide.drop(columns=few).dropna()
    fewer = [name for name in common if finished[name] < asked]
    counted = scores[whole].groupby("aggregation")[["seeds", "trainings", "diverged"]].sum()
    partly = [n for n in common if counted["trainings"][n] < counted["seeds"][n]]
    repeats = int(common.index.get_level_values("repeat").nunique())
    return Entrants(
        dataset,
        tuple(common.columns),
        Folds(sign * common.to_numpy(dtype=float), max(repeats, 1), test_per_train),
        tuple((name, _reason(int(finished[name]), asked, int(lost[name]))) for name in few),
        (
            *(_without(n, asked - int(finished[n]), asked, bool(lost_folds[n])) for n in fewer),
            *(_partly(name, *map(int, counted.loc[name])) for name in partly),
        ),
        tuple(dict.fromkeys((*fewer, *partly))),
    )


def _reason(finished: int, asked: int, diverged: int) -> str:
    lost = f", {count(diverged, 'training')} diverged" if diverged else ""
    return f"{finished} of {count(asked, 'fold')} finished{lost}"


def _without(name: str, missed: int, asked: int, is_lost: bool) -> str:
    how = "diverged" if is_lost else "has not finished"
    return (
        f"In {missed} of {count(asked, 'fold')} {name} {how}: it is compared on the others, which "
        "may flatter it."
    )


def _partly(name: str, asked: int, scored: int, diverged: int) -> str:
    missed = asked - scored
    how = "diverged" if diverged else "have not finished"
    if 0 < diverged < missed:
        how += " or have not finished"
    return (
        f"{missed} of {count(asked, 'training')} of {name} {how}: its folds count with the others, "
        "which may flatter it."
    )
