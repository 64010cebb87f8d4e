"""Our models in PyTorch's own operators alone, for programs that run without gnn-vpa.

The layers are the models' own; what is written again are the sums that they are given: over edges
and over the nodes of a graph, by ``scatter_add``. (``index_add`` would become ONNX's ``ScatterND``,
with which ONNX Runtime loses summands of large batches on several threads.)
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..aggregations import aggregation
from ..nn import GAT, SGC, LevelBatch, Model

_SLOPE = 0.2  # of attention's leaky ReLU


class PlainForm(nn.Module):
    """A model of ours that is called as ``form(x, edge_index, batch, ptr)``, as PyG has these.

    Example:
        >>> from gnn_vpa import build_model
        >>> model = build_model("gin", in_channels=3, num_classes=2).eval()
        >>> x, edges = torch.rand(3, 3), torch.tensor([[0, 1], [1, 0]])
        >>> batch, ptr = torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3])
        >>> scores = PlainForm(model)(x, edges, batch, ptr)
        >>> torch.allclose(scores, model(x, edges, batch), atol=1e-6)
        True
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, ptr: Tensor) -> Tensor:
        """Return scores ``[graphs, outputs]``."""
        model, graphs = self.model, ptr.shape[0] - 1
        nodes = torch.arange(x.shape[0], device=x.device)
        pool = _Sums(nodes, batch, graphs)
        if isinstance(model, GAT):
            return self._attend(model, x, edge_index, pool)
        if isinstance(model, SGC):
            hops: tuple[Any, ...] = (
                _Propagation(edge_index, x.shape[0], model.exponent),
            ) * model.K
        else:
            hops = (_Neighbours(edge_index[0], edge_index[1], x.shape[0]),) * len(_layers(model))
        out: Tensor = model(x, _Batch(hops, pool))
        return out

    def _attend(self, model: GAT, x: Tensor, edge_index: Tensor, pool: "_Sums") -> Tensor:
        for conv in _layers(model):
            x = (_attention(conv, x, edge_index, model.exponent) + conv.bias).relu()
        return model._scores([x], _Batch((), pool), None)


class _Batch(LevelBatch):
    """A batch whose readout is made of PyTorch's own operators."""

    def __new__(cls, hops: tuple[Any, ...], pool: "_Sums") -> "_Batch":
        return super().__new__(cls, hops, None, (cast(Any, pool),))

    def pools(self, aggr: str) -> list[Callable[[Tensor], Tensor]]:
        """Return the map of rows to graphs, for as many levels as a head may read."""
        return [partial(cast(Any, self.readouts[0]), aggr=aggr)] * (len(self.hops) + 1)


class _Sums:
    """Aggregates ``[sources, F] -> [targets, F]`` over edges."""

    def __init__(self, source: Tensor, target: Tensor, size: int) -> None:
        self.source, self.target, self.size = source, target, size

    def __call__(self, x: Tensor, aggr: str) -> Tensor:
        entry = aggregation(aggr)
        sent = x.index_select(0, self.source)
        count = _added(x.new_zeros(self.size), self.target, torch.ones_like(sent[:, 0]))
        if entry.kind == "maximum":
            at = self.target.unsqueeze(1).expand_as(sent)
            lowest = x.new_full((self.size, x.shape[1]), -torch.inf)
            most = lowest.scatter_reduce(0, at, sent, "amax")
            return torch.where(count.unsqueeze(1) > 0, most, 0.0)
        total = _added(x.new_zeros(self.size, x.shape[1]), self.target, sent)
        exponent = entry.exponent or 0.0
        return total * _power(count, exponent).unsqueeze(1) if exponent else total


class _Neighbours(_Sums):
    """A hop of a model, see ``Hop``."""

    is_sum, is_plain, rows, parent = False, True, None, None

    def aggregate(self, x: Tensor, aggr: str) -> Tensor:
        return self(x, aggr)

    def from_parent(self, x: Tensor) -> Tensor:
        return x

    def with_self(self, x: Tensor, aggr: str) -> Tensor:
        return x + self(x, aggr)


class _Propagation:
    """A hop of SGC: ``sum_j (d_i d_j)^(-p) x_j`` with exactly one self-loop for each node."""

    is_sum, rows = True, None

    def __init__(self, edge_index: Tensor, nodes: int, exponent: float) -> None:
        self._source, self._target, self._size = edge_index[0], edge_index[1], nodes
        self._exponent = exponent

    def with_self(self, x: Tensor, aggr: str) -> Tensor:
        proper = (self._source != self._target).to(x.dtype)
        degree = _added(x.new_ones(self._size), self._target, proper)
        scale = _power(degree, self._exponent).unsqueeze(1)
        sent = (scale * x).index_select(0, self._source) * proper.unsqueeze(1)
        return scale * _added(scale * x, self._target, sent)


def _attention(conv: Any, x: Tensor, edge_index: Tensor, exponent: float) -> Tensor:
    """Return ``s_i sum_j c_ij W x_j`` over neighbours and the node itself."""
    source, target = edge_index[0], edge_index[1]
    x = F.linear(x, conv.lin.weight)
    sent, received = ((x * att.view(1, -1)).sum(1) for att in (conv.att_src, conv.att_dst))
    proper = source != target
    logits = F.leaky_relu(sent.index_select(0, source) + received.index_select(0, target), _SLOPE)
    logits = torch.where(proper, logits, -torch.inf)
    own = F.leaky_relu(sent + received, _SLOPE)
    highest = own.scatter_reduce(0, target, logits, "amax")
    share = (logits - highest.index_select(0, target)).exp()
    mine = (own - highest).exp()
    total = _added(mine, target, share)
    share, mine = share / total.index_select(0, target), mine / total
    sent_on = share.unsqueeze(1) * x.index_select(0, source)
    out = _added(mine.unsqueeze(1) * x, target, sent_on)
    if not exponent:
        return out
    squares = _added(mine.square(), target, share.square())
    return out * squares.pow(-exponent).unsqueeze(1)


def _added(total: Tensor, target: Tensor, sent: Tensor) -> Tensor:
    """Return ``total`` with rows added where they belong: ``[T, F]`` and ``[E, F]``, or no F."""
    at = target.unsqueeze(1).expand_as(sent) if sent.dim() == 2 else target
    return total.scatter_add(0, at, sent)


def _power(count: Tensor, exponent: float) -> Tensor:
    """Return ``N^(-p)``, and 0 where there is none."""
    return torch.where(count > 0, count.clamp(min=1).pow(-exponent), 0.0)


def _layers(model: Model) -> Any:
    return model.convs
