"""Which data sets somebody means who calls from Python."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, cast

from ..errors import UsageError
from ..graphs import GraphSet, TargetKind, load
from ..graphs.targets import KINDS
from ..spelling import listed
from .cell import Target
from .methods import known


def model_list(asked: object) -> list[str | Callable[..., Any]]:
    """Return models as `expand` takes them: names, also in a text with commas, and functions.

    Raises:
        UsageError: There is something else among them.

    Example:
        >>> model_list("gin,gcn"), model_list(["gin", "gcn"])
        (['gin', 'gcn'], ['gin', 'gcn'])
    """
    if isinstance(asked, str):
        return [*listed(asked, "models")]
    if callable(asked):
        return [asked]
    if not isinstance(asked, Iterable):
        raise UsageError(f"models: expected a name or several, got {asked!r}")
    found: list[str | Callable[..., Any]] = []
    for model in asked:
        if isinstance(model, str):
            found += listed(model)
        elif callable(model):
            found.append(model)
        else:
            raise UsageError(f"models: expected names, but there is {model!r} among them")
    return found


def target_of(column: str | None, task: str) -> Target:
    """Return what is to be learned, from the names that somebody has written.

    Raises:
        UsageError: There is no such task.

    Example:
        >>> target_of("homo", "Regression")
        Target(column='homo', kind='regression')
    """
    kind = known("task", task, ("auto", *KINDS))
    return Target(column, cast("TargetKind | Literal['auto']", kind))


def data_sets(asked: object, target: Target | None = None) -> list[str | GraphSet]:
    """Return data sets as `expand` takes them.

    Args:
        asked: A name, a path, `module:function`, a `GraphSet`, PyG `Data` objects or a data set of
            PyG; several of them; or several by the names that they are to have.
        target: What of those in memory is learned; of others it is asked for later.

    Raises:
        UsageError: It is something else; the message names it.

    Example:
        >>> data_sets("MUTAG"), data_sets(["MUTAG", "PTC"])
        (['MUTAG'], ['MUTAG', 'PTC'])
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=0)
        >>> data_sets({"pairs": [pair, pair]})
        [GraphSet('pairs', graphs=2, classes=1, nodes=4, edges=4)]
    """
    learned = target or Target()
    if isinstance(asked, str | os.PathLike | GraphSet):
        return [_one(asked, learned)]
    from torch_geometric.data import Data, Dataset  # it loads slowly, and names need none of it

    if isinstance(asked, Data):
        raise UsageError("datasets: this is a single graph: give a list of them")
    if isinstance(asked, Dataset):
        return [_one(asked, learned)]
    if isinstance(asked, Mapping):
        return [_named(name, graphs, learned) for name, graphs in asked.items()]
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
        return [_load(several, learned)]
    return [_one(item, learned) for item in several]


def _one(asked: object, target: Target) -> str | GraphSet:
    if isinstance(asked, str | os.PathLike):
        return str(os.fspath(asked))
    return _load(asked, target)


def _named(name: object, graphs: object, target: Target) -> GraphSet:
    if not isinstance(name, str) or not name:
        raise UsageError(f"datasets: {name!r} must be a name, a text")
    return replace(_load(graphs, target, name), name=target.name_of(name))


def _load(asked: Any, target: Target, called: str | None = None) -> GraphSet:
    # It refuses what it does not know.
    return load(asked, target=target.column, kind=target.kind, called=called)
