"""Results of earlier formats: read where they are, and gone on with."""

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from gnn_vpa.experiments import (
    Cell,
    Store,
    finished,
    identify,
    preset,
    read_curves,
    read_folds,
    read_provenance,
    read_signals,
)
from gnn_vpa.experiments.store import query
from gnn_vpa.training import Task


@pytest.fixture
def earlier(root: Path, tmp_path: Path) -> Path:
    """A copy of the paper's record, which is of that format."""
    shutil.copy(root / "results" / "paper" / "results.sqlite", tmp_path)
    with sqlite3.connect(tmp_path / "results.sqlite") as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    return tmp_path


def _as_recorded(folder: Path) -> pd.DataFrame:
    with sqlite3.connect(folder / "results.sqlite") as connection:
        return pd.read_sql(
            "SELECT dataset, upper(model) AS model, aggregation, features, fold, "
            "test_acc AS test_score, val_acc AS val_score, "
            "best_epoch FROM folds JOIN cells ON id = cell ORDER BY cell, fold",
            connection,
        )


def test_they_are_read_as_they_are_and_left_alone(earlier: Path) -> None:
    before = (earlier / "results.sqlite").read_bytes()
    expected = _as_recorded(earlier)
    folds = read_folds(earlier)
    pd.testing.assert_frame_equal(folds[expected.columns.tolist()], expected, check_exact=True)
    assert list(read_provenance(earlier)["data (SHA-256)"]) == sorted(set(expected["dataset"]))  # type: ignore[call-overload]
    assert (earlier / "results.sqlite").read_bytes() == before


def test_all_cells_of_the_paper_are_found_finished(earlier: Path, tu_dir: Path) -> None:
    cells = identify(preset("paper", seeds=(0, 1)), tu_dir).cells
    assert {cell.key for cell in cells} == finished(earlier)


def test_a_file_that_is_opened_to_be_written_is_brought_to_this_format(earlier: Path) -> None:
    expected = read_folds(earlier)
    with Store(earlier) as store:
        assert len(store.finished()) == 2 * 196
        assert store._connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with Store(earlier):  # a second time there is nothing to do
        pass
    pd.testing.assert_frame_equal(read_folds(earlier), expected, check_exact=True)
    assert query(earlier, "PRAGMA user_version") == [{"user_version": 3}]


def test_its_tables_are_those_of_a_new_file(earlier: Path, tmp_path: Path) -> None:
    with Store(earlier), Store(tmp_path / "new"):
        pass
    for table in ("sessions", "datasets", "cells", "folds", "scores", "signals"):
        sql = f"SELECT name, type, pk FROM pragma_table_info('{table}')"
        assert query(earlier, sql) == query(tmp_path / "new", sql)


