"""Checks of arguments, before any kernel runs: shapes, types and devices (ranges: ``_csr``)."""

import torch
from torch import Tensor

from ..errors import UsageError
from ._dtypes import accumulator
from ._formats import check_device, check_edges
from ._graph import Graph

_FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def check_features(x: Tensor) -> None:
    """Raise unless ``x`` is a tensor of floating-point features with an axis of sources."""
    if not isinstance(x, Tensor):
        raise UsageError(f"x: expected a tensor, got {type(x).__name__}.")
    if x.dtype not in _FLOATS:
        raise UsageError(
            f"x: expected floating-point features, got {x.dtype}. Convert them with x.float()."
        )
    if x.dim() == 0:
        raise UsageError("x: expected shape [num_sources, ...], got a single number.")


def check_graph(x: Tensor, graph: Graph) -> None:
    """Raise unless ``x`` has a row for each source of ``graph``, on its device."""
    if x.shape[0] != graph.num_sources:
        raise UsageError(
            f"x: expected {graph.num_sources} rows, one for each source of the graph, "
            f"got {x.shape[0]}."
        )
    check_device("x", x, graph.device)


def check_weight(weight: Tensor, graph: Graph, x: Tensor, name: str = "weight") -> None:
    """Raise unless ``weight`` is one of the edges, ``[E]``, or of the edges and heads of ``x``."""
    check_edges(name, weight, graph.num_edges, graph.device)
    if weight.dim() not in (1, 2):
        raise UsageError(
            f"{name}: expected shape [num_edges] or [num_edges, heads], got {list(weight.shape)}."
        )
    if weight.dim() == 2 and (x.dim() < 2 or x.shape[1] != weight.shape[1]):
        raise UsageError(
            f"{name}: {weight.shape[1]} heads need x of shape [num_sources, {weight.shape[1]}, "
            f"...], got {list(x.shape)}."
        )


def summable(weight: Tensor, x: Tensor) -> Tensor:
    """Return edge weights in a type that ``x`` can be summed with."""
    return weight if weight.dtype == x.dtype else weight.to(accumulator(x.dtype))
