"""A results file on the disk: opening it, its format, and its errors in words."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import gnn_vpa

from ..errors import GnnVpaError, UsageError
from .locks import no_locks, not_exclusive

FORMAT = 3
_APPLICATION = int.from_bytes(b"gvpa")
_PATIENCE_S = 60.0
_LOCK_ERRORS = (
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
    sqlite3.SQLITE_IOERR_UNLOCK,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
)

_SCHEMA = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    started TEXT NOT NULL,
    finished TEXT,
    host TEXT NOT NULL,
    device TEXT NOT NULL,
    "commit" TEXT,
    versions TEXT NOT NULL,
    configuration TEXT NOT NULL
);
CREATE TABLE datasets (
    content TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    nodes INTEGER NOT NULL,
    edges INTEGER NOT NULL,
    classes INTEGER
);
CREATE TABLE ceilings (
    content TEXT NOT NULL REFERENCES datasets,
    features TEXT NOT NULL,
    rounds INTEGER NOT NULL,
    correct INTEGER NOT NULL,
    graphs INTEGER NOT NULL,
    PRIMARY KEY (content, features)
);
CREATE TABLE cells (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL REFERENCES datasets,
    model TEXT NOT NULL,
    aggregation TEXT NOT NULL,
    variant TEXT NOT NULL,
    features TEXT NOT NULL,
    options TEXT NOT NULL,
    num_folds INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    epochs INTEGER,
    batch_size INTEGER,
    learning_rate REAL,
    session INTEGER NOT NULL REFERENCES sessions,
    source TEXT NOT NULL,
    protocol TEXT,
    metric TEXT NOT NULL,
    repeat INTEGER NOT NULL,
    division TEXT NOT NULL,
    selection TEXT
);
CREATE TABLE folds (
    cell INTEGER NOT NULL REFERENCES cells,
    fold INTEGER NOT NULL,
    best_epoch INTEGER NOT NULL,
    train_loss REAL,
    val_score REAL,
    test_score REAL,
    status TEXT NOT NULL CHECK (status IN ('done', 'diverged')),
    diverged_epoch INTEGER,
    seconds REAL NOT NULL,
    device TEXT NOT NULL,
    curve_train_loss BLOB NOT NULL,
    curve_val BLOB NOT NULL,
    curve_test BLOB NOT NULL,
    chosen TEXT,
    train_graphs INTEGER,
    test_graphs INTEGER,
    PRIMARY KEY (cell, fold)
);
CREATE TABLE scores (
    cell INTEGER NOT NULL,
    fold INTEGER NOT NULL,
    metric TEXT NOT NULL,
    valid REAL,
    test REAL,
    PRIMARY KEY (cell, fold, metric),
    FOREIGN KEY (cell, fold) REFERENCES folds
) WITHOUT ROWID;
CREATE TABLE signals (
    cell INTEGER NOT NULL REFERENCES cells,
    place INTEGER NOT NULL,
    layer TEXT NOT NULL,
    variance REAL,
    backward_variance REAL,
    distance REAL,
    PRIMARY KEY (cell, place)
);
"""


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open a results file and check that it is one; `create` it where it is not there.

    A file without content is one that is about to be created, or that a full disk or a kill kept
    from it: `create` completes it, and to a reader it holds no results.

    The journal is a rollback journal and not a write-ahead log: the results are then one file,
    whole at every moment, that can be copied, and read in a folder that is not writable. A
    transaction ends on the disk before the call returns (synchronous=FULL, and EXTRA for the
    folder's entry).
    """
    if not create and not path.is_file():
        raise UsageError(
            f"there are no results in {path.parent}: {path} does not exist. Name the folder that "
            "gnn-vpa run or reproduce has written to (they say it in the end)."
        )
    # To read is to open for writing too, so that what a killed process left half-written can be
    # rolled back; where that is not allowed, SQLite itself falls back to reading alone.
    mode = "rwc" if create else "rw"
    with explained(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_PATIENCE_S,
            isolation_level=None,
        )
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            if create:
                _create(connection)
            is_made = _is_made(connection, path)
            if is_made:
                _check_columns(connection, path)
            connection.execute("PRAGMA foreign_keys = ON")
            if not create:
                connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
    if not is_made:
        connection.close()
        return _nothing()
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all of it or nothing, and alone; what is part of a larger whole is done with that."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say in words what SQLite's errors mean for the results."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code in _LOCK_ERRORS:
            raise GnnVpaError(no_locks(path.parent, error)) from error
        if code == sqlite3.SQLITE_CONSTRAINT_UNIQUE:  # a cell that another has recorded meanwhile
            why = "by a process that has recorded the same cell"
            raise GnnVpaError(not_exclusive(path.parent, why)) from error
        match code & 0xFF:
            case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
                text = f"cannot write {path}, the disk is full or failing"
                advice = "what was finished before is kept: make room, then type the same again"
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
                text = f"cannot write {path}"
                advice = (
                    "make room if the disk is full, or choose a folder that you may write to with "
                    "--out"
                )
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                text = f"{path} is no results file, or a damaged one"
                advice = "move it away, or choose another folder with --out"
            case sqlite3.SQLITE_BUSY:
                text = f"another process has kept {path} locked for {_PATIENCE_S:.0f} s"
                advice = "end it, then type the same again"
            case _:
                raise
        raise GnnVpaError(f"{text} ({error}): {advice}") from error


def _create(connection: sqlite3.Connection) -> None:
    # Two processes may come here at once: the second finds what the first has made.
    with transaction(connection):
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")


def _nothing() -> sqlite3.Connection:
    """Return results that hold nothing, in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    _create(connection)
    return connection


def _is_made(connection: sqlite3.Connection, path: Path) -> bool:
    """Say whether a file has been created, and refuse one that is not of this format."""
    connection.execute("BEGIN")  # another process may create it: look at one moment
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    found = _columns(connection)
    connection.execute("COMMIT")
    if not found and application in (0, _APPLICATION):
        return False
    if application != _APPLICATION:
        raise GnnVpaError(
            f"{path} is no results file of gnn-vpa: move it away, or choose another folder"
        )
    if version != FORMAT:
        raise GnnVpaError(
            f"{path} has format {version}, but gnn-vpa {gnn_vpa.__version__} has format {FORMAT}: "
            "use the gnn-vpa that made it, or choose another folder with --out"
        )
    return True


def _check_columns(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that lacks a part of what this format has."""
    found = _columns(connection)
    with closing(_nothing()) as nothing:
        missing = _columns(nothing) - found
    if missing:
        table, column = min(missing)
        part = f"column {column} of table {table}"
        if table not in {name for name, _ in found}:
            part = f"table {table}"
        raise damaged(path, f"it has no {part}")


def damaged(path: Path, reason: str) -> GnnVpaError:
    """Return the error for a results file whose content cannot be what was written.

    Example:
        >>> print(damaged(Path("runs/a/results.sqlite"), "it has no table folds"))
        runs/a/results.sqlite is damaged (it has no table folds): restore a copy of it, or move ...
    """
    return GnnVpaError(
        f"{path} is damaged ({reason}): restore a copy of it, or move it away and type the same "
        "again to run its cells anew"
    )


def _columns(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Return the columns of all tables, each as (table, column)."""
    return set(
        connection.execute(
            "SELECT tables.name, columns.name "
            "FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns "
            "WHERE tables.type = 'table'"
        )
    )
