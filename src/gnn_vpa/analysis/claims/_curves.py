"""Claims that the paper's figure of learning curves supports, and what was said of diverging."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from gnn_vpa.paper import published_statistics, resolve_name

from ..format import count
from ..style import DATASETS, in_order
from ._claim import Claim, Verdict, tally

if TYPE_CHECKING:
    import pandas as pd

_LAST = 10  # epochs whose mean is a curve's end
_SMOOTH = 5  # epochs
_CLOSE = 0.1  # of the way from guessing to the end that may still be missing
_SLACK = 1.02

Curves = dict[str, dict[str, np.ndarray]]  # data set -> aggregation -> mean training loss


def mean_losses(curves: pd.DataFrame, model: str = "GIN") -> Curves:
    """The mean training loss over folds by epoch, smoothed over a few epochs."""
    found: Curves = {}
    of_model = curves[curves["model"] == model] if not curves.empty else curves
    for name in in_order(of_model["dataset"], DATASETS) if len(of_model) else []:
        part = of_model[of_model["dataset"] == name]
        table = part.groupby(["aggregation", "epoch"])["train_loss"].mean()
        found[name] = {
            str(aggr): table.loc[aggr].rolling(_SMOOTH, min_periods=1).mean().to_numpy()
            for aggr in part["aggregation"].unique()
        }
    return found


def faster_than_sum(losses: Curves) -> Claim:
    """Figure and discussion: vpa converges faster than sum."""
    epochs = {
        name: _race(of["vpa"], of["sum"]) for name, of in losses.items() if {"vpa", "sum"} <= {*of}
    }
    cases = {name: mine < other for name, (mine, other) in epochs.items()}
    needed = "; ".join(f"{name} {mine}, {other}" for name, (mine, other) in epochs.items())
    return Claim(
        "The network training converges faster with VPA compared to sum aggregation.",
        "Figure of learning curves; discussion",
        Verdict.of(list(cases.values())),
        "Epochs of GIN until the training loss is as low as that of the slower of both in the end "
        f"(vpa, sum): {needed or 'not run'}. Fewer with vpa on {tally(cases, 'data sets')}.",
    )


def slow_with_sum(losses: Curves) -> Claim:
    """Appendix: fast with mean, max and vpa, slower with sum."""
    settled = {
        name: {aggr: _settled(curve, name) for aggr, curve in of.items()}
        for name, of in losses.items()
        if {"sum", "mean", "max", "vpa"} <= {*of}
    }
    cases = {
        f"{aggr} on {name}": of[aggr] < of["sum"]
        for name, of in settled.items()
        for aggr in ("mean", "max", "vpa")
    }
    needed = ", ".join(
        f"{aggr} {median(of[aggr] for of in settled.values()):g}"
        for aggr in ("sum", "mean", "max", "vpa")
        if settled
    )
    return Claim(
        "GIN model training converges fast with mean, max and VPA and slower with sum aggregation.",
        "Appendix, learning dynamics",
        Verdict.of(list(cases.values())),
        "Epochs until nine tenths of the way from guessing to the curve's own end are done, median "
        f"over {count(len(settled), 'data set')}: {needed or 'not run'}. Fewer than with sum in "
        f"{tally(cases, 'cases')}.",
    )


def none_diverged(folds: pd.DataFrame) -> Claim:
    """Discussion: nothing diverges."""
    lost = int((folds["status"] == "diverged").sum())
    return Claim(
        "For the data sets used, all methods could be trained without diverging due to exploding "
        "activations.",
        "Discussion",
        Verdict.UNTESTED if folds.empty else Verdict.of([not lost]),
        f"{lost} of {count(len(folds), 'training')} diverged.",
    )


def _race(mine: np.ndarray, other: np.ndarray) -> tuple[int, int]:
    goal = _SLACK * max(mine[-_LAST:].mean(), other[-_LAST:].mean())
    return _reached(mine, goal), _reached(other, goal)


def _settled(curve: np.ndarray, dataset: str) -> int:
    """Return when a curve has come nearly to its end, counted from the loss of guessing."""
    known = published_statistics(resolve_name(dataset))
    guessing = math.log(known.classes if known else 2)
    end = float(curve[-_LAST:].mean())
    return _reached(curve, _SLACK * end + _CLOSE * max(guessing - end, 0.0))


def _reached(curve: np.ndarray, goal: float) -> int:
    """Return the number of epochs until a curve is at a goal or below it; all if it never is."""
    below = np.flatnonzero(curve <= goal)
    return int(below[0]) + 1 if len(below) else len(curve)
