"""Degree normalisation and attention weights that preserve variance."""

import torch
from torch import Tensor
from torch_geometric.index import ptr2index
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import softmax
from torch_geometric.utils.num_nodes import maybe_num_nodes

from ..errors import UsageError
from ..ops import Graph
from ..ops.internal import accumulable, as_graph, normed
from ._edges import plain_edges
from ._loops import add_remaining_self_loops, unit_norm
from ._memory import remembered


def vp_gcn_norm(
    edge_index: Tensor | SparseTensor,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    improved: bool = False,
    add_self_loops: bool = True,
    flow: str = "source_to_target",
    dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor] | SparseTensor:
    r"""Normalise edge weights by fourth roots: the sibling of PyG's ``gcn_norm``.

    ``w_ij / (q_i q_j)^(1/4)`` with ``q_i = sum_j w_ij^2`` over the in-edges of ``i``, self-loop
    included. For unit weights that is the paper's ``((d_i + 1)(d_j + 1))^(-1/4)``. As in PyG, the
    edges of a node without in-edges (or with weights that are all 0) get weight 0. Weights may be
    of any size.

    Args:
        edge_index: ``[2, num_edges]``, or a sparse ``adj_t`` whose values are the weights.
        edge_weight: ``[num_edges]``; 1 by default.
        num_nodes: Number of nodes.
        improved: Whether self-loops weigh 2 instead of 1.
        add_self_loops: Whether every node without a self-loop gets one.
        flow: ``"target_to_source"`` if messages flow against the edges.
        dtype: Type of the weights; by default that of ``edge_weight``, if it is one of fractions.

    Returns:
        The edges, self-loops added, and their weights; or a ``SparseTensor``, if given one.

    Example:
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> vp_gcn_norm(edge_index)[1] ** 4  # two neighbours each, with the self-loop
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    if isinstance(edge_index, SparseTensor):
        (source, target), weight = vp_gcn_norm(
            *plain_edges(edge_index), edge_index.size(0), improved, add_self_loops, dtype=dtype
        )
        return SparseTensor(row=target, col=source, value=weight, sparse_sizes=edge_index.sizes())
    if edge_index.layout != torch.strided:
        num_nodes = edge_index.size(0)
        if flow != "source_to_target":
            raise UsageError(
                f"flow: {flow!r} has no meaning for a sparse adj_t. Pass its transpose instead."
            )
        edge_index, edge_weight = plain_edges(edge_index)
    fill = (2.0 if improved else 1.0) if add_self_loops else None

    def normalised() -> tuple[Tensor, Tensor]:
        weight = edge_weight
        if weight is None:
            if fill is not None and flow == "source_to_target" and num_nodes is not None:
                units = unit_norm(edge_index, num_nodes, fill, dtype or torch.get_default_dtype())
                if units is not None:
                    return units
            weight = torch.ones(edge_index.shape[1], dtype=dtype, device=edge_index.device)
        return _normalised(edge_index, weight, num_nodes, fill, flow, dtype)

    if fill is None:  # the edges are those given, which remember their own grouping
        return normalised()
    if edge_weight is not None and edge_weight.requires_grad:
        return normalised()
    return remembered(edge_index, (num_nodes, fill, flow, dtype), normalised, edge_weight)


def _normalised(
    edge_index: Tensor,
    edge_weight: Tensor,
    num_nodes: int | None,
    fill: float | None,
    flow: str,
    dtype: torch.dtype | None,
) -> tuple[Tensor, Tensor]:
    """Normalise the weights of edges, with self-loops of weight ``fill`` unless it is None."""
    if edge_weight.shape != edge_index.shape[1:]:
        raise UsageError(
            f"edge_weight: expected shape {list(edge_index.shape[1:])}, one for each edge, got "
            f"{list(edge_weight.shape)}."
        )
    num_nodes = maybe_num_nodes(edge_index, num_nodes)
    if dtype is None:
        whole = not edge_weight.is_floating_point()
        dtype = torch.get_default_dtype() if whole else edge_weight.dtype
    if fill is not None:
        edge_index, edge_weight = add_remaining_self_loops(edge_index, edge_weight, fill, num_nodes)
    weight = accumulable(edge_weight if edge_weight.is_floating_point() else edge_weight.to(dtype))
    along = edge_index if flow == "source_to_target" else edge_index.flip(0)
    # The graph is remembered: a layer that sends messages along these edges finds it grouped.
    norm = normed(weight, as_graph(along, (num_nodes, num_nodes)))
    some = torch.where(norm.inverse > 0, norm.inverse, 1)
    root = (some.sqrt() * norm.size.rsqrt() * (norm.inverse > 0)).squeeze(1)
    # By the target's root first: it is of the size of the weight.
    return edge_index, (weight * root[along[1]] * root[along[0]]).to(dtype)


def vp_softmax(
    src: Tensor,
    index: Tensor | None = None,
    ptr: Tensor | None = None,
    num_nodes: int | None = None,
    dim: int = 0,
) -> Tensor:
    """Return attention weights over ``sqrt(sum of their squares)``: ``softmax`` of PyG's sibling.

    No gradient flows through the normaliser. ``dim`` is 0, as in every layer that is converted.
    Half types are summed in float32.
    """
    if dim != 0:
        raise UsageError(f"dim: expected 0, the axis of the edges, got {dim}.")
    share: Tensor = softmax(accumulable(src), index, ptr, num_nodes)
    if index is None:
        index = ptr2index(ptr, output_size=src.shape[0])
    norm = normed(share.detach(), Graph.readout(index, num_nodes))
    inverse = norm.inverse_norm.index_select(0, index)
    return (share * inverse.view_as(share)).to(src.dtype)
