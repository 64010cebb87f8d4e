"""The signal that the trainings of a run started with: each method's initial weights, probed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import GnnVpaError
from .settings import KEYS, require_columns
from .style import BASELINES

if TYPE_CHECKING:
    import pandas as pd

    from ..signal import Step

METHOD = ["dataset", "model", "aggregation", "variant", "features"]
_COLUMNS = [*METHOD, "layer", "variance", "backward_variance", "distance"]


def initial_signals(
    folds: pd.DataFrame, *, data_dir: str | os.PathLike[str] | None = None, graphs: int = 16
) -> pd.DataFrame:
    """Probe every method of a run at its start, on a batch of each data set.

    Args:
        folds: a row for each finished training.
        data_dir: a folder to look for the data in first.
        graphs: how many graphs to take of each data set.

    Returns:
        A row for each method, data set and message-passing layer: the variance of what the layer
        returns, that of the gradient that comes back to it, and the mean distance of neighbours.
        Methods without layers, and data sets that are not here, have none.

    Example:
        >>> import pandas as pd
        >>> row = ["MUTAG", "GCN", "vpa", "released", "auto", 0, 0]
        >>> initial_signals(pd.DataFrame([row], columns=KEYS))["layer"].tolist()
        ['convs.0', 'convs.1', 'convs.2', 'convs.3', 'convs.4']
    """
    import pandas as pd

    require_columns(folds, KEYS)
    rows: list[dict[str, Any]] = []
    networks = folds[~folds["model"].isin(list(BASELINES))]
    for name, of_dataset in networks.groupby("dataset", sort=False):
        rows += _of_dataset(str(name), of_dataset, data_dir, graphs)
    return pd.DataFrame(rows, columns=_COLUMNS)


def _of_dataset(
    name: str, folds: pd.DataFrame, data_dir: str | os.PathLike[str] | None, count: int
) -> list[dict[str, Any]]:
    from ..graphs import load

    try:
        graphs = load(name, data_dir)
    except GnnVpaError:
        return []
    rows = []
    for method in folds[METHOD].drop_duplicates().to_dict("records"):
        for step in _layers(graphs, method, count):
            back = step.backward
            rows.append(
                {
                    **method,
                    "layer": step.name,
                    "variance": step.forward.variance,
                    "backward_variance": float("nan") if back is None else back.variance,
                    "distance": step.distance,
                }
            )
    return rows


def _layers(graphs: Any, method: dict[str, Any], count: int) -> list[Step]:
    """Return what the layers of a method return, right after its weights are drawn."""
    from ..signal import probe
    from ..signal.probing._subjects import papers_model
    from ..signal.probing._symptoms import layers_of

    variant, *details = method["variant"].split(", ")
    pairs = (detail.split("=") for detail in details if "=" in detail)
    options: dict[str, Any] = {
        key: float(value) if "." in value else int(value) for key, value in pairs
    }
    try:
        subject = papers_model(
            graphs,
            method["model"],
            method["aggregation"],
            variant=variant,
            kind=method["features"],
            size=count,
            **options,
        )
    except GnnVpaError:
        return []  # not one of the paper's models
    first = subject.lessons[0]
    return layers_of(probe(subject.model, *first.args).steps)
