"""From the earlier format of the results to the present one.

There a cell belonged to the name of a data set, and each name to one content, which was recorded.
Here a cell belongs to the content itself, so that one name may stand for several.
"""

import logging
import sqlite3
from collections.abc import Callable

from .cell import Cell

EARLIER = 1
"""The format that is brought to the present one."""

_log = logging.getLogger("gnn_vpa")


def upgrade(
    connection: sqlite3.Connection, make_tables: Callable[[sqlite3.Connection], None]
) -> None:
    """Change an open results file, within a transaction and without checks of foreign keys."""
    cursor = connection.execute(
        "SELECT cells.*, checksum FROM cells JOIN datasets ON name = dataset ORDER BY name, id"
    )
    columns = [column for column, *_ in cursor.description]
    by_key: dict[str, Cell] = {}
    for values in cursor.fetchall():
        row = dict(zip(columns, values, strict=True))
        cell = Cell.of_row(row | {"content": row["checksum"]})
        if (same := by_key.setdefault(cell.key, cell)) is not cell:
            _log.warning("%s is left out: on the same data there is %s already", cell, same)
            connection.execute("DELETE FROM folds WHERE cell = ?", (row["id"],))
            connection.execute("DELETE FROM cells WHERE id = ?", (row["id"],))
            continue
        connection.execute(
            "UPDATE cells SET key = ?, dataset = ? WHERE id = ?",
            (cell.key, row["checksum"], row["id"]),
        )
    connection.execute("ALTER TABLE cells RENAME COLUMN dataset TO content")
    datasets = connection.execute(
        "SELECT checksum, name, nodes, edges, NULL FROM datasets"  # it knew nothing of classes
    ).fetchall()
    connection.execute("DROP TABLE datasets")
    make_tables(connection)
    connection.executemany(
        # One content may have had several names; the first by alphabet stands for all.
        "INSERT INTO datasets VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (content) DO UPDATE SET name = min(name, excluded.name)",
        datasets,
    )
