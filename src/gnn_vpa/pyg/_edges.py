"""The forms in which a PyG layer is given edges, read into one."""

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_torch_sparse_tensor

from ..ops.internal import endpoints


def plain_edges(edge_index: Tensor | SparseTensor) -> tuple[Tensor, Tensor | None]:
    """Return ``(edge_index, values)`` of a sparse ``adj_t``; anything else as it is.

    Unlike PyG's own conversion it keeps parallel edges, in every layout.
    """
    if isinstance(edge_index, SparseTensor):
        target, source, values = edge_index.coo()
        return torch.stack([source, target]), values
    if not is_torch_sparse_tensor(edge_index):
        return edge_index, None
    source, target, _, values = endpoints(edge_index, None)
    return torch.stack([source, target]), values
