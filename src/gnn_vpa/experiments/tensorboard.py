"""Learning curves for TensorBoard: a run of it for each fold, written while it is trained.

The package `tensorboard` writes the records; it is imported here alone, and only if it is asked
for. Its own writer starts a thread for each run, and there may be hundreds at once: here a file is
opened, added to and closed.
"""

import json
import logging
import os
import platform
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UsageError
from ..training import Outcome
from ..training.task import Curves
from .cell import Cell
from .groups import Group, first_fold
from .progress import Grown, Progress
from .store import query

_log = logging.getLogger("gnn_vpa")
_UNSAFE = re.compile(r"[^\w.+=,() -]")
_LONGEST = 100  # characters of a folder's name
_files = count()


class TensorBoard(Progress):
    """Writes the learning curves of what is trained, and what came out.

    Each fold of a cell is a run of TensorBoard's, in a folder of its own: the training loss, the
    validation and the test score by epoch, the scores of the chosen epoch, and the settings as
    hyperparameters. A fold that goes on after an interruption is written anew, from its first
    epoch on.

    Attributes:
        folder: What TensorBoard is told to show: `tensorboard --logdir FOLDER`.

    Raises:
        UsageError: TensorBoard is not installed, or the folder cannot be used.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.training import Protocol, Task
        >>> cell = Cell("MUTAG", Task("gin", "vpa"), Protocol(epochs=2), 10, content="5b996644")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     TensorBoard(folder).curves(Group((cell,)), [Grown(cell, 3, np.ones((3, 2)))])
        ...     [path.parent.name for path in Path(folder).rglob("events.out.tfevents.*")]
        ['fold 3']
    """

    def __init__(self, folder: str | Path) -> None:
        if find_spec("tensorboard") is None:
            raise UsageError(
                "TensorBoard is not installed, whose files are asked for: pip install "
                "'gnn-vpa[tracking]' (or tensorboard)"
            )
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"nothing can be written for TensorBoard to {folder} ({error.strerror}): name "
                "another folder"
            ) from error
        self._files: dict[tuple[str, int], _File] = {}

    def curves(self, group: Group, grown: Sequence[Grown]) -> None:
        """Write the epochs that are new."""
        for cell, fold, curves in grown:
            if cell.selection is None:  # of several final runs the mean is written in the end
                self._file(cell, fold).add(curves)

    def tell(
        self,
        worker: str,
        group: Group | None,
        epoch: int | None = None,
        grown: Iterable[Grown] = (),
        *,
        device: str = "",
    ) -> None:
        """Write the epochs that are new of what another worker trains."""
        if group is not None:
            self.curves(group, list(grown))

    def finish(self, cell: Cell, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Write the rest of the curves, and what came out."""
        for outcome in outcomes:
            fold = outcome.fold - first_fold(cell)
            file = self._file(cell, fold)
            if cell.protocol is not None:
                parts = outcome.curve_train_loss, outcome.curve_val, outcome.curve_test
                file.add(np.stack([part.astype(np.float32) for part in parts]))
            diverged = outcome.diverged_epoch is not None
            file.end(outcome.best_epoch, outcome.val_score, outcome.test_score, diverged)
            del self._files[cell.key, fold]

    def complete(self, cells: Iterable[Cell], out: str | Path) -> None:
        """Write what the results have of cells and this folder has not.

        That is what was finished before, or by processes that were not asked for it.
        """
        cells = list(cells)
        missing = {cell.key: cell for cell in cells if not self.place(cell).exists()}
        if not missing:
            return
        for row in query(
            out,
            "SELECT key, fold, best_epoch, val_score, test_score, train_loss, diverged_epoch, "
            "cells.seed, curve_train_loss, curve_val, curve_test "
            "FROM folds JOIN cells ON cells.id = cell ORDER BY cell, fold",
        ):
            if (cell := missing.get(row["key"])) is not None:
                self.finish(cell, [_outcome(row, first_fold(cell))], 0.0)

    def place(self, cell: Cell) -> Path:
        """Return the folder of a cell, whatever it is called."""
        name = _UNSAFE.sub("_", str(cell))[:_LONGEST].strip(" .")
        # Cells that differ in what their names do not say, such as epochs, must not be mixed.
        return self.folder / f"{name} {cell.key[:6]}"

    def _file(self, cell: Cell, fold: int) -> "_File":
        if (cell.key, fold) not in self._files:
            self._files[cell.key, fold] = _File(self.place(cell) / f"fold {fold}", cell)
        return self._files[cell.key, fold]


class CurveFile:
    """The curves of a model to keep, which is trained on all graphs and has no folds.

    Args:
        folder: What TensorBoard is told to show.
        cell: What is trained.

    Raises:
        UsageError: See `TensorBoard`.
    """

    def __init__(self, folder: str | Path, cell: Cell) -> None:
        place = TensorBoard(folder).place(cell)
        self._file = _File(place / "model", cell, has_test=False)

    def __call__(self, places: Sequence[int], curves: Sequence[Curves]) -> None:
        """Write the epochs that are new, as `gnn_vpa.training.fit` tells them."""
        for each in curves:
            self._file.add(each)


def described(cell: Cell) -> dict[str, object]:
    """Return the hyperparameters of a cell.

    Example:
        >>> from gnn_vpa.training import Task
        >>> settings = described(Cell("MUTAG", Task("gin", "vpa", options=(("width", 32),))))
        >>> settings["data"], settings["aggregation"], settings["width"], settings["epochs"]
        ('MUTAG', 'vpa', 32, 200)
    """
    protocol = {} if cell.protocol is None else cell.protocol.settings()
    return {
        "data": cell.data,
        "model": cell.model,
        "aggregation": cell.task.aggr,
        "variant": cell.task.variant,
        **dict(cell.task.options),
        **({} if cell.selection is not None else protocol),
        "seed": cell.seed,
        "repeat": cell.repeat,
    }


class _File:
    """An event file that grows."""

    def __init__(self, folder: Path, cell: Cell, *, has_test: bool = True) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb

        self._metric, self._done, self._has_test = cell.metric, 0, has_test
        settings = {name: _plain(value) for name, value in described(cell).items()}
        for path in folder.glob("events.out.tfevents.*"):
            path.unlink(missing_ok=True)  # of a process that was interrupted: the curves have all
        now = time.time()
        unique = f"{int(now):010d}.{platform.node()}.{os.getpid()}.{next(_files)}"
        self._path = folder / f"events.out.tfevents.{unique}"
        self._write(
            Event(wall_time=now, file_version="brain.Event:2"),
            # Folds of a cell are trials of one setting: TensorBoard shows their mean.
            Event(wall_time=now, summary=hparams_pb(settings, trial_id=cell.key)),
        )

    def add(self, curves: Curves) -> None:
        """Write the epochs that are not there yet."""
        if curves.shape[1] > self._done:
            names = ["train/loss", f"validation/{self._metric}", f"test/{self._metric}"]
            rows = range(3 if self._has_test else 2)
            self._write(
                *(
                    _scalars(epoch, {names[row]: curves[row, epoch] for row in rows})
                    for epoch in range(self._done, curves.shape[1])
                )
            )
            self._done = curves.shape[1]

    def end(self, epoch: int, valid: float, test: float, diverged: bool) -> None:
        """Write what came out at the chosen epoch, and that it is over."""
        scores = {f"chosen/validation_{self._metric}": valid, f"chosen/test_{self._metric}": test}
        self._write(_scalars(epoch, scores), _ended(diverged))

    def _write(self, *events: Any) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                records = RecordWriter(file)
                for event in events:
                    records.write(event.SerializeToString())
        except OSError as error:  # a full disk: the training itself needs no such file
            _log.warning("%s cannot be written (%s): training goes on", self._path, error)


def _scalars(epoch: int, values: Mapping[str, Any]) -> Any:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    summary = Summary(
        value=[Summary.Value(tag=name, simple_value=float(v)) for name, v in values.items()]
    )
    return Event(wall_time=time.time(), step=epoch, summary=summary)


def _ended(diverged: bool) -> Any:
    """Return what says to TensorBoard's hyperparameters how a training has ended."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import metadata
    from tensorboard.plugins.hparams.api_pb2 import Status
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo

    status = Status.Value("STATUS_FAILURE" if diverged else "STATUS_SUCCESS")
    end = SessionEndInfo(status=status, end_time_secs=time.time())
    value = Summary.Value(
        tag=metadata.SESSION_END_INFO_TAG,
        metadata=metadata.create_summary_metadata(HParamsPluginData(session_end_info=end)),
        tensor=metadata.NULL_TENSOR,
    )
    return Event(wall_time=time.time(), summary=Summary(value=[value]))


def _plain(value: object) -> bool | int | float | str:
    """Return what a hyperparameter may be."""
    return value if isinstance(value, bool | int | float | str) else json.dumps(value, default=str)


def _outcome(row: Mapping[str, Any], first: int) -> Outcome:
    """Return what a row of the results says of a fold."""
    loss, valid, test = (
        np.frombuffer(row[f"curve_{name}"], "<f4") for name in ("train_loss", "val", "test")
    )
    return Outcome(
        first + row["fold"],
        row["seed"],
        row["best_epoch"],
        _number(row["val_score"]),
        _number(row["test_score"]),
        _number(row["train_loss"]),
        row["diverged_epoch"],
        loss,
        valid,
        test,
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
