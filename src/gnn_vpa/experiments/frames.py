"""A run's results as frames, in the form that the analysis takes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..baselines import BASELINES
from ..training import METRICS, Protocol
from ._sqlite import damaged
from .cell import Cell
from .groups import shortened
from .identity import labels
from .signals import Signal
from .store import FILE, dataset_names, query, query_tuples

if TYPE_CHECKING:
    import pandas as pd

_METHOD = (
    *("dataset", "model", "aggregation", "variant", "options", "protocol", "features"),
    "division",
)
_KEYS = (*_METHOD, "fold", "seed", "repeat")
_MEASURED = (
    *("metric", "higher_is_better", "best_epoch", "train_loss", "val_score", "test_score"),
    *("status", "diverged_epoch", "chosen", "epochs", "batch_size", "learning_rate", "num_folds"),
    *("seconds", "device", "classes", "source", "test_per_train"),
)
_CURVES = {"train_loss": "train_loss", "val": "val_score", "test": "test_score"}
_CONFIGURATION = (
    *("model", "aggregation", "variant", "options", "features", "num_folds", "repeat", "seed"),
    *("division", "metric", *asdict(Protocol())),
)
_PROTOCOL = {
    "epochs": "{} epochs",
    "num_folds": "{} folds",
    "batch_size": "batches of {}",
    "learning_rate": "learning rate {}",
    "weight_decay": "weight decay {}",
    "optimizer": "optimiser {}",
    "schedule": "{} schedule",
    "patience": "patience {}",
    "clip": "gradients clipped at {}",
    "loss": "loss {}",
    "class_weight": "{} classes",
    "precision": "rows in {}",
    "choice": "{}",
}
_OF_FOLDS = ("num_folds",)  # of baselines too, which have no protocol
_SHORTEST = 4  # digits of a hash that are shown


def read_folds(
    folder: str | Path, *, candidates: bool = False, keys: Collection[str] | None = None
) -> pd.DataFrame:
    """Return a row for each finished fold, accuracies and other shares as fractions.

    `val_score` and `test_score` are of the metric that chose the epoch, `metric`; each metric that
    the data have is also in a column of its own, such as `test_roc_auc`. `repeat` says which of
    several shufflings a fold belongs to.

    Where settings were chosen from, `chosen` has what was chosen in the fold, as JSON; its scores
    are means over the final runs, as are its loss, its best epoch (rounded) and its curves (as far
    as the shortest run goes). What was chosen from are the candidates; they are not among the rows.

    The column `num_folds` has how many folds were asked for, `classes` how many classes the data
    set has, where that is known. `source` is the hash of the source of a model of one's own; where
    one name has had several, the hash follows the name. Where the folds are not the paper's,
    `division` names how they were made, and `test_per_train` has their test graphs for each
    training graph.

    The column `options` has what was given to the models beside the variant, by name. Where the
    run holds several protocols, `protocol` has what is not the paper's, so that nothing is averaged
    that does not belong together; `epochs`, `batch_size` and `learning_rate` have the numbers.

    Args:
        folder: The run's folder.
        candidates: Return the settings that were chosen from, and nothing else.
        keys: Return the folds of these cells alone (`Cell.key`).

    Example:
        >>> import tempfile
        >>> from gnn_vpa.experiments import Store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).__exit__(None, None, None)
        ...     list(read_folds(folder))[:4]
        ['dataset', 'model', 'aggregation', 'variant']
    """
    import pandas as pd

    rows = _rows(folder, candidates)
    rows = [row for row in rows if keys is None or row["key"] in keys]
    tested = _scores(folder, rows)
    folds = pd.DataFrame(rows, columns=[*_KEYS, *_MEASURED, *tested])
    numbers = ["train_loss", "val_score", "test_score", "seconds", "learning_rate"]
    numbers += ["test_per_train", *tested]
    return folds.astype(dict.fromkeys(numbers, float)).astype(
        dict.fromkeys(["diverged_epoch", "epochs", "batch_size", "num_folds", "classes"], "Int64")
        | {"higher_is_better": bool}
    )


def _scores(folder: str | Path, rows: list[dict[str, Any]]) -> list[str]:
    """Add the test scores by all metrics to the rows of folds, and return their columns."""
    by_fold = {(row["cell"], row["fold"]): row for row in rows}
    found: dict[str, None] = {}
    for cell, fold, metric, test in query_tuples(
        folder, "SELECT cell, fold, metric, test FROM scores"
    ):
        if (row := by_fold.get((cell, fold))) is not None:
            row[f"test_{metric}"] = test
            found[metric] = None
    return [f"test_{name}" for name in METRICS if name in found]


def read_curves(folder: str | Path, *, of: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return a row for each fold and epoch: training loss, validation and test score.

    Args:
        folder: The run's folder.
        of: Some rows of `read_folds`: return the curves of these folds alone.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.experiments import Store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).__exit__(None, None, None)
        ...     list(read_curves(folder))[-4:]
        ['epoch', 'train_loss', 'val_score', 'test_score']
    """
    import pandas as pd

    rows = _rows(folder)
    if of is not None:
        wanted = set(of[[*_KEYS]].itertuples(index=False, name=None))
        rows = [row for row in rows if tuple(row[key] for key in _KEYS) in wanted]
    curves = {
        name: [_curve(folder, row, stored) for row in rows] for stored, name in _CURVES.items()
    }
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
    signals = pd.DataFrame(rows, columns=[*_METHOD, *Signal._fields])
    # Seeds and folds make other trainings of the same method.
    signals = signals.drop_duplicates([*_METHOD, "layer"], ignore_index=True)
    return signals.astype(dict.fromkeys(Signal._fields[1:], float))


