"""Results of the earlier format: read where they are, and gone on with."""

import logging
import shutil
import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from gnn_vpa.experiments import Store, finished, identify, preset, read_folds, read_provenance
from gnn_vpa.experiments.store import query


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
    cells = identify(preset("paper"), tu_dir).cells
    assert {cell.key for cell in cells} == finished(earlier)


def test_a_file_that_is_opened_to_be_written_is_brought_to_this_format(earlier: Path) -> None:
    expected = read_folds(earlier)
    with Store(earlier) as store:
        assert len(store.finished()) == 196
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
        ["dataset", "model", "aggregation", "variant", "options", "features", "fold"]
    ).any()
    assert "PTC" not in set(folds["dataset"])