def test_a_change_that_fails_leaves_the_file_as_it_was(
    earlier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _as_recorded(earlier)

    def broken(_: sqlite3.Connection) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gnn_vpa.experiments._sqlite._make_tables", broken)
    with pytest.raises(KeyboardInterrupt):
        Store(earlier)
    pd.testing.assert_frame_equal(_as_recorded(earlier), before)


def test_the_same_data_by_two_names_become_one(
    earlier: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with sqlite3.connect(earlier / "results.sqlite") as connection:
        connection.execute(
            "UPDATE datasets SET checksum = (SELECT checksum FROM datasets WHERE name = 'MUTAG') "
            "WHERE name = 'PTC'"
        )
    with caplog.at_level(logging.WARNING, "gnn_vpa"):
        folds = read_folds(earlier)
    assert "GIN+sum on PTC is left out: on the same data there is GIN+sum on MUTAG" in caplog.text
    assert not folds.duplicated(
        ["dataset", "model", "aggregation", "variant", "options", "features", "fold", "seed"]
    ).any()
    assert "PTC" not in set(folds["dataset"])


# Format 2 ---------------------------------------------------------------------------------------

_FORMAT_2 = """
CREATE TABLE sessions (id INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT,
    host TEXT NOT NULL, device TEXT NOT NULL, "commit" TEXT, versions TEXT NOT NULL,
    configuration TEXT NOT NULL);
CREATE TABLE datasets (content TEXT PRIMARY KEY, name TEXT NOT NULL, nodes INTEGER NOT NULL,
    edges INTEGER NOT NULL, classes INTEGER);
CREATE TABLE cells (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL REFERENCES datasets, model TEXT NOT NULL, aggregation TEXT NOT NULL,
    variant TEXT NOT NULL, features TEXT NOT NULL, options TEXT NOT NULL,
    num_folds INTEGER NOT NULL, seed INTEGER NOT NULL, epochs INTEGER, batch_size INTEGER,
    learning_rate REAL, session INTEGER NOT NULL REFERENCES sessions);
CREATE TABLE folds (cell INTEGER NOT NULL REFERENCES cells, fold INTEGER NOT NULL,
    best_epoch INTEGER NOT NULL, train_loss REAL, val_acc REAL, test_acc REAL,
    status TEXT NOT NULL CHECK (status IN ('done', 'diverged')), diverged_epoch INTEGER,
    seconds REAL NOT NULL, device TEXT NOT NULL, curve_train_loss BLOB NOT NULL,
    curve_val_acc BLOB NOT NULL, curve_test_acc BLOB NOT NULL, PRIMARY KEY (cell, fold));
CREATE TABLE signals (cell INTEGER NOT NULL REFERENCES cells, place INTEGER NOT NULL,
    layer TEXT NOT NULL, variance REAL, backward_variance REAL, distance REAL,
    PRIMARY KEY (cell, place));
INSERT INTO sessions VALUES (1, '2026-01-01', NULL, 'host', 'cpu', NULL, '{}', '{}');
INSERT INTO datasets VALUES ('5b996644', 'toy', 9, 12, 2);
INSERT INTO cells VALUES (1, '20dd3dbe8473ec41', '5b996644', 'gin', 'vpa', 'released', 'auto',
    '{}', 10, 0, 200, 64, 0.001, 1);
INSERT INTO cells VALUES (2, '983e7bc92f5db226', '5b996644', 'wl', '', '', 'auto',
    '{}', 10, 0, NULL, NULL, NULL, 1);
INSERT INTO folds VALUES (1, 0, 3, 0.5, 0.75, 0.625, 'done', NULL, 2.0, 'cpu',
    x'0000003f', x'0000403f', x'0000203f');
INSERT INTO folds VALUES (1, 1, 0, NULL, NULL, NULL, 'diverged', 4, 2.0, 'cpu',
    x'0000c07f', x'0000c07f', x'0000c07f');
INSERT INTO folds VALUES (2, 0, 0, NULL, 0.5, 0.25, 'done', NULL, 1.0, 'cpu', x'', x'', x'');
INSERT INTO signals VALUES (1, 0, 'convs.0', 1.0, 0.5, 0.25);
PRAGMA application_id = 1735815265;
PRAGMA user_version = 2;
"""


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Results of format 2, with keys that gnn-vpa of that time has made."""
    with closing(sqlite3.connect(tmp_path / "results.sqlite")) as connection:
        connection.executescript(_FORMAT_2)
    return tmp_path


def test_results_of_format_2_are_read_with_the_same_numbers_and_left_alone(second: Path) -> None:
    before = (second / "results.sqlite").read_bytes()
    folds = read_folds(second)
    assert folds["model"].tolist() == ["GIN", "GIN", "WL"]
    assert folds["val_score"].tolist()[::2] == [0.75, 0.5]
    assert folds["test_score"].tolist()[::2] == [0.625, 0.25]
    assert folds["test_accuracy"].tolist()[::2] == [0.625, 0.25]
    assert folds["test_score"].isna().tolist() == [False, True, False]
    assert set(folds["metric"]) == {"accuracy"}
    assert folds["higher_is_better"].all()
    assert (folds["repeat"] == 0).all()
    assert folds["chosen"].isna().all()
    assert read_curves(second)["test_score"].tolist()[0] == 0.625
    assert read_signals(second)["variance"].tolist() == [1.0]
    assert (second / "results.sqlite").read_bytes() == before


def test_cells_of_format_2_have_the_keys_of_seeds_made_of_names(second: Path) -> None:
    cells = [
        Cell("toy", Task("gin", "vpa"), content="5b996644"),
        Cell("toy", Task("wl", "", ""), None, content="5b996644"),
    ]
    assert finished(second) == {cell.key_by(1) for cell in cells}
    with Store(second) as store:
        assert store.finished() == {cell.key_by(1) for cell in cells}
        assert store._connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_tables_of_format_2_become_those_of_a_new_file(second: Path, tmp_path: Path) -> None:
    with Store(second), Store(tmp_path / "new"):
        pass
    for table in ("sessions", "datasets", "cells", "folds", "scores", "signals"):
        sql = f"SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{table}')"
        assert query(second, sql) == query(tmp_path / "new", sql)
