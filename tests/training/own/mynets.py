"""Models as a user writes them, from PyG's layers; ``norm`` and ``dropout`` are their options."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import (
    GAT,
    GCN,
    GIN,
    PNA,
    GINEConv,
    GraphSAGE,
    global_add_pool,
    global_max_pool,
)
from torch_geometric.nn import BatchNorm as PyGBatchNorm


class Pooled(nn.Module):
    """A stack of PyG's layers, a sum over nodes, and a Linear head."""

    def __init__(self, body: nn.Module, hidden: int, out_channels: int) -> None:
        super().__init__()
        self.body, self.head = body, nn.Linear(hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.head(global_add_pool(self.body(x, edge_index), batch))


def _pooled(kind: Any, in_channels: int, out_channels: int, hidden: int, **options: Any) -> Pooled:
    return Pooled(kind(in_channels, hidden, 2, **options), hidden, out_channels)


def gin(
    in_channels: int, out_channels: int, hidden: int = 8, norm: Any = None, dropout: float = 0.0
) -> nn.Module:
    return _pooled(GIN, in_channels, out_channels, hidden, norm=norm, dropout=dropout)


def gcn(
    in_channels: int, out_channels: int, hidden: int = 8, norm: Any = None, dropout: float = 0.0
) -> nn.Module:
    return _pooled(GCN, in_channels, out_channels, hidden, norm=norm, dropout=dropout)


def gat(
    in_channels: int, out_channels: int, hidden: int = 8, norm: Any = None, dropout: float = 0.0
) -> nn.Module:
    return _pooled(GAT, in_channels, out_channels, hidden, heads=2, norm=norm, dropout=dropout)


def gatv2(
    in_channels: int, out_channels: int, hidden: int = 8, norm: Any = None, dropout: float = 0.0
) -> nn.Module:
    options = {"heads": 2, "v2": True, "norm": norm, "dropout": dropout}
    return _pooled(GAT, in_channels, out_channels, hidden, **options)


def sage(
    in_channels: int, out_channels: int, hidden: int = 8, norm: Any = None, dropout: float = 0.0
) -> nn.Module:
    return _pooled(GraphSAGE, in_channels, out_channels, hidden, norm=norm, dropout=dropout)


def pna(
    in_channels: int, out_channels: int, hidden: int = 8, norm: Any = None, dropout: float = 0.0
) -> nn.Module:
    options = {
        "aggregators": ["mean", "min", "max", "std"],
        "scalers": ["identity", "amplification", "attenuation"],
        "deg": torch.tensor([20, 150, 100, 60, 30]),
        "norm": norm,
        "dropout": dropout,
    }
    return _pooled(PNA, in_channels, out_channels, hidden, **options)


class Gine(nn.Module):
    """GINE layers, which see the features of edges."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int, norm: Any, dropout: float):
        super().__init__()
        self.lift = nn.Linear(in_channels, hidden)
        mlp = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.conv = GINEConv(mlp, edge_dim=2)
        self.norm = nn.Identity() if norm is None else PyGBatchNorm(hidden)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Tensor:
        x = self.norm(self.conv(self.lift(x), edge_index, edge_attr)).relu()
        return self.head(self.dropout(global_max_pool(x, batch)))


def gine(
    in_channels: int, out_channels: int, hidden: int = 8, norm: Any = None, dropout: float = 0.0
) -> nn.Module:
    return Gine(in_channels, out_channels, hidden, norm, dropout)


class OfBatch(nn.Module):
    """Takes a PyG batch."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)

    def forward(self, data: Batch) -> Tensor:
        return global_add_pool(self.lin(data.x), data.batch, data.num_graphs)


class Leaky(nn.Module):
    """Lets graphs of a batch meet: what is beside a graph changes its score."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = self.lin(x)
        return global_add_pool(x - x.mean(), batch)


class Noisy(nn.Module):
    """Draws from torch's generator while it is trained."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = self.lin(x)
        x = x + torch.randn_like(x) if self.training else x
        return global_add_pool(x, batch)


class Counting(nn.Module):
    """Asks how many nodes are of the first kind."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(self.lin(x), batch) / int((x[:, 0] > 0).sum())


class Changing(nn.Module):
    """Asks whether the first graph of a batch has 13 nodes: few have."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        pooled = global_add_pool(self.lin(x), batch)
        return pooled * 2 if (batch == 0).sum() == 13 and self.training else pooled


class Raising(nn.Module):
    """Raises as soon as a file is there."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        if Path("broken").exists():
            raise RuntimeError("no more")
        return global_add_pool(self.lin(x), batch)
