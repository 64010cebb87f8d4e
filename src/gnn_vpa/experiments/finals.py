"""The last step of a choice: train the chosen settings anew, and average what comes out."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import GnnVpaError
from ..graphs import GraphSet
from ..training import METRICS, Lane, Outcome, Protocol, Task
from .cell import Cell
from .groups import Group, lanes_of
from .selection import choose
from .store import Result, Store

Train = Callable[[Task, Protocol, Sequence[Lane], str], list[Outcome]]
"""Trains a method on lanes; the text names its state, among those of the same cell."""


def choices(cell: Cell, store: Store) -> list[int]:
    """Return the place of the chosen setting in each fold, by recorded validation scores alone.

    Raises:
        GnnVpaError: The settings are not all recorded.
    """
    by_setting = [store.validation_scores(candidate.key) for candidate in cell.candidates()]
    for candidate, scores in zip(cell.candidates(), by_setting, strict=True):
        if len(scores) != cell.folds:
            raise GnnVpaError(
                f"{cell}: nothing can be chosen yet, {len(scores)} of {cell.folds} folds of "
                f"{candidate} are recorded"
            )
    return choose(by_setting, higher_is_better=METRICS[cell.metric].higher_is_better)


def chosen(group: Group, store: Store) -> list[int] | None:
    """Return what a group's cell has chosen in each fold; None where it chooses nothing."""
    first = group.cells[0]
    return None if first.selection is None else choices(first, store)


def train_chosen(cell: Cell, graphs: GraphSet, choice: Sequence[int], train: Train) -> Result:
    """Train the setting that is chosen in each fold with new seeds, and average the runs."""
    assert cell.selection is not None
    seeds, candidates = cell.selection.seeds(cell.seed), cell.candidates()
    lanes = lanes_of(cell, graphs)
    runs: dict[int, list[Outcome]] = {lane.fold: [] for lane in lanes}
    for number in sorted(set(choice)):
        protocol = candidates[number].protocol
        assert protocol is not None
        its = [lane for lane, chosen in zip(lanes, choice, strict=True) if chosen == number]
        again = [lane._replace(seed=seed) for seed in seeds for lane in its]
        for outcome in train(candidates[number].task, protocol, again, str(number)):
            runs[outcome.fold].append(outcome)
    averages = [average(of_fold, cell.seed) for of_fold in runs.values()]
    sizes = [(len(lane.split.train), len(lane.split.test)) for lane in lanes]
    return Result(cell, averages, [cell.selection.shown(number) for number in choice], sizes)


def average(runs: Sequence[Outcome], seed: int) -> Outcome:
    """Return the mean of a fold's final runs, curves as far as the shortest goes.

    Where one of them diverged there is no mean: the fold has diverged.

    Example:
        >>> curves = [np.array(curve, np.float32) for curve in ([1.0], [0.5], [0.25])]
        >>> run = Outcome.of(0, 1, *curves)
        >>> average([run, replace(run, seed=2, test_score=0.75)], seed=0).test_score
        0.5
    """
    for run in runs:
        if run.diverged_epoch is not None:
            return replace(run, seed=seed)
    length = min(len(run.curve_train_loss) for run in runs)

    def mean(name: str) -> float:
        return float(np.mean([getattr(run, name) for run in runs]))

    def mean_curve(name: str) -> Any:
        return np.mean([getattr(run, name)[:length] for run in runs], axis=0)

    return replace(
        runs[0],
        seed=seed,
        best_epoch=round(mean("best_epoch")),
        val_score=mean("val_score"),
        test_score=mean("test_score"),
        train_loss=mean("train_loss"),
        curve_train_loss=mean_curve("curve_train_loss"),
        curve_val=mean_curve("curve_val"),
        curve_test=mean_curve("curve_test"),
        scores={
            name: (
                float(np.mean([run.scores[name][0] for run in runs])),
                float(np.mean([run.scores[name][1] for run in runs])),
            )
            for name in runs[0].scores
        },
    )
