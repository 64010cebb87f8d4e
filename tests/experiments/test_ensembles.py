"""The models that a run has kept speak together: all of one method, and none of another."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import Group, expand, protocols, run_grid, runner
from gnn_vpa.experiments.ensembles import load_run
from gnn_vpa.graphs import GraphSet
from gnn_vpa.graphs.divisions import division
from gnn_vpa.training import Protocol

Kept = Callable[..., list[Path]]


@pytest.fixture
def keep(toy: GraphSet, tmp_path: Path) -> Kept:
    """Run small trainings of toys into one folder, and return the folders of their models."""

    def run(graphs: GraphSet = toy, *, keep_models: bool = True, **asked: Any) -> list[Path]:
        usual: dict[str, Any] = {
            "models": ["gin"],
            "aggrs": ["vpa"],
            "options": {"width": 4, "depth": 1},
            "protocol": Protocol(epochs=1),
            "folds": 2,
        }
        before = set(tmp_path.glob("models/*"))
        cells = expand([graphs], **(usual | asked)).cells
        run_grid(cells, tmp_path, device="cpu", keep_models=keep_models)
        return sorted(set(tmp_path.glob("models/*")) - before)

    return run


def change(out: Path, sql: str) -> None:
    """Change the results of a run."""
    with closing(sqlite3.connect(out / "results.sqlite")) as connection, connection:
        connection.execute(sql)


def test_seeds_and_repeats_speak_together(keep: Kept, tmp_path: Path) -> None:
    keep(seeds=[0, 1], repeats=2)
    assert len(load_run(tmp_path).models) == 2 * 2 * 2


@pytest.mark.parametrize("lost", [".", "fold-1", "fold-1/model.safetensors"])
def test_a_model_that_is_lost_is_missed(keep: Kept, tmp_path: Path, lost: str) -> None:
    folder, _ = keep(seeds=[0, 1])
    if (folder / lost).is_dir():
        shutil.rmtree(folder / lost)
    else:
        (folder / lost).unlink()
    with pytest.raises(UsageError, match=rf"{folder.name} has no fold-.*it is lost, or the run"):
        load_run(tmp_path)


def test_a_seed_whose_models_were_never_kept_is_missed(keep: Kept, tmp_path: Path) -> None:
    keep(keep_models=False)
    keep(seeds=[0, 1])
    with pytest.raises(UsageError, match=r"without --keep-models.* into a new folder"):
        load_run(tmp_path)


def test_other_methods_need_not_be_kept(keep: Kept, tmp_path: Path) -> None:
    keep()
    for other in ({"options": {"width": 5}}, {"protocol": Protocol(epochs=1, weight_decay=0.1)}):
        keep(keep_models=False, seeds=[1], **other)
    assert len(load_run(tmp_path).models) == 2


def test_a_run_that_was_ended_before_a_cell_is_not_whole(keep: Kept, tmp_path: Path) -> None:
    (folder,) = keep()
    for table in ("scores", "folds", "cells"):
        change(tmp_path, f"DELETE FROM {table}")
    with pytest.raises(UsageError, match=rf"{folder.name} is of .*vpa.* that is not finished"):
        load_run(tmp_path)


def test_a_fold_that_diverged_has_no_model_and_others_speak(keep: Kept, tmp_path: Path) -> None:
    (folder,) = keep()
    change(tmp_path, "UPDATE folds SET status = 'diverged' WHERE fold = 1")
    shutil.rmtree(folder / "fold-1")
    assert len(load_run(tmp_path).models) == 1
    change(tmp_path, "UPDATE folds SET status = 'diverged'")
    with pytest.raises(UsageError, match="all folds diverged"):
        load_run(tmp_path)


def test_each_method_has_folds_of_its_own(keep: Kept, tmp_path: Path) -> None:
    keep(aggrs=["sum"], folds=3)
    (folder,) = keep(aggrs=["vpa"])
    assert len(load_run(tmp_path, "gin+vpa").models) == 2
    assert len(load_run(tmp_path, "gin+sum").models) == 3
    shutil.rmtree(folder / "fold-1")  # the other method still has one
    with pytest.raises(UsageError, match="has no fold-1"):
        load_run(tmp_path, "gin+vpa")
    assert len(load_run(tmp_path, "gin+sum").models) == 3


GROUPS = [number % 5 for number in range(40)]


@pytest.mark.parametrize(
    ("asked", "differ"),
    [
        ({"folds": 3}, r"folds \(2, 3\)"),
        ({"division": division(groups=GROUPS)}, "how graphs are divided"),
        ({"protocol": Protocol(epochs=2)}, r"epochs \(1, 2\)"),
    ],
)
def test_models_of_several_runs_are_told_apart(
    keep: Kept, tmp_path: Path, asked: dict[str, Any], differ: str
) -> None:
    first, second = keep(seeds=[0, 1])
    more = keep(**asked)
    together = rf"such as (?:{first.name}, {second.name}|{second.name}, {first.name}), and move"
    with pytest.raises(UsageError, match=rf"differ in {differ}.*{together}"):
        load_run(tmp_path)
    for folder in more:  # as the message says
        shutil.rmtree(folder)
    assert len(load_run(tmp_path).models) == 2 * 2


def test_choices_from_other_settings_are_told_apart(keep: Kept, tmp_path: Path) -> None:
    for rates in ([0.1, 0.01], [0.1, 0.001]):
        keep(protocol=protocols({"lr": rates, "epochs": 1}), final_runs=1)
    with pytest.raises(UsageError, match="differ in the settings to choose from"):
        load_run(tmp_path)


def test_one_name_over_other_data_is_told_apart(keep: Kept, tmp_path: Path, toy: GraphSet) -> None:
    (first,) = keep()
    (second,) = keep(replace(toy, y=1 - toy.y))
    (second / "method.txt").write_text((first / "method.txt").read_text())
    with pytest.raises(UsageError, match="differ in their data"):
        load_run(tmp_path)


def choose(monkeypatch: pytest.MonkeyPatch, by_repeat: list[list[int]]) -> None:
    """Let each fold of a repeat have the setting of this place."""

    def chosen(group: Group, store: object) -> list[int] | None:
        first = group.cells[0]
        return None if first.selection is None else by_repeat[first.repeat]

    monkeypatch.setattr(runner, "chosen", chosen)


def test_folds_and_repeats_may_have_chosen_differently(
    keep: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(monkeypatch, [[0, 1], [1, 1]])
    keep(protocol=protocols({"lr": [0.1, 0.01], "epochs": 1}), final_runs=1, repeats=2)
    rates = [model.protocol.learning_rate for model in load_run(tmp_path).models]
    assert sorted(rates) == [0.01, 0.01, 0.01, 0.1]


def test_each_final_run_of_a_fold_is_missed(keep: Kept, tmp_path: Path) -> None:
    rates = protocols({"lr": [0.1, 0.01], "epochs": 1})
    (folder,) = keep(protocol=rates, final_runs=2)
    assert len(load_run(tmp_path).models) == 2 * 2
    shutil.rmtree(folder / "fold-1-seed-2")
    with pytest.raises(UsageError, match="has no fold-1-seed-2"):
        load_run(tmp_path)


def test_what_is_tried_in_a_choice_need_not_be_kept(keep: Kept, tmp_path: Path) -> None:
    keep()
    rates = protocols({"lr": [0.001, 0.01], "epochs": 1})
    keep(protocol=rates, final_runs=1, seeds=[0, 1])
    assert len(load_run(tmp_path, "GIN+vpa (depth=1, width=4) on toy").models) == 2
    assert len(load_run(tmp_path, "chosen").models) == 2 * 2


def test_folds_of_a_file_may_differ_in_size(keep: Kept, tmp_path: Path) -> None:
    every = list(range(40))
    folds = [[every[:20], every[20:30], every[30:]], [every[:10], every[10:20], every[20:30]]]
    keep(division=division(splits=folds), folds=None, seeds=[0, 1])
    models = load_run(tmp_path).models
    assert sorted(model.record.data.train for model in models) == [10, 10, 20, 20]
