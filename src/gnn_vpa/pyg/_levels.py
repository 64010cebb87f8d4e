"""What each attribute of a PyG graph belongs to: its nodes, its edges, or the graph as a whole.

PyG goes by the length alone: a ``y`` of as many entries as there are edges is one of edges to it.
That is right for labels of edges, and wrong for as many labels of the graph, so that here a name
must say it, or the user.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.storage import E_KEYS, N_KEYS
from torch_geometric.typing import TensorFrame

from ..errors import UsageError
from ..ops.internal import check_device

Level = Literal["node", "edge", "graph"]
Levels = Mapping[str, Level]  # by the name of the attribute

_LEVELS: tuple[Level, ...] = get_args(Level)
_APART = ("edge_index", "num_nodes")  # what the others are attributes of
_OF_NODES = N_KEYS | {"z"}  # z: the atomic numbers of molecules


def checked_levels(levels: Levels | None) -> dict[str, Level]:
    """Return what a user says of attributes; raise if it is nothing that can be said."""
    if levels is None:
        return {}
    if not isinstance(levels, Mapping) or not all(
        isinstance(key, str) and level in _LEVELS for key, level in levels.items()
    ):
        raise UsageError(
            "levels: expected names of attributes with 'node', 'edge' or 'graph' for each, such as "
            f"{{'y': 'graph'}}, got {levels!r}."
        )
    return dict(levels)


def levels_of(
    data: Data, counts: Mapping[Level, int], said: Levels, asked: Sequence[Level]
) -> dict[str, Level]:
    """Say what each attribute belongs to; raise where it cannot be told.

    Args:
        data: The graph.
        counts: How many edges it has, and how many nodes if that is known.
        said: What the user says.
        asked: The levels that matter: an attribute that may be of one of them, and may not, is
            refused. Only with two entries or more: a single one is in order anyway.
    """
    names = [key for key in data.keys() if key not in _APART]  # noqa: SIM118 (no mapping)
    found: dict[str, Level] = {}
    for key in names:
        level = said.get(key) or _by_name(key, names)
        entries = _entries(data, key)
        if key in said or key in E_KEYS | N_KEYS:
            assert level is not None
            _check_length(data[key], key, entries, level, counts)
        fits = [of for of, count in counts.items() if entries == count]
        if level is None:
            level = _by_length(key, entries, fits, counts, asked)
        found[key] = level if level in fits else "graph"
    return found


def check_rows(data: Data, keys: Iterable[str], level: Level) -> None:
    """Raise unless these attributes are tensors whose rows can be put in another order."""
    for key in keys:
        value = data[key]
        if not isinstance(value, Tensor) or value.layout != torch.strided:
            got = "a sparse one" if isinstance(value, Tensor) else type(value).__name__
            raise UsageError(
                f"{key}: expected a dense tensor with an entry for each {level}, got {got}. Turn "
                f"it into one, remove it, or say levels={{{key!r}: 'graph'}} to leave it as it is."
            )
        check_device(key, value, data.edge_index.device)


def holds_nodes(key: str, value: Any) -> bool:
    """Tell whether an attribute holds numbers of nodes, which PyG goes by the name for."""
    if key != "face" and "index" not in key:
        return False
    if isinstance(value, Tensor):
        return value.dtype != torch.bool and not value.is_floating_point()
    return type(value) is int


def is_matrix(data: Data, key: str) -> bool:
    """Tell whether an attribute is a matrix of nodes by nodes: PyG puts those along a diagonal."""
    return isinstance(data.__cat_dim__(key, data[key]), tuple)


def _by_name(key: str, names: Collection[str]) -> Level | None:
    """Return what a name says of an attribute that has the length for it, if anything."""
    if key in E_KEYS:
        return "edge"
    if key in _OF_NODES:
        return "node"
    if "merged_index" in names and key in ("merged_index", "times"):  # of MergeAlike
        return "node" if key == "times" else "graph"
    if "edge_label_index" in names and key.startswith("edge_label"):  # pairs to be predicted
        return "graph"
    others = [name for name in names if "edge" in name and "index" in name]
    is_of_others = any(name != "edge_label_index" for name in others)
    if "index" in key or ("edge" in key) == ("node" in key):
        return None
    if "node" in key:
        return "node"
    return None if is_of_others else "edge"


def _by_length(
    key: str,
    entries: int | None,
    fits: Sequence[Level],
    counts: Mapping[Level, int],
    asked: Sequence[Level],
) -> Level:
    """Say what an attribute belongs to whose name does not: of one entry, or none, to the graph."""
    if entries is None or entries < 2 or not set(fits) & set(asked):
        return "graph"
    if key.endswith("mask") and len(counts) == 2 and len(fits) == 1:
        return fits[0]  # no mask is of the whole graph
    as_many = " and ".join(f"{level}s" for level in fits)
    other = " or ".join(map(repr, [*fits[1:], "graph"]))
    raise UsageError(
        f"{key}: has {entries} entries, as many as the graph has {as_many}, and may be about these "
        f"or about the whole graph. Say which: levels={{{key!r}: {fits[0]!r}}}, or {other}. If it "
        f"is about the whole graph, the shape [1, {entries}] says so too."
    )


def _entries(data: Data, key: str) -> int | None:
    """Return how many entries an attribute has, as PyG puts those of graphs in a row."""
    value = data[key]
    if isinstance(value, list | tuple | TensorFrame):
        return len(value)
    if not isinstance(value, Tensor | np.ndarray) or value.ndim == 0:
        return None
    dim = data.__cat_dim__(key, value)
    return int(value.shape[dim]) if isinstance(dim, int) else None


def _check_length(
    value: Any, key: str, entries: int | None, level: Level, counts: Mapping[Level, int]
) -> None:
    count = counts.get(level)
    if count is None or entries == count:
        return
    shape = getattr(value, "shape", None)
    got = f"shape {list(shape)}" if shape is not None else f"{type(value).__name__}"
    raise UsageError(
        f"{key}: expected an entry for each of the {count} {level}s, got {got}. Mend it, remove "
        f"it, or say what it is about: levels={{{key!r}: 'graph'}}."
    )
