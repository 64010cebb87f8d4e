"""Which data sets somebody means who calls from Python."""

import os
from collections.abc import Mapping
from dataclasses import replace

from torch_geometric.data import Data, Dataset

from ..errors import UsageError
from ..graphs import GraphSet, load


def data_sets(asked: object) -> list[str | GraphSet]:
    """Return data sets as `expand` takes them.

    Args:
        asked: A name, a path, `module:function`, a `GraphSet`, PyG `Data` objects or a data set of
            PyG; several of them; or several by the names that they are to have.

    Raises:
        UsageError: It is something else; the message names it.

    Example:
        >>> data_sets("MUTAG"), data_sets(["MUTAG", "PTC"])
        (['MUTAG'], ['MUTAG', 'PTC'])
        >>> import torch
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=0)
        >>> data_sets({"pairs": [pair, pair]})
        [GraphSet('pairs', graphs=2, classes=1, nodes=4, edges=4)]
    """
    if isinstance(asked, Data):
        raise UsageError("datasets: this is a single graph: give a list of them")
    if isinstance(asked, str | os.PathLike | GraphSet | Dataset):
        return [_one(asked)]
    if isinstance(asked, Mapping):
        return [_named(name, graphs) for name, graphs in asked.items()]
    try:
        several = list(asked)  # type: ignore[call-overload]
    except TypeError:
        raise UsageError(
            "datasets: expected a name, a path, module:function, a GraphSet, a list of PyG Data "
            f"objects or a data set of PyG, or several of these, got {type(asked).__name__}"
        ) from None
    if not several:
        raise UsageError("datasets: there is none: name one, or give its graphs")
    if any(isinstance(item, Data) for item in several):
        return [load(several)]
    return [_one(item) for item in several]


def _one(asked: object) -> str | GraphSet:
    if isinstance(asked, str | os.PathLike):
        return str(os.fspath(asked))
    return load(asked)  # type: ignore[arg-type]  # it refuses what it does not know


def _named(name: object, graphs: object) -> GraphSet:
    if not isinstance(name, str) or not name:
        raise UsageError(f"datasets: {name!r} must be a name, a text")
    return replace(load(graphs), name=name)  # type: ignore[arg-type]