def read_ceilings(folder: str | Path) -> dict[tuple[str, str], float]:
    """Return the best accuracy that any network can have, by data set and node features.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.experiments import Store
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Store(folder).__exit__(None, None, None)
        ...     read_ceilings(folder)
        {}
    """
    called = labels(dataset_names(folder))
    return {
        (called[row["content"]], row["features"]): row["correct"] / row["graphs"]
        for row in query(folder, "SELECT * FROM ceilings")
        if row["content"] in called
    }


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
    cells = [cell | _settings(folder, cell) for cell in query(folder, _ALL_CELLS)]
    usual = asdict(Protocol()) | {"repeat": 0, "metric": "accuracy"}
    always = ("epochs", "batch_size", "learning_rate")
    configuration = {
        name.removeprefix("num_").replace("_", " "): list(values)
        for name in _CONFIGURATION
        if (values := dict.fromkeys(c[name] for c in cells if c[name] not in (None, "", "{}")))
        and (name in always or list(values) != [usual.get(name)])
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
        "versions": read_mapping(folder, row["versions"], "versions of a session"),
        "configuration": read_mapping(folder, row["configuration"], "configuration of a session"),
    }


def read_mapping(folder: str | Path, text: Any, what: str) -> dict[str, Any]:
    """Read a JSON object that the store has written.

    Raises:
        GnnVpaError: The text is something else, so that the file is damaged; ``what`` says where.

    Example:
        >>> read_mapping("runs/a", '{"width": 4}', "options of a cell")
        {'width': 4}
    """
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


_ALL_CELLS = "SELECT cells.*, classes FROM cells JOIN datasets USING (content) ORDER BY id"


def _settings(folder: str | Path, cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a cell was trained, by name; nothing where a setting was chosen in each fold."""
    names = asdict(Protocol())
    if cell["protocol"] is None:
        return dict.fromkeys(names) | {"metric": cell["metric"], "choice": None}
    given = read_mapping(folder, cell["protocol"], "protocol of a cell")
    chosen: dict[str, Any] = {"choice": None}
    if cell["selection"] is not None:
        selection = read_mapping(folder, cell["selection"], "choices of a cell")
        settings = [{**names, **tried["protocol"]} for tried in selection["settings"]]
        chosen = dict.fromkeys(n for n in names if len({tried[n] for tried in settings}) > 1)
        count, runs = len(settings), selection["final_runs"]
        chosen["choice"] = (
            f"chosen from {count} setting{'s' if count > 1 else ''}, "
            f"{runs} final run{'s' if runs > 1 else ''}"
        )
    return {**names, **given, **chosen, "metric": cell["metric"]}


def _cells(folder: str | Path, candidates: bool = False) -> dict[int, dict[str, Any]]:
    """Read cells by number, each with its keys as the analysis names them."""
    everything = query(folder, _ALL_CELLS)
    tried = _candidates(folder, everything)
    cells = [cell for cell in everything if (cell["key"] in tried) == candidates]
    called = labels(dataset_names(folder))
    models = _model_names(cells)
    how = {cell["id"]: _settings(folder, cell) for cell in cells}
    for cell in cells:
        cell |= how[cell["id"]] | {"higher_is_better": METRICS[cell["metric"]].higher_is_better}
    usual = {"num_folds": Cell.folds, **asdict(Protocol()), "choice": None}
    trained = [cell for cell in cells if cell["protocol"] is not None]
    varying = [
        name
        for name in _PROTOCOL
        if len({cell[name] for cell in (cells if name in _OF_FOLDS else trained)}) > 1
    ]
    for cell in cells:
        unusual = [
            _PROTOCOL[name].format(cell[name])
            for name in varying
            if cell[name] not in (None, "", usual[name])
        ]
        names = _names(folder, cell, unusual) | {"model": models[cell["model"], cell["source"]]}
        cell |= {"dataset": called[cell["content"]], **names}
    return {cell["id"]: cell for cell in cells}


def _candidates(folder: str | Path, cells: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the keys of the cells that settings were chosen from."""
    return {
        key
        for cell in cells
        if cell["selection"] is not None
        for key in read_mapping(folder, cell["selection"], "choices of a cell")["candidates"]
    }


def _model_names(cells: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return what models are called: with a hash where one name has had several sources."""
    sources: dict[str, set[str]] = {}
    for cell in cells:
        sources.setdefault(cell["model"], set()).add(cell["source"])
    names = {}
    for model, known in sources.items():
        digits = next(n for n in range(_SHORTEST, 65) if len({s[:n] for s in known}) == len(known))
        for source in known:
            shown = f"{model}@{source[:digits]}" if len(known) > 1 else model
            names[model, source] = shown if source else model.upper()
    return names


def _rows(folder: str | Path, candidates: bool = False) -> list[dict[str, Any]]:
    """Read folds, each with its cell."""
    folds = query(folder, "SELECT * FROM folds ORDER BY cell, fold")
    cells = _cells(folder, candidates)
    # Another process may have recorded more in between.
    rows = [cells[fold["cell"]] | fold for fold in folds if fold["cell"] in cells]
    for row in rows:
        is_asked = row["division"] and row["test_graphs"]  # of the paper's it is known
        row["test_per_train"] = row["test_graphs"] / row["train_graphs"] if is_asked else None
    return rows


def _names(folder: str | Path, cell: Mapping[str, Any], unusual: list[str]) -> dict[str, str]:
    given = read_mapping(folder, cell["options"], "options of a cell")
    options = ", ".join(f"{name}={value}" for name, value in sorted(given.items()))
    names = {"options": options, "protocol": ", ".join(unusual)}
    if cell["model"] in BASELINES:
        # It goes with every setting, so that its number of folds must tell it apart here.
        return names | {"aggregation": names["protocol"], "protocol": ""}
    return names
