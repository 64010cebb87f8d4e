"""A run's results as frames, in the form that the analysis takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..training import Protocol, Task
from ._sqlite import damaged
from .baselines import BASELINES
from .cell import Cell
from .groups import shortened
from .identity import labels
from .signals import Signal, late_signals
from .store import FILE, dataset_names, query

if TYPE_CHECKING:
    import pandas as pd

_METHOD = ("dataset", "model", "aggregation", "variant", "options", "protocol", "features")
_KEYS = (*_METHOD, "fold", "seed")
_MEASURED = (
    *("best_epoch", "train_loss", "val_acc", "test_acc", "status", "diverged_epoch"),
    *("epochs", "batch_size", "learning_rate", "num_folds", "seconds", "device", "classes"),
)
_CURVES = ("train_loss", "val_acc", "test_acc")
_CONFIGURATION = (
    *("model", "aggregation", "variant", "options", "features", "num_folds", "seed"),
    *("epochs", "batch_size", "learning_rate"),
)
_PROTOCOL = {
    "epochs": "{} epochs",
    "num_folds": "{} folds",
    "batch_size": "batches of {}",
    "learning_rate": "learning rate {}",
}


def read_folds(folder: str | Path) -> pd.DataFrame:
    """Return a row for each finished fold, accuracies as fractions.

    The column `num_folds` has how many folds were asked for, `classes` how many classes the data
    set has, where that is known.

    The column `options` has what was given to the models beside the variant, by name. Where the
    run holds several protocols, `protocol` has what is not the paper's, so that nothing is averaged
    that does not belong together; `epochs`, `batch_size` and `learning_rate` have the numbers.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.experiments import Store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).__exit__(None, None, None)
        ...     list(read_folds(folder))[:4]
        ['dataset', 'model', 'aggregation', 'variant']
    """
    import pandas as pd

    folds = pd.DataFrame(_rows(folder), columns=[*_KEYS, *_MEASURED])
    numbers = ["train_loss", "val_acc", "test_acc", "seconds", "learning_rate"]
    return folds.astype(dict.fromkeys(numbers, float)).astype(
        dict.fromkeys(["diverged_epoch", "epochs", "batch_size", "num_folds", "classes"], "Int64")
    )


def read_curves(folder: str | Path) -> pd.DataFrame:
    """Return a row for each fold and epoch: training loss, validation and test accuracy.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.experiments import Store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).__exit__(None, None, None)
        ...     list(read_curves(folder))[-4:]
        ['epoch', 'train_loss', 'val_acc', 'test_acc']
    """
    import pandas as pd

    rows = _rows(folder)
    curves = {name: [_curve(folder, row, name) for row in rows] for name in _CURVES}
    lengths = [len(curve) for curve in curves["train_loss"]]
    keys = pd.DataFrame(rows, columns=[*_KEYS])
    frame = keys.loc[np.repeat(keys.index, lengths)].reset_index(drop=True)
    frame["epoch"] = np.concatenate([np.arange(0), *(np.arange(length) for length in lengths)])
    nothing = np.empty(0, "<f4")
    return frame.assign(**{name: np.concatenate([nothing, *of]) for name, of in curves.items()})


def read_signals(folder: str | Path) -> pd.DataFrame:
    """Return a row for each method, data set and message-passing layer: the signal at the start.

    That is the variance of what the layer returns, that of the gradient that comes back to it,
    and the mean distance of neighbours.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.experiments import Store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).__exit__(None, None, None)
        ...     list(read_signals(folder))[-3:]
        ['variance', 'backward_variance', 'distance']
    """
    import pandas as pd

    cells = _cells(folder)
    stored = query(folder, "SELECT * FROM signals ORDER BY cell, place")
    rows = [cells[signal["cell"]] | signal for signal in stored if signal["cell"] in cells]
    rows += _late(folder, cells)
    signals = pd.DataFrame(rows, columns=[*_METHOD, *Signal._fields])
    # Seeds and folds make other trainings of the same method.
    signals = signals.drop_duplicates([*_METHOD, "layer"], ignore_index=True)
    return signals.astype(dict.fromkeys(Signal._fields[1:], float))


def read_provenance(folder: str | Path) -> dict[str, object]:
    """Return what a run was made with: configuration, data, and each session's circumstances.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.experiments import Store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).__exit__(None, None, None)
        ...     read_provenance(folder)
        {'configuration': {}, 'data (SHA-256)': {}, 'sessions': {}}
    """
    cells = query(
        folder, "SELECT cells.*, classes FROM cells JOIN datasets USING (content) ORDER BY id"
    )
    configuration = {
        name.removeprefix("num_").replace("_", " "): list(values)
        for name in _CONFIGURATION
        if (values := dict.fromkeys(c[name] for c in cells if c[name] not in (None, "", "{}")))
    }
    datasets = sorted((name, content) for content, name in labels(dataset_names(folder)).items())
    if "seed" in configuration:
        configuration["seed"] = shortened(configuration["seed"])
    sessions = query(
        folder,
        "SELECT * FROM sessions WHERE id IN (SELECT session FROM cells) ORDER BY id",
    )
    return {
        "configuration": configuration,
        "data (SHA-256)": dict(datasets),
        "sessions": {str(row.pop("id")): _session(folder, row) for row in sessions},
    }


def _session(folder: str | Path, row: dict[str, Any]) -> dict[str, object]:
    return {
        **{name: value for name, value in row.items() if value is not None},
        "versions": _mapping(folder, row["versions"], "versions of a session"),
        "configuration": _mapping(folder, row["configuration"], "configuration of a session"),
    }


def _mapping(folder: str | Path, text: Any, what: str) -> dict[str, Any]:
    """Read a JSON object that the store has written."""
    try:
        content = json.loads(text)
    except (TypeError, ValueError):  # a damaged file may also hold another type
        content = None
    if not isinstance(content, dict):
        raise damaged(Path(folder) / FILE, f"the {what} are no JSON object")
    return content


def _curve(folder: str | Path, row: Mapping[str, Any], name: str) -> np.ndarray:
    """Read a curve that the store has written: a number for each epoch, as many as the others."""
    content, size = row[f"curve_{name}"], len(row["curve_train_loss"])
    if not isinstance(content, bytes) or len(content) != size or size % 4:
        raise damaged(
            Path(folder) / FILE,
            f"the curve {name} of cell {row['cell']}, fold {row['fold']} is not whole",
        )
    return np.frombuffer(content, "<f4")


def _cells(folder: str | Path) -> dict[int, dict[str, Any]]:
    """Read all cells by number, each with its keys as the analysis names them."""
    cells = query(
        folder, "SELECT cells.*, classes FROM cells JOIN datasets USING (content) ORDER BY id"
    )
    called = labels(dataset_names(folder))
    usual = {"num_folds": Cell.folds, **asdict(Protocol())}
    varying = [name for name in _PROTOCOL if len({cell[name] for cell in cells} - {None}) > 1]
    for cell in cells:
        unusual = [
            _PROTOCOL[name].format(cell[name])
            for name in varying
            if cell[name] not in (None, usual[name])
        ]
        cell |= {"dataset": called[cell["content"]], **_names(folder, cell, unusual)}
    return {cell["id"]: cell for cell in cells}


def _rows(folder: str | Path) -> list[dict[str, Any]]:
    """Read all folds, each with its cell."""
    folds = query(folder, "SELECT * FROM folds ORDER BY cell, fold")
    cells = _cells(folder)
    # Another process may have recorded more in between.
    return [cells[fold["cell"]] | fold for fold in folds if fold["cell"] in cells]


def _late(folder: str | Path, cells: Mapping[int, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the signals of cells that an old run, or one that was ended, has none of."""
    methods: dict[tuple[str, str], dict[Task, int]] = {}
    for row in query(
        folder,
        "SELECT cells.*, name AS dataset FROM cells JOIN datasets USING (content) "
        "WHERE epochs IS NOT NULL AND id NOT IN (SELECT cell FROM signals) ORDER BY id",
    ):
        if row["id"] in cells:
            of_data = methods.setdefault((row["dataset"], row["content"]), {})
            of_data.setdefault(Cell.of_row(row).task, row["id"])
    for (name, content), of_data in methods.items():
        for task, signals in late_signals(name, content, of_data).items():
            yield from (cells[of_data[task]] | signal._asdict() for signal in signals)


def _names(folder: str | Path, cell: Mapping[str, Any], unusual: list[str]) -> dict[str, str]:
    given = _mapping(folder, cell["options"], "options of a cell")
    options = ", ".join(f"{name}={value}" for name, value in sorted(given.items()))
    names = {"model": cell["model"].upper(), "options": options, "protocol": ", ".join(unusual)}
    if cell["model"] in BASELINES:
        # It goes with every setting, so that its number of folds must tell it apart here.
        return names | {"aggregation": names["protocol"], "protocol": ""}
    return names
