"""The paper's models built from PyG's own layers, and batches to compare with them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GINConv, GraphConv, SGConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import scatter

from gnn_vpa.nn._model import Model

KINDS = [(name, aggr) for name in ("gin", "gcn") for aggr in ("sum", "mean", "max", "vpa")]
KINDS += [(name, aggr) for name in ("gat", "sgc") for aggr in ("default", "vpa")]


@pytest.fixture(params=KINDS, ids="+".join)
def kind(request: pytest.FixtureRequest) -> tuple[str, str]:
    """Name and aggregation of each of the twelve methods of the paper."""
    chosen: tuple[str, str] = request.param
    return chosen


class Batch(NamedTuple):
    x: Tensor
    edge_index: Tensor
    batch: Tensor


@pytest.fixture
def make_batch() -> Callable[..., Batch]:
    """Random graphs with isolated nodes, self-loops, parallel and one-way edges."""

    def make(seed: int, num_nodes: int = 23, num_graphs: int = 4, in_channels: int = 5) -> Batch:
        g = torch.Generator().manual_seed(seed)
        batch = torch.cat([torch.arange(num_graphs)] * num_nodes)[:num_nodes].sort().values
        ends = torch.randint(num_nodes, (2, 8 * num_nodes), generator=g)
        edge_index = ends[:, batch[ends[0]] == batch[ends[1]]]
        edge_index = torch.cat([edge_index, edge_index[:, :3], torch.tensor([[1], [1]])], dim=1)
        edge_index = edge_index[:, edge_index[1] != 2]
        x = torch.randn(num_nodes, in_channels, dtype=torch.float64, generator=g)
        return Batch(x, edge_index, batch)

    return make


# The reference ----------------------------------------------------------------------------------

_PYG = {"sum": "sum", "mean": "mean", "max": "max", "vpa": "variance_preserving"}


def _pool(x: Tensor, batch: Tensor, aggr: str) -> Tensor:
    if aggr != "vpa":
        return scatter(x, batch, reduce="sum" if aggr == "default" else aggr)
    return scatter(x, batch) / batch.bincount().to(x.dtype).sqrt().unsqueeze(1)


def _drop(x: Tensor, uniform: Tensor | None) -> Tensor:
    return x if uniform is None else torch.where(uniform < 0.5, 0, 2 * x)


class _LevelsHead(nn.Module):
    def __init__(self, widths: list[int], num_classes: int) -> None:
        super().__init__()
        self.lins = nn.ModuleList(nn.Linear(width, num_classes) for width in widths)


class _MLPHead(nn.Module):
    def __init__(self, hidden: int, num_classes: int) -> None:
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(64, hidden), nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor, uniform: Tensor | None) -> Tensor:
        return self.lin2(F.relu(self.lin1(_drop(x, uniform))))


class PyGModel(nn.Module):
    """A model of the paper, as released, line by line from PyG's layers."""

    def __init__(self, name: str, aggr: str, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.name, self.aggr = name, aggr
        if name == "gin":
            widths = [in_channels, 64, 64, 64]
            self.convs = nn.ModuleList(
                GINConv(
                    nn.Sequential(
                        nn.Linear(width, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64)
                    ),
                    aggr=_PYG[aggr],
                )
                for width in widths
            )
            self.norms = nn.ModuleList(nn.BatchNorm1d(64) for _ in widths)
            self.head: Any = _LevelsHead([*widths, 64], num_classes)
            return
        widths = [in_channels, 64, 64, 64, 64]
        if name == "gcn":
            self.convs = nn.ModuleList(GraphConv(width, 64, aggr=_PYG[aggr]) for width in widths)
        elif name == "gat":
            self.convs = nn.ModuleList(GATConv(width, 64) for width in widths)
        else:
            self.conv = SGConv(in_channels, 64, K=1)
        self.head = _MLPHead(128, num_classes)

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, uniform: Tensor | None
    ) -> Tensor:
        if self.name == "gin":
            levels = [x]
            for conv, norm in zip(self.convs, self.norms, strict=True):
                levels.append(F.relu(norm(conv(levels[-1], edge_index))))
            return sum(  # type: ignore[return-value]
                _drop(lin(_pool(h, batch, self.aggr)), None if uniform is None else uniform[k])
                for k, (lin, h) in enumerate(zip(self.head.lins, levels, strict=True))
            )
        if self.name == "sgc":
            x = F.relu(self._sgc(x, edge_index))
        else:
            for conv in self.convs:
                layer = self._gat if self.name == "gat" else GraphConv.__call__
                x = F.relu(layer(conv, x, edge_index))
        return self.head(_pool(x, batch, self.aggr), uniform)

    def _gat(self, conv: GATConv, x: Tensor, edge_index: Tensor) -> Tensor:
        out, (looped, c) = conv(x, edge_index, return_attention_weights=True)
        if self.aggr == "default":
            return out
        norm = scatter(c.detach() ** 2, looped[1], dim_size=len(x)).sqrt()
        return (out - conv.bias) / norm + conv.bias

    def _sgc(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.aggr == "default":
            return self.conv(x, edge_index)
        looped, weight = gcn_norm(edge_index, None, len(x), dtype=x.dtype)
        messages = x[looped[0]] * weight.sqrt().unsqueeze(1)
        return self.conv.lin(scatter(messages, looped[1], dim_size=len(x)))


@pytest.fixture
def make_reference() -> type[PyGModel]:
    """The class of the models that PyG's layers make."""
    return PyGModel


@pytest.fixture
def assert_same_training() -> Callable[..., None]:
    """Compare scores, gradients and running statistics of two models in training."""

    def check(ours: Model, scores: Tensor, other: nn.Module, expected: Tensor) -> None:
        torch.testing.assert_close(scores, expected, rtol=1e-10, atol=1e-10)
        direction = torch.randn(expected.shape, dtype=expected.dtype)
        (scores * direction).sum().backward()
        (expected * direction).sum().backward()
        wanted = dict(other.named_parameters())
        for name, parameter in ours.named_parameters():
            torch.testing.assert_close(
                parameter.grad, wanted[name].grad, rtol=1e-10, atol=1e-10, msg=name
            )
        state = other.state_dict()
        for name, buffer in ours.named_buffers():
            torch.testing.assert_close(buffer, state[name], rtol=1e-10, atol=1e-10, msg=name)

    return check
