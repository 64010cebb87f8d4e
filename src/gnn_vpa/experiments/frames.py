"""A run's results as frames, in the form that the analysis takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..training import Protocol
from .baselines import BASELINES
from .cell import Cell
from .groups import shortened
from .store import query

if TYPE_CHECKING:
    import pandas as pd

_KEYS = ("dataset", "model", "aggregation", "variant", "features", "fold", "seed")
_MEASURED = (
    *("best_epoch", "train_loss", "val_acc", "test_acc", "status", "diverged_epoch"),
    *("epochs", "seconds", "device"),
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

    Where the run holds several protocols, the variant names what is not the paper's, so that
    nothing is averaged that does not belong together.

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
    numbers = ["train_loss", "val_acc", "test_acc", "seconds"]
    return folds.astype(dict.fromkeys(numbers, float)).astype(
        dict.fromkeys(["diverged_epoch", "epochs"], "Int64")
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
    curves = {
        name: [np.frombuffer(row[f"curve_{name}"], "<f4") for row in rows] for name in _CURVES
    }
    lengths = [len(curve) for curve in curves["train_loss"]]
    keys = pd.DataFrame(rows, columns=[*_KEYS])
    frame = keys.loc[np.repeat(keys.index, lengths)].reset_index(drop=True)
    frame["epoch"] = np.concatenate([np.arange(0), *(np.arange(length) for length in lengths)])
    nothing = np.empty(0, "<f4")
    return frame.assign(**{name: np.concatenate([nothing, *of]) for name, of in curves.items()})


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
    cells = query(folder, "SELECT * FROM cells ORDER BY id")
    configuration = {
        name.removeprefix("num_").replace("_", " "): list(values)
        for name in _CONFIGURATION
        if (values := dict.fromkeys(c[name] for c in cells if c[name] not in (None, "", "{}")))
    }
    if "seed" in configuration:
        configuration["seed"] = shortened(configuration["seed"])
    datasets = query(folder, "SELECT name, checksum FROM datasets ORDER BY name")
    sessions = query(
        folder,
        "SELECT * FROM sessions WHERE id IN (SELECT session FROM cells) ORDER BY id",
    )
    return {
        "configuration": configuration,
        "data (SHA-256)": {row["name"]: row["checksum"] for row in datasets},
        "sessions": {str(row.pop("id")): _session(row) for row in sessions},
    }


def _session(row: dict[str, Any]) -> dict[str, object]:
    return {
        **{name: value for name, value in row.items() if value is not None},
        "versions": json.loads(row["versions"]),
        "configuration": json.loads(row["configuration"]),
    }


def _rows(folder: str | Path) -> list[dict[str, Any]]:
    """Read all folds, each with its keys as the analysis names them."""
    rows = query(folder, "SELECT * FROM folds JOIN cells ON id = cell ORDER BY cell, fold")
    usual = {"num_folds": Cell.folds, **asdict(Protocol())}
    varying = [name for name in _PROTOCOL if len({row[name] for row in rows} - {None}) > 1]
    for row in rows:
        unusual = [
            _PROTOCOL[name].format(row[name])
            for name in varying
            if row[name] not in (None, usual[name])
        ]
        row |= _names(row, unusual)
    return rows


def _names(row: Mapping[str, Any], unusual: list[str]) -> dict[str, str]:
    options = [f"{name}={value:g}" for name, value in json.loads(row["options"]).items()]
    model = row["model"].upper()
    if row["model"] in BASELINES:
        # It goes with every variant, so that its number of folds must tell it apart here.
        return {"model": model, "aggregation": ", ".join(unusual)}
    return {"model": model, "variant": ", ".join([row["variant"], *options, *unusual])}
