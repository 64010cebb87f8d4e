"""Results as frames: what is kept apart, and what columns there are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gnn_vpa.experiments import Cell, Result, Store, read_folds, read_provenance
from gnn_vpa.graphs import Division, GraphSet
from gnn_vpa.training import Outcome, Protocol, Task

_CONTENT = "8d3c0ee1"


@pytest.fixture(autouse=True)
def _short_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphSet, "checksum", lambda _: _CONTENT)


def _outcome(**changes: object) -> Outcome:
    rising = np.array([0.25, 0.5], np.float32)
    outcome = Outcome.of(0, 0, 1 - rising, rising, rising / 2)
    scores = {"accuracy": (0.5, 0.25), "roc_auc": (0.75, float("nan"))}
    return replace(outcome, scores=scores, **changes)  # type: ignore[arg-type]


def _record(folder: Path, toy: GraphSet, *cells: Cell) -> None:
    with Store(folder) as store:
        store.register("toy", toy)
        session = store.begin("cpu", {})
        results = [Result(cell, [_outcome(fold=cell.repeat)], sizes=[(30, 10)]) for cell in cells]
        store.record(results, session=session, seconds=1.0, device="cpu")


def _cell(task: Task | None = None, **settings: object) -> Cell:
    made = {"task": task or Task("gin", "vpa"), "folds": 1, "content": _CONTENT, **settings}
    return Cell("toy", **made)  # type: ignore[arg-type]


def test_all_metrics_have_a_column(tmp_path: Path, toy: GraphSet) -> None:
    _record(tmp_path, toy, _cell(), _cell(seed=1))
    folds = read_folds(tmp_path)
    assert folds["test_accuracy"].tolist() == [0.25, 0.25]
    assert folds["test_roc_auc"].isna().all()  # undefined, and not 0
    assert "test_mae" not in folds


def test_an_edited_model_is_another_row_and_its_name_says_so(tmp_path: Path, toy: GraphSet) -> None:
    one, other = (_cell(Task("mynets:make", "", source=s)) for s in ("3f2a77", "3f2b00"))
    _record(tmp_path, toy, one)
    assert read_folds(tmp_path)["model"].tolist() == ["mynets:make"]
    _record(tmp_path, toy, other)
    folds = read_folds(tmp_path)
    assert folds["model"].tolist() == ["mynets:make@3f2a", "mynets:make@3f2b"]
    assert folds["source"].tolist() == ["3f2a77", "3f2b00"]


@pytest.mark.parametrize(
    ("protocol", "shown"),
    [
        (Protocol(weight_decay=0.1), "weight decay 0.1"),
        (Protocol(optimizer="sgd"), "optimiser sgd"),
        (Protocol(schedule="cosine"), "cosine schedule"),
        (Protocol(patience=7), "patience 7"),
        (Protocol(clip=1.0), "gradients clipped at 1.0"),
        (Protocol(class_weight="balanced"), "balanced classes"),
        (Protocol(precision="bfloat16"), "rows in bfloat16"),
        (Protocol(learning_rate=0.1, batch_size=8), "batches of 8, learning rate 0.1"),
    ],
)
def test_another_setting_is_not_mixed_with_the_usual(
    tmp_path: Path, toy: GraphSet, protocol: Protocol, shown: str
) -> None:
    _record(tmp_path, toy, _cell(), _cell(protocol=protocol))
    assert read_folds(tmp_path)["protocol"].tolist() == ["", shown]


def test_another_division_is_not_mixed_and_has_its_share_of_test_graphs(
    tmp_path: Path, toy: GraphSet
) -> None:
    _record(tmp_path, toy, _cell(), _cell(division=Division("groups scaffold 00ff")))
    folds = read_folds(tmp_path)
    assert folds["division"].tolist() == ["", "groups scaffold 00ff"]
    assert folds["test_per_train"].isna().tolist() == [True, False]
    assert folds["test_per_train"][1] == pytest.approx(1 / 3)


def test_folds_are_counted_anew_in_each_repeat(tmp_path: Path, toy: GraphSet) -> None:
    _record(tmp_path, toy, _cell(), _cell(repeat=1))
    assert read_folds(tmp_path)[["repeat", "fold"]].to_numpy().tolist() == [[0, 0], [1, 0]]


def test_provenance_names_what_is_unusual(tmp_path: Path, toy: GraphSet) -> None:
    _record(tmp_path, toy, _cell(), _cell(protocol=Protocol(optimizer="sgd")), _cell(repeat=1))
    configuration = read_provenance(tmp_path)["configuration"]
    assert configuration["optimizer"] == ["adam", "sgd"]
    assert configuration["repeat"] == [0, 1]
    assert "clip" not in configuration
