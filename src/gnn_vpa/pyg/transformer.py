"""Variance-preserving transformer attention: a drop-in for TransformerConv."""

import math
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import TransformerConv
from torch_geometric.utils import softmax

from ..ops import aggregate
from ..ops.internal import sddmm
from ..ops.internal import softmax as graph_softmax
from ._types import OptInt, OptTensor
from .attention import VPAttention


class VPTransformerConv(VPAttention, TransformerConv):  # type: ignore[misc]
    r"""Variance-preserving transformer attention, a drop-in for PyG's ``TransformerConv``.

    ``out_i = W_1 x_i + sum_j c_ij (W_2 x_j + W_6 e_ij) / sqrt(sum_j c_ij^2)`` per head, with the
    parent's ``c_ij``; see ``VPGATConv``.

    Args:
        *args: Those of ``TransformerConv``.
        normalizer_grad: Whether gradients flow through the normaliser; not in the paper.
        **kwargs: Those of ``TransformerConv``.

    Example:
        >>> import torch
        >>> conv = VPTransformerConv(8, 16, heads=2, beta=True)
        >>> conv(torch.ones(3, 8), torch.tensor([[0, 1], [1, 2]])).shape
        torch.Size([3, 32])
    """

    _linear = True
    _used: Tensor | None = None

    def message(
        self,
        query_i: Tensor,
        key_j: Tensor,
        value_j: Tensor,
        edge_attr: OptTensor,
        index: Tensor,
        ptr: OptTensor,
        size_i: OptInt,
    ) -> Tensor:
        """Return the parent's message, and keep the weights that it was multiplied by."""
        if self.lin_edge is not None:
            assert edge_attr is not None
            edge_attr = self.lin_edge(edge_attr).view(-1, self.heads, self.out_channels)
            key_j = key_j + edge_attr
            value_j = value_j + edge_attr
        logits = (query_i * key_j).sum(dim=-1) / math.sqrt(self.out_channels)
        self._used = self._dropped(softmax(logits, index, ptr, size_i))
        return value_j * self._used.unsqueeze(-1)

    def aggregate(  # type: ignore[override]
        self,
        inputs: Tensor,
        index: Tensor,
        ptr: OptTensor = None,
        dim_size: OptInt = None,
    ) -> Tensor:
        """Sum the messages and divide by the norm of their weights."""
        assert self._used is not None
        weight, self._used = self._used, None
        return super().aggregate(inputs, index, weight, ptr, dim_size)

    def _features(self, kwargs: dict[str, Any]) -> Any:
        pair = kwargs["value"], kwargs["query"]
        return pair if self.flow == "source_to_target" else pair[::-1]

    def _unwatched(self, x: Any) -> bool:
        # Edge features make every value its own, an edges x features tensor by definition.
        return self.lin_edge is None and super()._unwatched(x)

    _takes_small = False

    def _fused(self, source: Tensor, graph: Any, kwargs: dict[str, Any]) -> Tensor:
        query, key = kwargs["query"], kwargs["key"]
        scale = 1 / math.sqrt(self.out_channels)
        logits = sddmm(query * scale, key, None, None, *graph.as_operands(True))
        weight = self._dropped(graph_softmax(logits, graph, None, source).to(source.dtype))
        return aggregate(source, graph, weight=weight, normalizer_grad=self.normalizer_grad)

    def _dropped(self, alpha: Tensor) -> Tensor:
        self._alpha = alpha  # what the parent returns on request
        return F.dropout(alpha, p=self.dropout, training=self.training)
