"""Results that survive: one SQLite file a run."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from ..errors import UsageError
from ..graphs import Ceiling, GraphSet, kind_of
from ..training import Outcome
from . import _sqlite
from .cell import Cell
from .groups import first_fold
from .provenance import Where
from .signals import Signal

FILE = "results.sqlite"
"""The results' name in the folder of a run."""


class Result(NamedTuple):
    """What came of a cell.

    Attributes:
        cell: The cell.
        outcomes: One for each of its folds.
        chosen: Where settings were chosen from, which one in each fold, by name.
        sizes: Number of training and of test graphs of each fold.

    Example:
        >>> from gnn_vpa.training import Task
        >>> Result(Cell("MUTAG", Task("gin", "vpa")), []).chosen is None
        True
    """

    cell: Cell
    outcomes: Sequence[Outcome]
    chosen: Sequence[Mapping[str, object]] | None = None
    sizes: Sequence[tuple[int | None, int | None]] | None = None


class Store:
    """The results of a run, `results.sqlite` in its folder.

    What was run in one go is recorded whole or not at all. Several processes may write to one file.

    Args:
        folder: The run's folder, made where it is not there.

    Raises:
        UsageError: The folder is a file.
        GnnVpaError: The file is none of ours, of another format, or cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Store(folder) as store:
        ...     store.finished()
        set()
    """

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(f"{error.filename} is a file: name a folder for the results") from None
        self.path = folder / FILE
        self._connection = _sqlite.connect(self.path, create=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def finished(self) -> set[str]:
        """Return the keys of the cells that are recorded."""
        with _sqlite.explained(self.path):
            return {key for (key,) in self._connection.execute("SELECT key FROM cells")}

    def is_finished(self, key: str) -> bool:
        """Say whether a cell is recorded."""
        with _sqlite.explained(self.path):
            found = self._connection.execute("SELECT 1 FROM cells WHERE key = ?", (key,))
            return found.fetchone() is not None

    def finished_since(self, number: int) -> list[tuple[int, str]]:
        """Return number and key of the cells recorded after the one of this number; 0 for all.

        Numbers ascend: cells are recorded one transaction after the other, and only `forget`
        removes them.
        """
        with _sqlite.explained(self.path):
            sql = "SELECT id, key FROM cells WHERE id > ? ORDER BY id"
            return self._connection.execute(sql, (number,)).fetchall()

    def forget(self, keys: Iterable[str]) -> None:
        """Remove what is recorded of cells, so that they are run again."""
        rows = [(key,) for key in keys]
        cell = "(SELECT id FROM cells WHERE key = ?)"
        with _sqlite.explained(self.path), _sqlite.transaction(self._connection):
            for table in ("scores", "folds", "signals"):
                self._connection.executemany(f"DELETE FROM {table} WHERE cell = {cell}", rows)
            self._connection.executemany("DELETE FROM cells WHERE key = ?", rows)

    def begin(
        self, device: str, configuration: Mapping[str, object], where: Where | None = None
    ) -> int:
        """Record that a session of work starts, and with what; return its number.

        Args:
            device: What is trained on, in words.
            configuration: What was asked for.
            where: The machine and what it has; None: this one.
        """
        where = where or Where.here()
        values = {
            "started": _now(),
            "host": where.host,
            "device": device,
            "commit": where.commit,
            "versions": json.dumps(where.versions),
            "configuration": json.dumps(configuration),
        }
        with _sqlite.explained(self.path), _sqlite.transaction(self._connection):
            return self._insert("sessions", values)

    def end(self, session: int) -> None:
        """Record that a session of work came to its end."""
        with _sqlite.explained(self.path), _sqlite.transaction(self._connection):
            self._connection.execute(
                "UPDATE sessions SET finished = ? WHERE id = ?", (_now(), session)
            )

    def register(self, name: str, graphs: GraphSet) -> None:
        """Record a data set; one content has one name, the first by alphabet."""
        classes = graphs.num_classes if kind_of(graphs.y) == "classes" else None
        sizes = (graphs.num_nodes, graphs.num_edges, classes)
        values = (graphs.checksum(), name, *sizes)
        with _sqlite.explained(self.path), _sqlite.transaction(self._connection):
            self._connection.execute(
                "INSERT INTO datasets VALUES (?, ?, ?, ?, ?) ON CONFLICT (content) "
                "DO UPDATE SET name = min(name, excluded.name), classes = excluded.classes",
                values,
            )

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all that is recorded within, or nothing: one wait for the disk, not many."""
        with _sqlite.explained(self.path), _sqlite.transaction(self._connection):
            yield

    def record(
        self,
        results: Iterable[Result],
        *,
        session: int,
        seconds: float,
        device: str,
    ) -> None:
        """Record all folds of cells that were run in one go, in one transaction.

        Args:
            results: What was run, its data set registered.
            session: From `begin`.
            seconds: What a whole cell took. Folds are trained side by side, so that each gets an
                equal share.
            device: What it ran on.
        """
        with _sqlite.explained(self.path), _sqlite.transaction(self._connection):
            for cell, outcomes, chosen, sizes in results:
                number = self._insert("cells", {**_description(cell), "session": session})
                first, count = first_fold(cell), len(outcomes)
                nothing: list[None] = [None] * count
                graphs = sizes or [(None, None)] * count
                for outcome, choice, (train, test) in zip(
                    outcomes, chosen or nothing, graphs, strict=True
                ):
                    # Within the results folds are counted anew in each repeat.
                    place = {"cell": number, "fold": outcome.fold - first}
                    more = {
                        "seconds": seconds / count,
                        "device": device,
                        "chosen": None if choice is None else json.dumps(choice),
                        "train_graphs": train,
                        "test_graphs": test,
                    }
                    self._insert("folds", {**place, **_fold(outcome), **more})
                    for name, (valid, tested) in outcome.scores.items():
                        row = {"metric": name, "valid": float(valid), "test": float(tested)}
                        self._insert("scores", {**place, **row})

    def validation_scores(self, key: str) -> list[float]:
        """Return the validation scores of a recorded cell's folds, NaN for one that diverged.

        Nothing else of a cell may choose between settings: test scores are not looked at.
        """
        sql = "SELECT val_score FROM folds JOIN cells ON id = cell WHERE key = ? ORDER BY fold"
        with _sqlite.explained(self.path):
            rows = self._connection.execute(sql, (key,)).fetchall()
        return [float("nan") if score is None else score for (score,) in rows]

    def ceilings(self) -> set[tuple[str, str]]:
        """Return the data, by content, and the node features whose best accuracy is recorded."""
        with _sqlite.explained(self.path):
            return set(self._connection.execute("SELECT content, features FROM ceilings"))

    def add_ceiling(self, content: str, features: str, best: Ceiling) -> None:
        """Record the best accuracy that any network can have on registered data."""
        values = (content, features, best.rounds, best.right, best.graphs)
        with _sqlite.explained(self.path), _sqlite.transaction(self._connection):
            # Another process may have found the same.
            self._connection.execute(
                "INSERT OR IGNORE INTO ceilings VALUES (?, ?, ?, ?, ?)", values
            )

    def without_signals(self) -> set[str]:
        """Return the keys of the recorded cells whose signal at the start is not."""
        sql = "SELECT key FROM cells WHERE id NOT IN (SELECT cell FROM signals)"
        with _sqlite.explained(self.path):
            return {key for (key,) in self._connection.execute(sql)}

    def add_signals(self, cells: Iterable[Cell], signals: Sequence[Signal]) -> None:
        """Record the signal that recorded cells of one method start with, beside their folds."""
        columns = ", ".join(Signal._fields)
        marks = ", ".join("?" * len(Signal._fields))
        # Another process may have measured the same.
        sql = (
            f"INSERT OR IGNORE INTO signals (cell, place, {columns}) "
            f"SELECT id, ?, {marks} FROM cells WHERE key = ?"
        )
        rows = [
            (place, *signal, cell.key) for cell in cells for place, signal in enumerate(signals)
        ]
        with _sqlite.explained(self.path), _sqlite.transaction(self._connection):
            self._connection.executemany(sql, rows)

    def _insert(self, table: str, values: Mapping[str, object]) -> int:
        columns = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join("?" * len(values))
        cursor = self._connection.execute(
            f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(values.values())
        )
        return int(cursor.lastrowid or 0)


def query(folder: str | Path, sql: str) -> list[dict[str, Any]]:
    """Read from a run's results, also while it goes on and where nothing may be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).__exit__(None, None, None)
        ...     query(folder, "SELECT count(*) AS cells FROM cells")
        [{'cells': 0}]
    """
    path = Path(folder) / FILE
    with closing(_sqlite.connect(path, create=False)) as connection, _sqlite.explained(path):
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(sql)]


def query_if_any(folder: str | Path, sql: str) -> list[dict[str, Any]]:
    """Do as `query`; nothing comes of a folder without results.

    Example:
        >>> query_if_any("no/such/run", "SELECT key FROM cells")
        []
    """
    return query(folder, sql) if (Path(folder) / FILE).exists() else []


def query_tuples(folder: str | Path, sql: str) -> list[tuple[Any, ...]]:
    """Do as `query`, for many rows: without the names of columns.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).__exit__(None, None, None)
        ...     query_tuples(folder, "SELECT count(*) FROM cells")
        [(0,)]
    """
    path = Path(folder) / FILE
    with closing(_sqlite.connect(path, create=False)) as connection, _sqlite.explained(path):
        return connection.execute(sql).fetchall()


def dataset_names(folder: str | Path) -> dict[str, str]:
    """Return what the data sets of a run's results are called by themselves, by content.

    Example:
        >>> dataset_names("no/such/run")
        {}
    """
    sql = "SELECT content, name FROM datasets WHERE content IN (SELECT content FROM cells)"
    return {row["content"]: row["name"] for row in query_if_any(folder, sql)}


def finished(folder: str | Path) -> set[str]:
    """Return the keys of a run's finished cells; none where there is no run.

    Example:
        >>> finished("no/such/run")
        set()
    """
    return {row["key"] for row in query_if_any(folder, "SELECT key FROM cells")}


def fold_scores(folder: str | Path, cell: Cell) -> list[float]:
    """Return the test scores of a finished cell's folds, without those that diverged.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.training import Task
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).__exit__(None, None, None)
        ...     fold_scores(folder, Cell("MUTAG", Task("gin", "vpa"), content="5b996644"))
        []
    """
    rows = query(
        folder,
        "SELECT test_score FROM folds JOIN cells ON id = cell "
        f"WHERE key = '{cell.key}' AND status = 'done' ORDER BY fold",
    )
    return [row["test_score"] for row in rows]


def _description(cell: Cell) -> dict[str, object]:
    task = cell.task
    protocol = cell.protocol and cell.protocol.settings()
    if cell.selection is not None:  # each fold has its own: what all of them have is the cell's
        common = cell.selection.common()
        protocol = {name: value for name, value in (protocol or {}).items() if name in common}
    usual = protocol or {}
    return {
        "key": cell.key,
        "content": cell.content,
        "model": task.model,
        "aggregation": task.aggr,
        "variant": task.variant,
        "features": task.features,
        "options": json.dumps(dict(task.options)),
        "num_folds": cell.folds,
        "seed": cell.seed,
        **{name: usual.get(name) for name in ("epochs", "batch_size", "learning_rate")},
        "source": task.source,
        "protocol": None if protocol is None else json.dumps(protocol),
        "metric": cell.metric,
        "repeat": cell.repeat,
        "division": cell.division.name,
        "selection": None if cell.selection is None else json.dumps(_choices(cell)),
    }


def _choices(cell: Cell) -> dict[str, object]:
    assert cell.selection is not None
    keys = [candidate.key for candidate in cell.candidates()]
    return {**cell.selection.described(), "candidates": keys}


def _fold(outcome: Outcome) -> dict[str, object]:
    curves = ("curve_train_loss", "curve_val", "curve_test")
    return {
        "best_epoch": outcome.best_epoch,
        "train_loss": float(outcome.train_loss),
        "val_score": float(outcome.val_score),
        "test_score": float(outcome.test_score),
        "status": "done" if outcome.diverged_epoch is None else "diverged",
        "diverged_epoch": outcome.diverged_epoch,
        **{name: getattr(outcome, name).astype("<f4").tobytes() for name in curves},
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
