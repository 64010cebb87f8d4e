"""Pooling functions called within forward are found and named."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric
import torch_geometric.nn as gnn
from torch import Tensor, nn
from torch_geometric.nn import AttentiveFP, GINConv, global_add_pool, global_max_pool
from torch_geometric.nn import global_mean_pool as readout
from torch_geometric.utils import scatter

from gnn_vpa.pyg import convert, global_vpa_pool

POOLS = {"add": global_add_pool}


def helper(x: Tensor, batch: Tensor) -> Tensor:
    return deeper(x, batch)


def deeper(x: Tensor, batch: Tensor) -> Tensor:
    return global_add_pool(x, batch)


class Direct(nn.Module):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return readout(x, batch)


class ThroughModule(nn.Module):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return gnn.global_max_pool(x, batch)


class ThroughPackage(nn.Module):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return torch_geometric.nn.pool.global_add_pool(x, batch)


class ThroughMethod(nn.Module):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return self.pooled(x, batch)

    def pooled(self, x: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(x, batch)


class ThroughHelper(nn.Module):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return helper(x, batch)


class ThroughAttribute(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = functools.partial(global_add_pool, size=3)

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return self.pool(x, batch)


class ThroughTable(nn.Module):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return POOLS["add"](x, batch)


class ThroughDefault(nn.Module):
    def forward(self, x: Tensor, batch: Tensor, pool: Callable[..., Any] = readout) -> Tensor:
        return pool(x, batch)


class ThroughImport(nn.Module):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        from torch_geometric.nn import GCNConv, global_add_pool

        return global_add_pool(GCNConv(1, 1)(x), batch)


class ThroughLambda(nn.Module):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return (lambda value: self.pooled(value, batch))(x)

    def pooled(self, x: Tensor, batch: Tensor) -> Tensor:
        return global_max_pool(x, batch)


class ThroughProperty(nn.Module):
    @property
    def pool(self) -> Callable[..., Any]:
        if self.training:
            raise RuntimeError("looked at, not looked into")
        return global_add_pool

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return self.pool(x, batch)


class ThroughDecorator(nn.Module):
    @torch.no_grad()
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(x, batch)


class ThroughSuper(Direct):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return super().forward(x.relu(), batch)


class ThroughScatter(nn.Module):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return scatter(x, batch)


class ThroughTensor(nn.Module):
    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return x.new_zeros(2, x.shape[1]).index_add_(0, batch, x)


FOUND = {
    Direct: "global_mean_pool",
    ThroughModule: "global_max_pool",
    ThroughPackage: "global_add_pool",
    ThroughMethod: "global_add_pool",
    ThroughHelper: "global_add_pool",
    ThroughAttribute: "global_add_pool",
    ThroughTable: "global_add_pool",
    ThroughDefault: "global_mean_pool",
    ThroughImport: "global_add_pool",
    ThroughLambda: "global_max_pool",
    ThroughProperty: "global_add_pool",
    ThroughDecorator: "global_add_pool",
    ThroughSuper: "global_mean_pool",
    ThroughScatter: "scatter",
    ThroughTensor: "Tensor.index_add_",
}


@pytest.mark.parametrize(
    ("cls", "function"), FOUND.items(), ids=lambda v: getattr(v, "__name__", v)
)
def test_a_pool_is_found(cls: type[nn.Module], function: str) -> None:
    _, report = convert(nn.ModuleDict({"readout": cls()}))
    assert [(entry.path, entry.before) for entry in report.left] == [("readout", function)]
    assert "global_vpa_pool" in report.left[0].reason


def test_the_place_is_named() -> None:
    _, report = convert(ThroughHelper())
    line = deeper.__code__.co_firstlineno + 1
    assert f"deeper, {Path(__file__).name}:{line}" in report.left[0].reason


def test_a_closure_is_looked_into() -> None:
    pool = global_add_pool

    class Closed(nn.Module):
        def forward(self, x: Tensor, batch: Tensor) -> Tensor:
            return pool(x, batch)

    assert [entry.before for entry in convert(Closed())[1]] == ["global_add_pool"]


def test_a_model_of_pyg_is_looked_into() -> None:
    _, report = convert(AttentiveFP(4, 4, 1, 2, 2, 2))
    assert "global_add_pool" in [entry.before for entry in report.left]


def test_ours_and_what_layers_do_inside_is_not_named() -> None:
    class Fine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GINConv(nn.Linear(4, 4))
            self.names = torch.arange(3)

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            return global_vpa_pool(self.conv(x, edge_index), batch)

    _, report = convert(Fine())
    assert [str(entry) for entry in report] == ["conv: GINConv -> VPGINConv"]
