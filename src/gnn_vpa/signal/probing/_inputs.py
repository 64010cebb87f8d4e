"""What a model was called with: tensors in any nesting, the edges and the batch among them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.typing import SparseTensor

from ...errors import UsageError
from ...ops import Graph
from ...ops.internal import endpoints
from ...pyg.internal import plain_edges
from ._edges import Atlas

_BATCH = ("batch", "readout", "batch_index")


def tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors in a value, in order: itself, or those in its containers."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Data):
        yield from tensors(dict(value.to_dict()))
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from tensors(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from tensors(getattr(value, field.name))


def real_tensor(value: Any) -> Tensor | None:
    """Return the first tensor of real or complex numbers in a value."""
    found = (t for t in tensors(value) if t.is_floating_point() or t.is_complex())
    return next((t for t in found if t.layout == torch.strided), None)


def arguments(model: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model is called with, by the names that its ``forward`` gives them."""
    with suppress(TypeError, ValueError):
        bound = inspect.signature(model.forward).bind(*args, **kwargs)
        return dict(_spread(bound.arguments))
    return {**{str(place): arg for place, arg in enumerate(args)}, **kwargs}


def _spread(named: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and values, a ``Data`` object as its parts."""
    for name, value in named.items():
        if isinstance(value, Data):
            yield from value.to_dict().items()
        else:
            yield name, value


def atlas_of(named: Mapping[str, Any]) -> Atlas:
    """Return an atlas that knows the edges and the batch among a model's arguments."""
    x = real_tensor(list(named.values()))
    batch = _batch(named)
    num_nodes = len(x) if x is not None and x.dim() > 1 else None
    if batch is not None:
        num_nodes = len(batch)
    atlas = Atlas(batch)
    named = dict(sorted(named.items(), key=lambda item: "edge" not in item[0]))  # stable
    for value in named.values():
        if isinstance(value, Graph):
            if not is_readout(value):
                atlas.edges_of(value)
                return atlas
        elif _looks_like_edges(value):
            with suppress(UsageError, RuntimeError):
                index, _ = plain_edges(value)
                source, target, sizes, _ = endpoints(index, num_nodes)
                if index.numel() == 0 or (int(index.min()) >= 0 and int(index.max()) < sizes[0]):
                    atlas.edges(source, target, sizes)
                    return atlas
    return atlas


def is_readout(graph: Graph) -> bool:
    """Tell whether a graph leads from nodes to the graphs that they belong to."""
    return graph.num_edges == graph.num_sources and graph.num_targets < graph.num_sources


def _batch(named: Mapping[str, Any]) -> Tensor | None:
    for name in _BATCH:
        value = named.get(name)
        if isinstance(value, Graph) and is_readout(value):
            return value.edge_targets.long()
        if isinstance(value, Tensor) and value.dim() == 1 and value.dtype == torch.int64:
            return value
    return None


def _looks_like_edges(value: Any) -> bool:
    if isinstance(value, SparseTensor):
        return True
    if not isinstance(value, Tensor):
        return False
    if value.layout != torch.strided:
        return value.dim() == 2
    return value.dtype in (torch.int64, torch.int32) and value.dim() == 2 and len(value) == 2
