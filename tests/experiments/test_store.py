"""The file that results are kept in, and what happens when it cannot be one."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import numpy as np
import pytest

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.experiments import (
    Cell,
    Result,
    Store,
    _sqlite,
    read_curves,
    read_folds,
    read_provenance,
)
from gnn_vpa.experiments.estimate import paces_of_run
from gnn_vpa.experiments.store import finished, query
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Outcome, Task

_CONTENT = "8d3c0ee1"
_CELL = Cell("toy", Task("gin", "vpa"), folds=2, content=_CONTENT)


@pytest.fixture(autouse=True)
def _short_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GraphSet, "checksum", lambda _: _CONTENT)


def _outcomes() -> list[Outcome]:
    rising = np.array([0.25, 0.5, 0.75], np.float32)
    return [Outcome.of(fold, 0, 1 - rising, rising, rising / 2) for fold in range(2)]


def _record(store: Store, toy: GraphSet) -> None:
    store.register("toy", toy)
    session = store.begin("cpu", {})
    store.record([Result(_CELL, _outcomes())], session=session, seconds=3.0, device="cpu")


def test_what_is_recorded_is_read_again(tmp_path: Path, toy: GraphSet) -> None:
    with Store(tmp_path / "new" / "run") as store:
        _record(store, toy)
        assert store.finished() == finished(tmp_path / "new" / "run") == {_CELL.key}
    folds = read_folds(tmp_path / "new" / "run")
    assert folds["best_epoch"].tolist() == [2, 2]
    assert folds["test_score"].tolist() == [0.375, 0.375]
    assert folds["seconds"].tolist() == [1.5, 1.5]
    curves = read_curves(tmp_path / "new" / "run")
    assert curves["epoch"].tolist() == [0, 1, 2] * 2
    assert curves["train_loss"].tolist() == [0.75, 0.5, 0.25] * 2


def test_a_cell_is_recorded_whole_or_not_at_all(tmp_path: Path, toy: GraphSet) -> None:
    twice = [*_outcomes(), *_outcomes()]  # the third fold collides with the first
    with Store(tmp_path) as store:
        store.register("toy", toy)
        session = store.begin("cpu", {})
        with pytest.raises(sqlite3.IntegrityError):
            store.record([Result(_CELL, twice)], session=session, seconds=1.0, device="cpu")
        assert store.finished() == set()
        store.record([Result(_CELL, _outcomes())], session=session, seconds=1.0, device="cpu")
    assert len(read_folds(tmp_path)) == 2


def test_a_finished_cell_is_not_recorded_again(tmp_path: Path, toy: GraphSet) -> None:
    with Store(tmp_path) as store:
        _record(store, toy)
        with pytest.raises(GnnVpaError, match="has recorded the same cell"):
            _record(store, toy)
    assert len(read_folds(tmp_path)) == 2


def test_a_full_disk_is_explained_and_loses_nothing(tmp_path: Path, toy: GraphSet) -> None:
    with Store(tmp_path) as store:
        _record(store, toy)
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        large = np.ones(10_000, np.float32)
        outcomes = [Outcome.of(0, 0, large, large, large)]
        more = [Result(replace(_CELL, seed=1), outcomes)]
        with pytest.raises(GnnVpaError, match=r"disk is full.* kept: make room, then type"):
            store.record(more, session=1, seconds=1.0, device="cpu")
        assert store.finished() == {_CELL.key}


@pytest.mark.parametrize("version", [1, 2, 99])
def test_a_results_file_of_another_version(tmp_path: Path, version: int) -> None:
    with Store(tmp_path) as store:
        store._connection.execute(f"PRAGMA user_version = {version}")
    for opening in (Store, read_folds):
        with pytest.raises(
            GnnVpaError, match=rf"has format {version}, but gnn-vpa .* has format 3"
        ):
            opening(tmp_path)


def test_a_file_that_is_no_results_file(tmp_path: Path) -> None:
    (tmp_path / "results.sqlite").write_text("not a database, but long enough to look like one")
    for opening in (Store, read_folds):
        with pytest.raises(GnnVpaError, match="no results file"):
            opening(tmp_path)


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "results.sqlite")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = (tmp_path / "results.sqlite").read_bytes()
    with pytest.raises(GnnVpaError, match="no results file of gnn-vpa"):
        Store(tmp_path)
    assert (tmp_path / "results.sqlite").read_bytes() == before


@pytest.mark.parametrize("inside", [(), ("deeper",)])
def test_a_folder_that_is_a_file(tmp_path: Path, inside: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file: name a folder"):
        Store(tmp_path.joinpath("file", *inside))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "results.sqlite").mkdir()  # as root, permissions would stop nothing
    with pytest.raises(GnnVpaError, match=r"cannot write .* choose a folder"):
        Store(tmp_path)


def test_no_results(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no results in"):
        read_folds(tmp_path)
    assert finished(tmp_path) == set()


def test_the_file_can_be_copied_at_any_moment(tmp_path: Path, toy: GraphSet) -> None:
    with Store(tmp_path / "a") as store:
        _record(store, toy)
        (tmp_path / "b").mkdir()
        shutil.copy(store.path, tmp_path / "b")
        assert len(read_folds(tmp_path / "b")) == 2
        assert [path.name for path in (tmp_path / "a").iterdir()] == ["results.sqlite"]


def test_reading_leaves_the_file_alone(tmp_path: Path, toy: GraphSet) -> None:
    with Store(tmp_path) as store:
        _record(store, toy)
    with pytest.raises(GnnVpaError, match="readonly"):
        query(tmp_path, "DELETE FROM folds")


def test_an_empty_file_is_one_that_is_yet_to_be_filled(tmp_path: Path, toy: GraphSet) -> None:
    (tmp_path / "results.sqlite").touch()  # as a full disk leaves it
    assert finished(tmp_path) == set()
    assert paces_of_run(tmp_path, "cpu") == []
    assert read_folds(tmp_path).empty
    assert read_curves(tmp_path).empty
    with Store(tmp_path) as store:
        _record(store, toy)
    assert len(read_folds(tmp_path)) == 2


def test_a_file_that_another_process_is_creating_holds_no_results(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "results.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE sessions (id)")
        assert finished(tmp_path) == set()
        assert paces_of_run(tmp_path, "cpu") == []


_STARTS = """
import os, time, traceback
from gnn_vpa.experiments.estimate import paces_of_run
from gnn_vpa.experiments.store import Store, finished

