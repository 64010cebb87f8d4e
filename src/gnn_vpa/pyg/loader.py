"""A ``DataLoader`` whose batches are PyG's, made in a fraction of the time."""

from collections.abc import Collection
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import get_worker_info
from torch_geometric import loader
from torch_geometric.data import Batch, Data, Dataset
from torch_geometric.data.storage import N_KEYS
from torch_geometric.loader.dataloader import Collater

_HOST = torch.device("cpu")
_RULES = Data.__inc__, Data.__cat_dim__
_INTEGERS = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


class DataLoader(loader.DataLoader):  # type: ignore[misc]
    """PyG's ``DataLoader``, several times as fast.

    PyG puts a batch together in Python, with some calls for each attribute of each graph; where
    graphs are small that is a fifth to two fifths of a training step. Here an attribute is one
    concatenation, and one addition shifts the nodes of all edges. The batches are PyG's: the same
    type, attributes and entries, and ``to_data_list`` takes them apart. Graphs that are no plain
    ``Data`` and attributes that are no plain tensors, numbers or texts are left to PyG.

    A data set of PyG copies each graph for each batch, which takes longer than the rest; pass
    ``list(dataset)`` where no transform is to run anew for every batch. Graphs that ``GroupEdges``
    has prepared make batches that arrive grouped. Parameters are those of
    ``torch_geometric.loader.DataLoader``.

    Example:
        >>> graph = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
        >>> next(iter(DataLoader([graph, graph], batch_size=2)))
        DataBatch(x=[4, 1], edge_index=[2, 4], batch=[4], ptr=[3])
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        follow_batch: list[str] | None = None,
        exclude_keys: list[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(dataset, batch_size, shuffle, follow_batch, exclude_keys, **options)
        self.collate_fn = _Collater(dataset, follow_batch, exclude_keys)


class _Collater(Collater):  # type: ignore[misc]
    """Makes a batch of a list of graphs."""

    def __call__(self, batch: list[Any]) -> Any:
        if isinstance(batch, Dataset):  # a part of one, whose graphs are made anew by each look
            batch = list(batch)
        followed, excluded = frozenset(self.follow_batch or ()), frozenset(self.exclude_keys or ())
        made = _batch(batch, followed, excluded)
        return super().__call__(batch) if made is None else made


@cache
def _class_of_batches() -> type:
    """Return PyG's class of batches; made when it is needed, as its name is taken from then on."""
    return type(Batch(_base_cls=Data))


class _Slices:
    """Where the entries of each graph lie in a batch."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths  # of each graph
        self.ends = np.zeros(len(lengths) + 1, dtype=np.int64)  # and where the first begins
        np.cumsum(lengths, out=self.ends[1:])

    def spread(self, values: NDArray[np.int64], device: torch.device) -> Tensor:
        """Repeat each graph's value for all of its entries, ``[graphs]`` to ``[entries]``."""
        return torch.from_numpy(np.repeat(values, self.lengths)).to(device)

    def owners(self, device: torch.device) -> Tensor:
        """Return the number of each entry's graph, ``[entries]``."""
        return self.spread(np.arange(len(self.lengths)), device)

    def bounds(self, device: torch.device = _HOST) -> Tensor:
        """Return where each graph's entries begin, and the end of the last, ``[graphs + 1]``."""
        return torch.from_numpy(self.ends.copy()).to(device)  # users may change theirs


class _Column(NamedTuple):
    """An attribute of all graphs."""

    value: Any
    along: _Slices
    shifts: NDArray[np.int64] | None = None  # what was added to the entries of each graph


