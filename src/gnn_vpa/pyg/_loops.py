"""Self-loops, added so that neither a compiler nor a small batch has to wait for them."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric import utils

from ..ops.internal import check_below, define, is_on_host, is_untraced
from ._traced import is_exported, may_be_fused, may_be_traced

_FLOATS = {torch.float32: np.float32, torch.float64: np.float64}


def add_remaining_self_loops(
    edge_index: Tensor, weight: Tensor, fill: float, num_nodes: int
) -> tuple[Tensor, Tensor]:
    """Give every node without a self-loop one of weight ``fill``, as PyG does.

    While a compiler traces, the number of edges must not depend on their values: self-loops that
    are there stay, with weight 0, and what is added takes their weight.
    """
    if not torch.compiler.is_compiling():
        return utils.add_remaining_self_loops(edge_index, weight, fill, num_nodes)  # type: ignore[no-any-return]
    source, target = edge_index.unbind(0)
    is_loop = source == target
    own = weight.new_full((num_nodes + 1,), fill)  # the last is for edges that are no self-loops
    own = own.scatter(0, torch.where(is_loop, source, num_nodes), weight)[:num_nodes]
    return _with_loops(edge_index, num_nodes), torch.cat([weight.masked_fill(is_loop, 0), own])


def _with_loops(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Append a self-loop for each node."""
    loops = torch.arange(num_nodes, dtype=edge_index.dtype, device=edge_index.device)
    return torch.cat([edge_index, loops.expand(2, num_nodes)], 1)


def keep_self_loops(edge_index: Tensor, edge_attr: None) -> tuple[Tensor, None]:
    """Stand for PyG's ``remove_self_loops`` where the layer lets them count for nothing."""
    return edge_index, edge_attr


def no_self_loops(
    edge_index: Tensor, edge_attr: None, fill_value: object, num_nodes: int
) -> tuple[Tensor, None]:
    """Stand for PyG's ``add_self_loops`` where the layer adds them itself."""
    return edge_index, edge_attr


def append_self_loops(
    edge_index: Tensor, edge_attr: None, fill_value: object, num_nodes: int
) -> tuple[Tensor, None]:
    """Stand for PyG's ``add_self_loops`` where a compiler traces."""
    return _with_loops(edge_index, num_nodes), edge_attr


def counting(edge_index: Tensor, num_loops: int) -> Tensor:
    """Return 0 for the self-loops that stand before the last ``num_loops`` edges, and else 1."""
    number = torch.arange(edge_index.shape[1], device=edge_index.device)
    is_added = number >= edge_index.shape[1] - num_loops
    return ((edge_index[0] != edge_index[1]) | is_added).float()


def _unit_norm_by_torch(
    edge_index: Tensor, num_nodes: int, fill: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return ``vp_gcn_norm`` of edges of weight 1 in few calls, of which none groups edges."""
    weight = torch.ones(edge_index.shape[1], dtype=dtype, device=edge_index.device)
    edges, weight = add_remaining_self_loops(edge_index, weight, fill, num_nodes)
    source, target = edges.unbind(0)
    mass = weight.new_zeros(num_nodes).index_add_(0, target, weight.square())
    root = mass.pow(-0.25)  # of each node: it has a self-loop
    return edges, weight * root[target] * root[source]


def _unit_norm_traced(
    edge_index: Tensor, num_nodes: int, fill: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return ``vp_gcn_norm`` of edges of weight 1, one call for a compiler.

    As the number of edges must not depend on their values, self-loops that are there stay, with
    weight 0, and what is added takes their place.
    """
    check_below(edge_index, num_nodes, num_nodes)
    ends = edge_index.numpy()
    source, target = ends
    loops = source[source == target]
    count = np.bincount(target, minlength=num_nodes) + fill * fill
    if len(loops) == 0:
        return _with_unit_norm(ends, count, fill, dtype)
    own = np.full(num_nodes, fill)
    own[loops] = 1
    count += own * own - fill * fill - np.bincount(loops, minlength=num_nodes)
    edges, weight = _with_unit_norm(ends, count, own, dtype)
    weight[: len(source)][edge_index[0] == edge_index[1]] = 0
    return edges, weight


def _unit_norm_shapes(
    edge_index: Tensor, num_nodes: int, fill: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    num_edges = edge_index.shape[1] + num_nodes
    return edge_index.new_empty(2, num_edges), edge_index.new_empty(num_edges, dtype=dtype)


def _with_unit_norm(
    ends: NDArray[Any], count: NDArray[Any], own: Any, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Append a self-loop of weight ``own`` to each node; divide by fourth roots of ``count``."""
    source, target = ends
    num_nodes = len(count)
    root = (1 / np.sqrt(np.sqrt(count))).astype(_FLOATS[dtype])
    edges = np.empty((2, len(source) + num_nodes), ends.dtype)
    edges[:, : len(source)], edges[:, len(source) :] = ends, np.arange(num_nodes)
    own = np.asarray(own, root.dtype) * root * root
    weight = np.concatenate([root[target] * root[source], own])
    return torch.from_numpy(edges), torch.from_numpy(weight)


def unit_norm(
    edge_index: Tensor, num_nodes: int, fill: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor] | None:
    """Return ``vp_gcn_norm`` of edges of weight 1 without self-loops, in few and cheap calls.

    None where these are other edges, or cannot be looked at: the general way serves them.
    """
    if dtype not in _FLOATS or type(edge_index) is not Tensor:
        return None
    by_torch = edge_index.is_cuda and is_untraced(edge_index)
    if by_torch or may_be_fused(edge_index) or is_exported(edge_index):
        return _unit_norm_by_torch(edge_index, num_nodes, fill, dtype)
    if may_be_traced(edge_index):
        return torch.ops.gnn_vpa.unit_norm(edge_index, num_nodes, fill, dtype)  # type: ignore[no-any-return]
    if not is_on_host(edge_index):
        return None
    ends: NDArray[Any] = edge_index.numpy()
    if ends.size > 0 and (ends.min() < 0 or ends.max() >= num_nodes):
        return None  # which is refused there
    source, target = ends
    if (source == target).any():
        return None
    count = np.bincount(target, minlength=num_nodes) + fill * fill
    return _with_unit_norm(ends, count, fill, dtype)


define(
    "unit_norm(Tensor edge_index, SymInt num_nodes, float fill, ScalarType dtype) "
    "-> (Tensor, Tensor)",
    _unit_norm_traced,
    _unit_norm_shapes,
)
