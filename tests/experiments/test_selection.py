"""Which setting is chosen, and what that may depend on."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gnn_vpa
from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments import (
    Cell,
    Group,
    Progress,
    Selection,
    Setting,
    Store,
    expand,
    finished,
    identify,
    protocols,
    read_curves,
    read_folds,
    run_grid,
    train_group,
)
from gnn_vpa.experiments.finals import choices
from gnn_vpa.experiments.selection import best, choose
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Lane, Outcome, Protocol, checkpoint

from .conftest import FakeFit

SCORES = st.lists(st.floats(0, 1) | st.just(math.nan), min_size=1, max_size=6)


@given(SCORES, st.booleans())
def test_the_first_of_the_best_is_chosen_and_what_diverged_never(
    scores: list[float], higher: bool
) -> None:
    place = best(scores, higher_is_better=higher)
    known = [score for score in scores if not math.isnan(score)]
    if known:
        assert scores[place] == (max(known) if higher else min(known))
        assert scores.index(scores[place]) == place
    else:
        assert place == 0


def test_each_fold_has_a_choice_of_its_own() -> None:
    by_setting = [[0.5, 0.9, 0.7], [0.6, 0.8, 0.7]]
    assert choose(by_setting, higher_is_better=True) == [1, 0, 0]
    assert choose(by_setting, higher_is_better=False) == [0, 1, 0]


@given(st.integers(1, 5), st.lists(st.integers(0, 50), unique=True, min_size=2))
def test_final_runs_have_seeds_that_no_other_run_of_the_choice_has(
    final_runs: int, seeds: list[int]
) -> None:
    selection = Selection((Setting((), Protocol()),), final_runs)
    drawn = [run for seed in seeds for run in selection.seeds(seed)]
    assert len(set(drawn)) == len(drawn) == final_runs * len(seeds)
    assert all(seed not in selection.seeds(seed) for seed in seeds)


def test_what_is_shown_is_what_differs() -> None:
    grid = expand(
        ["MUTAG"],
        aggrs=["vpa"],
        options={"width": [8, 16], "depth": 2},
        protocol=protocols({"lr": "0.01,0.001", "epochs": 5}),
        final_runs=3,
    )
    (chosen,) = (cell for cell in grid.cells if cell.selection)
    assert chosen.selection is not None
    assert chosen.task.options == (("depth", 2),)
    shown = [chosen.selection.shown(number) for number in range(4)]
    assert shown[0] == {"learning_rate": 0.01, "width": 8}
    assert len({tuple(each.items()) for each in shown}) == 4


# With trainings that cost nothing ---------------------------------------------------------------


class Scored(FakeFit):
    """Validation scores by learning rate and fold; the test score names the rate and the seed."""

    def __init__(self) -> None:
        super().__init__()
        self.valid = {0.01: [0.9, 0.2, 0.5], 0.001: [0.1, 0.8, 0.5]}
        self.trained: list[tuple[float, int, int]] = []

    def __call__(
        self, graphs: GraphSet, tasks: Any, protocols: Any, lanes: Sequence[Lane], **_: Any
    ) -> list[Outcome]:
        found = []
        for protocol in protocols:
            rate = protocol.learning_rate
            for lane in lanes:
                self.trained.append((rate, lane.fold, lane.seed))
                fold = lane.fold % 3
                valid = np.full(2, self.valid[rate][fold], np.float32)
                outcome = Outcome.of(lane.fold, lane.seed, valid * 0 + 1, valid, valid)
                if outcome.diverged_epoch is None:
                    scores = {"accuracy": (float(valid[0]), rate + lane.seed)}
                    outcome = replace(outcome, test_score=rate + lane.seed, scores=scores)
                found.append(outcome)
        return found


@pytest.fixture
def scored(fake_fit: FakeFit, monkeypatch: pytest.MonkeyPatch) -> Scored:
    fake = Scored()
    monkeypatch.setattr(train_group, "fit", fake)
    return fake


def _cells(**settings: Any) -> list[Cell]:
    asked: dict[str, Any] = {
        "aggrs": ["vpa"],
        "folds": 3,
        "protocol": protocols({"lr": [0.01, 0.001], "epochs": 2}),
        "final_runs": 2,
    }
    return identify(expand(["MUTAG"], **(asked | settings)).cells).cells


def test_each_fold_is_trained_anew_with_what_was_chosen_there(
    scored: Scored, tmp_path: Path
) -> None:
    run_grid(_cells(), tmp_path, device="cpu")
    finals = scored.trained[6:]
    assert sorted(finals) == [(0.001, 1, 1), (0.001, 1, 2), *(
        (0.01, fold, seed) for fold in (0, 2) for seed in (1, 2)
    )]  # fmt: skip
    folds = read_folds(tmp_path)  # in fold 2 both are equal: the first
    assert folds["chosen"].tolist() == [
        '{"learning_rate": 0.01}', '{"learning_rate": 0.001}', '{"learning_rate": 0.01}',
    ]  # fmt: skip
    assert folds["test_score"].tolist() == pytest.approx([1.51, 1.501, 1.51])  # the mean
    assert folds["test_accuracy"].tolist() == pytest.approx([1.51, 1.501, 1.51])
    assert folds["fold"].tolist() == [0, 1, 2]
    assert folds["learning_rate"].isna().all()


def test_what_was_chosen_from_is_kept_apart(scored: Scored, tmp_path: Path) -> None:
    run_grid(_cells(), tmp_path, device="cpu")
    assert len(read_folds(tmp_path)) == 3
    candidates = read_folds(tmp_path, candidates=True)
    assert len(candidates) == 6
    assert candidates["chosen"].isna().all()
    assert set(candidates["protocol"]) == {"learning rate 0.01", ""}
    assert len(gnn_vpa.Results(tmp_path).candidates) == 6


def test_test_scores_do_not_matter_for_the_choice(scored: Scored, tmp_path: Path) -> None:
    cells = _cells()
    run_grid([cell for cell in cells if cell.selection is None], tmp_path, device="cpu")
    (chosen,) = (cell for cell in cells if cell.selection)
    with Store(tmp_path) as store:
        before = choices(chosen, store)
        chance = np.random.default_rng(0)
        for _ in range(20):
            for cell, fold in store._connection.execute("SELECT cell, fold FROM folds").fetchall():
                for sql in (
                    "UPDATE folds SET test_score = ? WHERE cell = ? AND fold = ?",
                    "UPDATE scores SET test = ? WHERE cell = ? AND fold = ?",
                ):
                    store._connection.execute(sql, (chance.random(), cell, fold))
            store._connection.execute("UPDATE folds SET curve_test = zeroblob(8)")
            assert choices(chosen, store) == before
        store._connection.execute("UPDATE folds SET val_score = 1 - val_score")
        assert choices(chosen, store) != before  # so that the test can fail


def test_a_score_of_which_less_is_better_is_chosen_by_that(scored: Scored, tmp_path: Path) -> None:
    cells = _cells()
    run_grid([cell for cell in cells if cell.selection is None], tmp_path, device="cpu")
    (chosen,) = (cell for cell in cells if cell.selection)
    with Store(tmp_path) as store:
        assert choices(replace(chosen, metric="accuracy"), store) == [0, 1, 0]
        assert choices(replace(chosen, metric="mae"), store) == [1, 0, 0]


def test_nothing_is_chosen_from_what_is_not_there(tmp_path: Path) -> None:
    (chosen,) = (cell for cell in _cells() if cell.selection)
    with Store(tmp_path) as store, pytest.raises(GnnVpaError, match="0 of 3 folds of GIN"):
        choices(chosen, store)


def test_seeds_and_repeats_choose_by_themselves(scored: Scored, tmp_path: Path) -> None:
    run_grid(_cells(seeds=[0, 1], repeats=2), tmp_path, device="cpu")
    folds = read_folds(tmp_path)
    assert folds.groupby(["seed", "repeat"]).size().tolist() == [3] * 4
    finals = scored.trained[2 * 2 * 2 * 3 :]
    assert {seed for *_, seed in finals} == {1, 2, 4, 5}  # two for each of the seeds
    assert {fold for _, fold, _ in finals} == set(range(6))  # repeats count on


def test_a_final_run_that_diverges_leaves_no_mean(scored: Scored, tmp_path: Path) -> None:
    cells = _cells()
    run_grid([cell for cell in cells if cell.selection is None], tmp_path, device="cpu")
    scored.valid[0.001] = [math.nan] * 3
    run_grid(cells, tmp_path, device="cpu")
    folds = read_folds(tmp_path)
    assert folds["status"].tolist() == ["done", "diverged", "done"]
    assert folds["test_score"].isna().tolist() == [False, True, False]


def test_a_choice_can_be_added_to_a_run_without_one(scored: Scored, tmp_path: Path) -> None:
    run_grid(_cells(final_runs=None), tmp_path, device="cpu")
    assert len(read_folds(tmp_path)) == 6
    before = len(scored.trained)
    run_grid(_cells(), tmp_path, device="cpu")
    assert len(scored.trained) - before == 3 * 2  # the final runs alone
    assert len(read_folds(tmp_path)) == 3


# With the real training -------------------------------------------------------------------------


class Stops(Progress):
    """Interrupts the run in the middle of a cell that chooses."""

    def __init__(self) -> None:
        self.armed = True

    def epochs(self, group: Group, done: int) -> None:
        if self.armed and group.cells[0].selection is not None and done >= 2:
            self.armed = False
            raise KeyboardInterrupt


def test_an_interrupted_choice_goes_on_to_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_PAUSE", 0.0)
    cells = expand(
        ["MUTAG"],
        ["sgc"],
        ["vpa"],
        options={"K": [1, 2]},
        protocol=protocols({"lr": "0.01,0.001", "epochs": 4}),
        folds=3,
        final_runs=2,
    ).cells
    run_grid(cells, tmp_path / "whole", device="cpu")
    with pytest.raises(KeyboardInterrupt):
        run_grid(cells, tmp_path / "broken", device="cpu", progress=Stops())
    assert len(finished(tmp_path / "broken")) == 4
    assert list((tmp_path / "broken" / "checkpoints").glob("*.pt"))
    run_grid(cells, tmp_path / "broken", device="cpu")
    for read in (read_folds, read_curves):
        whole, resumed = (read(tmp_path / name) for name in ("whole", "broken"))
        without = [name for name in ("seconds",) if name in whole]
        pd.testing.assert_frame_equal(
            resumed.drop(columns=without), whole.drop(columns=without), check_exact=True
        )
    assert not (tmp_path / "broken" / "checkpoints").exists()


def test_final_runs_are_what_such_trainings_come_to_by_themselves(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"folds": 3, "protocol": Protocol(epochs=3)}
    run_grid(
        expand(["MUTAG"], ["sgc"], ["vpa"], final_runs=2, **settings).cells, tmp_path, device="cpu"
    )
    run_grid(
        expand(["MUTAG"], ["sgc"], ["vpa"], seeds=[1, 2], **settings).cells,
        tmp_path / "alone",
        device="cpu",
    )
    alone = read_folds(tmp_path / "alone").groupby("fold")[["val_score", "test_score"]].mean()
    found = read_folds(tmp_path).set_index("fold")[["val_score", "test_score"]]
    pd.testing.assert_frame_equal(found, alone)
