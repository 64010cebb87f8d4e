"""The one setting that a run would choose for all of the data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import Cell, expand, identify, protocols, run_grid, train_group
from gnn_vpa.experiments.chosen import choose_setting
from gnn_vpa.training import Lane, Outcome

from .conftest import FakeFit

FAST, SLOW = 0.1, 0.01
FOLDS = 3
TESTED = 0.25  # the test score of each fold

Scores = Callable[[list[float], list[float]], list[Cell]]


@pytest.fixture
def scored(fake_fit: FakeFit, monkeypatch: pytest.MonkeyPatch) -> Scores:
    """Take the validation scores of two learning rates, repeat after repeat, for their folds."""

    def cells(fast: list[float], slow: list[float]) -> list[Cell]:
        scores = {FAST: fast, SLOW: slow}

        def fit(
            graphs: object, tasks: object, protocols: Any, lanes: Sequence[Lane], **_: object
        ) -> list[Outcome]:
            return [
                outcome(scores[p.learning_rate][lane.fold], lane)
                for p in protocols
                for lane in lanes
            ]

        monkeypatch.setattr(train_group, "fit", fit)
        grid = expand(
            ["MUTAG"],
            aggrs=["vpa"],
            folds=FOLDS,
            repeats=len(fast) // FOLDS,
            protocol=protocols({"lr": [FAST, SLOW], "epochs": 1}),
            final_runs=1,
        )
        return identify(grid.cells).cells

    return cells


def outcome(score: float, lane: Lane) -> Outcome:
    """Return what a training came to that has this validation score; NaN: it diverged."""
    valid = np.full(1, score, np.float32)
    curves = (np.ones(1, np.float32), valid, np.full(1, TESTED, np.float32))
    found = Outcome.of(lane.fold, lane.seed, *curves)
    diverged = found.diverged_epoch is not None
    return replace(found, scores={} if diverged else {"accuracy": (score, TESTED)})


def test_a_setting_is_judged_by_all_repeats_and_not_by_the_luckiest(
    scored: Scores, tmp_path: Path
) -> None:
    cells = scored([0.9] * 3 + [0.1] * 3, [0.7] * 6)
    run_grid(cells, tmp_path, device="cpu")
    chosen = choose_setting(tmp_path, cells)
    assert chosen.cell.protocol is not None
    assert chosen.cell.protocol.learning_rate == SLOW
    assert chosen.cell.repeat == 0
    assert chosen.folds == [TESTED] * 6
    assert chosen.scores == {"accuracy": TESTED}


@pytest.mark.parametrize("repeat", [0, 1])
def test_a_fold_that_is_lost_counts_in_whatever_repeat(
    scored: Scores, tmp_path: Path, repeat: int
) -> None:
    fast = [0.9] * 6
    fast[3 * repeat] = math.nan
    cells = scored(fast, [0.7] * 6)
    run_grid(cells, tmp_path, device="cpu")
    chosen = choose_setting(tmp_path, cells)
    assert chosen.cell.protocol is not None
    assert chosen.cell.protocol.learning_rate == SLOW


@pytest.mark.parametrize(("metric", "rate"), [("accuracy", FAST), ("mae", SLOW)])
def test_the_metric_says_which_score_is_the_better(
    scored: Scores, tmp_path: Path, metric: str, rate: float
) -> None:
    cells = scored([0.9] * 3, [0.7] * 3)
    run_grid(cells, tmp_path, device="cpu")
    chosen = choose_setting(tmp_path, [replace(cell, metric=metric) for cell in cells])
    assert chosen.cell.protocol is not None
    assert chosen.cell.protocol.learning_rate == rate


def test_nothing_is_chosen_before_everything_is_finished(scored: Scores, tmp_path: Path) -> None:
    cells = scored([0.9] * 6, [0.7] * 6)
    tried = [cell for cell in cells if cell.selection is None]
    run_grid([cell for cell in tried if cell.repeat == 0], tmp_path, device="cpu")
    with pytest.raises(GnnVpaError, match=r"repeat 1 is not finished, nothing can be chosen yet"):
        choose_setting(tmp_path, cells)
    run_grid([cell for cell in cells if cell in tried or cell.repeat == 0], tmp_path, device="cpu")
    with pytest.raises(GnnVpaError, match="not finished, and how good it is cannot be said yet"):
        choose_setting(tmp_path, cells)


def test_nothing_is_chosen_where_every_training_diverged(scored: Scores, tmp_path: Path) -> None:
    cells = scored([math.nan] * 3, [math.nan] * 3)
    run_grid(cells, tmp_path, device="cpu")
    with pytest.raises(GnnVpaError, match="every training diverged"):
        choose_setting(tmp_path, cells)
