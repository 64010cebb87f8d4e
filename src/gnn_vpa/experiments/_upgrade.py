"""From earlier formats of the results to the present one, step by step.

In format 1 a cell belonged to the name of a data set, and each name to one content, which was
recorded. From format 2 on a cell belongs to the content itself, so that one name may stand for
several. Format 3 knows models of one's own, other targets than classes, more of a protocol, and
choices: what was there before are accuracies of the paper's protocol.
"""

import json
import logging
import sqlite3
from collections.abc import Callable
from typing import Any

from .cell import Cell

EARLIER = (1, 2)
"""The formats that are brought to the present one."""

_log = logging.getLogger("gnn_vpa")

_CELLS = (
    "source TEXT NOT NULL DEFAULT ''",
    "protocol TEXT",
    "metric TEXT NOT NULL DEFAULT 'accuracy'",
    "repeat INTEGER NOT NULL DEFAULT 0",
    "division TEXT NOT NULL DEFAULT ''",
    "selection TEXT",
)
_FOLDS = ("chosen TEXT", "train_graphs INTEGER", "test_graphs INTEGER")
_RENAMED = {
    "val_acc": "val_score",
    "test_acc": "test_score",
    "curve_val_acc": "curve_val",
    "curve_test_acc": "curve_test",
}


def upgrade(
    connection: sqlite3.Connection,
    version: int,
    make_tables: Callable[[sqlite3.Connection], None],
) -> None:
    """Change an open results file, within a transaction and without checks of foreign keys."""
    if version == 1:
        _belong_to_contents(connection)
    _know_more(connection)
    make_tables(connection)
    connection.execute(
        "INSERT INTO scores SELECT cell, fold, 'accuracy', val_score, test_score FROM folds"
    )


def _belong_to_contents(connection: sqlite3.Connection) -> None:
    """From format 1 to format 2."""
    cursor = connection.execute(
        "SELECT cells.*, checksum FROM cells JOIN datasets ON name = dataset ORDER BY name, id"
    )
    columns = [column for column, *_ in cursor.description]
    by_key: dict[str, Cell] = {}
    for values in cursor.fetchall():
        row = dict(zip(columns, values, strict=True))
        cell = Cell.of_row({**row, **_present(row), "content": row["checksum"]})
        key = cell.key_by(1)
        if (same := by_key.setdefault(key, cell)) is not cell:
            _log.warning("%s is left out: on the same data there is %s already", cell, same)
            connection.execute("DELETE FROM folds WHERE cell = ?", (row["id"],))
            connection.execute("DELETE FROM cells WHERE id = ?", (row["id"],))
            continue
        connection.execute(
            "UPDATE cells SET key = ?, dataset = ? WHERE id = ?",
            (key, row["checksum"], row["id"]),
        )
    connection.execute("ALTER TABLE cells RENAME COLUMN dataset TO content")
    datasets = connection.execute(
        "SELECT checksum, name, nodes, edges, NULL FROM datasets"  # it knew nothing of classes
    ).fetchall()
    connection.execute("DROP TABLE datasets")
    connection.execute(
        "CREATE TABLE datasets (content TEXT PRIMARY KEY, name TEXT NOT NULL, "
        "nodes INTEGER NOT NULL, edges INTEGER NOT NULL, classes INTEGER)"
    )
    connection.executemany(
        # One content may have had several names; the first by alphabet stands for all.
        "INSERT INTO datasets VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (content) DO UPDATE SET name = min(name, excluded.name)",
        datasets,
    )


def _know_more(connection: sqlite3.Connection) -> None:
    """From format 2 to format 3."""
    for column in _CELLS:
        connection.execute(f"ALTER TABLE cells ADD COLUMN {column}")
    for column in _FOLDS:
        connection.execute(f"ALTER TABLE folds ADD COLUMN {column}")
    for before, after in _RENAMED.items():
        connection.execute(f"ALTER TABLE folds RENAME COLUMN {before} TO {after}")
    cursor = connection.execute("SELECT id, epochs, batch_size, learning_rate FROM cells")
    columns = [column for column, *_ in cursor.description]
    for values in cursor.fetchall():
        row = dict(zip(columns, values, strict=True))
        connection.execute(
            "UPDATE cells SET protocol = ? WHERE id = ?", (_present(row)["protocol"], row["id"])
        )


def _present(row: dict[str, Any]) -> dict[str, Any]:
    """Return what the present format has of an earlier cell beside its own columns."""
    protocol = {name: row[name] for name in ("epochs", "batch_size", "learning_rate")}
    return {
        "source": "",
        "protocol": None if row["epochs"] is None else json.dumps(protocol),
        "metric": "accuracy",
        "repeat": 0,
        "division": "",
    }