def _batch(graphs: list[Any], followed: Collection[str], excluded: Collection[str]) -> Any:
    """Return the graphs as one, equal to PyG's ``collate``, or None if only PyG's can make it."""
    if set(map(type, graphs)) != {Data} or (Data.__inc__, Data.__cat_dim__) != _RULES:
        return None
    if any("__inc__" in vars(one) or "__cat_dim__" in vars(one) for one in graphs):
        return None
    stores = [graph._store._mapping for graph in graphs]
    nodes = _nodes(stores)
    if nodes is None:
        return None
    out = type.__call__(_class_of_batches())  # Batch(...) would look for it anew
    made, device = out._store, _HOST
    slices: dict[str, Tensor] = {}
    shifts: dict[str, Tensor | None] = {}
    for key in stores[0]:
        if key in excluded:
            continue
        values = [store.get(key) for store in stores]
        if key == "num_nodes":
            made._num_nodes, made.num_nodes = values, sum(values)
            continue
        column = _column(key, values, nodes)
        if column is None:
            return None
        made[key] = column.value
        if isinstance(column.value, Tensor) and column.value.is_cuda:
            device = column.value.device
        slices[key] = column.along.bounds()
        if isinstance(column.value, list):
            shifts[key] = None
        elif column.shifts is None:
            shifts[key] = torch.zeros(len(graphs), dtype=torch.long)
        else:
            shifts[key] = torch.from_numpy(column.shifts.copy())
        if key in followed:
            made[f"{key}_batch"] = column.along.owners(device)
            made[f"{key}_ptr"] = column.along.bounds(device)
    made.batch, made.ptr = nodes.owners(device), nodes.bounds(device)
    out._num_graphs, out._slice_dict, out._inc_dict = len(graphs), slices, shifts
    return out


def _nodes(stores: list[dict[str, Any]]) -> _Slices | None:
    """Return how many nodes the graphs have, or None where that is not plain to see."""
    told = ["num_nodes" in store for store in stores]
    if all(told):
        counts = [store["num_nodes"] for store in stores]
        is_plain = set(map(type, counts)) == {int} and min(counts) >= 0
        return _Slices(counts) if is_plain else None
    # PyG counts by the first attribute of nodes that a graph has.
    if any(told) or any(next(filter(N_KEYS.__contains__, s), "") != "x" for s in stores):
        return None
    features: list[Any] = [store["x"] for store in stores]
    if not _are_plain(features) or features[0].dim() == 0:
        return None
    return _Slices([one.shape[0] for one in features])


def _are_plain(values: list[Any]) -> bool:
    """Say whether all are ordinary tensors of one type, and a worker can hand them over."""
    if set(map(type, values)) != {Tensor} or len({value.dtype for value in values}) > 1:
        return False
    first = values[0]
    if get_worker_info() is not None and any(value.requires_grad for value in values):
        return False  # which PyG refuses
    return first.layout is torch.strided and not first.is_nested


def _column(key: str, values: list[Any], nodes: _Slices) -> _Column | None:
    """Put the graphs' values of an attribute together, or return None if only PyG can."""
    if not isinstance(key, str) or key == "ptr" or "batch" in key:
        return None
    of_nodes = "index" in key or key == "face"  # entries that name nodes, as PyG decides it
    if _are_plain(values):
        return _tensors(values, nodes, of_nodes)
    kinds = set(map(type, values))
    if kinds == {str}:
        return _Column(values, _Slices([1] * len(values)))
    if len(kinds) == 1 and kinds <= {int, float} and not of_nodes:
        return _Column(torch.tensor(values), _Slices([1] * len(values)))
    return None


def _tensors(values: list[Tensor], nodes: _Slices, of_nodes: bool) -> _Column | None:
    first = values[0]
    if first.dim() == 0:
        values = [value.unsqueeze(0) for value in values]
    if of_nodes and first.dtype not in _INTEGERS:
        return None
    dim = -1 if of_nodes else 0
    lengths = [value.shape[dim] for value in values]
    along = nodes if lengths == nodes.lengths else _Slices(lengths)
    value = torch.cat(values, dim)
    if not of_nodes:
        return _Column(value, along)
    shifts = nodes.ends[:-1]
    return _Column(value.add_(along.spread(shifts, value.device)), along, shifts)