for run in range(10):
    folder, begin = os.path.join(here, str(run)), time.time() + 0.05
    children = []
    for _ in range(8):
        if not (child := os.fork()):
            try:
                time.sleep(max(0, begin - time.time()))
                for _ in range(3):  # as the command line does: it looks, then it starts
                    paces_of_run(folder, "cpu"), finished(folder)
                with Store(folder) as store:
                    assert store.finished() == finished(folder) == set()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1]]
    assert not failed, f"{len(failed)} of {len(children)}"
"""


def test_processes_may_start_at_once_in_a_new_folder(
    tmp_path: Path, in_process: Callable[..., ForkServerProcess]
) -> None:
    process = in_process(exec, _STARTS, {"here": str(tmp_path)})
    process.join()
    assert process.exitcode == 0  # if not, what it says is among the errors of all tests


def _damage(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "results.sqlite")) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize("table", ["sessions", "datasets", "cells", "folds"])
def test_a_missing_table_is_named(tmp_path: Path, toy: GraphSet, table: str) -> None:
    with Store(tmp_path) as store:
        _record(store, toy)
    _damage(tmp_path, f"DROP TABLE {table}")
    for opening in (Store, read_folds, read_curves, read_provenance, finished):
        with pytest.raises(GnnVpaError, match=rf"results.sqlite is damaged .*no table {table}\)"):
            opening(tmp_path)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    Store(tmp_path).__exit__(None, None, None)
    _damage(tmp_path, "ALTER TABLE folds DROP COLUMN val_score")
    with pytest.raises(GnnVpaError, match="no column val_score of table folds"):
        read_folds(tmp_path)


@pytest.mark.parametrize(
    ("statement", "reading"),
    [
        ("UPDATE cells SET options = '{'", read_folds),
        ("UPDATE cells SET options = 'null'", read_curves),
        ("UPDATE sessions SET versions = '[1]'", read_provenance),
        ("UPDATE sessions SET configuration = x'ff'", read_provenance),
        ("UPDATE folds SET curve_test = x'00'", read_curves),
        ("UPDATE folds SET curve_val = 'text of 12 b'", read_curves),
    ],
)
def test_bad_content_is_said_to_be_damage(
    tmp_path: Path, toy: GraphSet, statement: str, reading: Callable[[Path], object]
) -> None:
    with Store(tmp_path) as store:
        _record(store, toy)
    _damage(tmp_path, statement)
    with pytest.raises(GnnVpaError, match=r"results.sqlite is damaged .*: restore a copy"):
        reading(tmp_path)


def test_a_file_that_ends_early(tmp_path: Path, toy: GraphSet) -> None:
    with Store(tmp_path) as store:
        _record(store, toy)
    content = (tmp_path / "results.sqlite").read_bytes()
    for size in (50, 100, 512, 4096, len(content) - 4096):
        (tmp_path / "results.sqlite").write_bytes(content[:size])
        for opening in (Store, read_folds):
            with pytest.raises(GnnVpaError, match=r"damaged.* move it away"):
                opening(tmp_path)


def test_a_file_system_without_locks_is_named(tmp_path: Path) -> None:
    error = sqlite3.OperationalError("locking protocol")
    error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
    with (
        pytest.raises(GnnVpaError, match=r"files cannot be locked in .*--out"),
        _sqlite.explained(tmp_path / "results.sqlite"),
    ):
        raise error
