"""The fast paths on real graphs: against the reference path, and against PyG's own modules."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.nn import SimpleConv
from torch_geometric.nn.aggr import VariancePreservingAggregation

from gnn_vpa.graphs import load
from gnn_vpa.ops import Graph, aggregate, attend, use_backend


@pytest.fixture(scope="module", params=["MUTAG", "IMDB-BINARY", "REDDIT-BINARY"])
def batch(request: pytest.FixtureRequest, tu_dir: Path) -> Batch:
    graphs = load(request.param, data_dir=tu_dir)
    return Batch.from_data_list([graphs.graph(i) for i in range(40)])


@pytest.fixture
def features(batch: Batch) -> Tensor:
    draw = torch.Generator().manual_seed(0)
    return torch.randn(batch.num_nodes, 9, generator=draw, dtype=torch.float64)


@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "vpa"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_against_the_reference_path(
    batch: Batch,
    features: Tensor,
    device: str,
    aggr: str,
    weighted: bool,
    same: Callable[..., None],
) -> None:
    graph = Graph(batch.edge_index, batch.num_nodes).to(device)
    weight = torch.rand(graph.num_edges, dtype=torch.float64, device=device)

    def fast(x: Tensor, w: Tensor) -> Tensor:
        return aggregate(x, graph, aggr, w if weighted else None)

    def plain(x: Tensor, w: Tensor) -> Tensor:
        with use_backend("reference"):
            return fast(x, w)

    same(fast, plain, features.to(device), weight, tolerance=1e-10)


def test_attention_against_the_reference_path(
    batch: Batch, features: Tensor, device: str, same: Callable[..., None]
) -> None:
    graph = Graph(batch.edge_index, batch.num_nodes).to(device)
    logits = torch.randn(graph.num_edges, dtype=torch.float64, device=device)

    def plain(x: Tensor, e: Tensor) -> Tensor:
        with use_backend("reference"):
            return attend(x, graph, e)

    same(lambda x, e: attend(x, graph, e), plain, features.to(device), logits, tolerance=1e-10)


@pytest.mark.filterwarnings("ignore:The usage of `scatter")  # PyG recommends a package
@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "vpa"])
def test_against_pyg(
    batch: Batch, features: Tensor, device: str, aggr: str, same: Callable[..., None]
) -> None:
    edge_index = batch.edge_index.to(device)
    layer = SimpleConv(aggr=VariancePreservingAggregation() if aggr == "vpa" else aggr)
    same(
        lambda x: aggregate(x, edge_index, aggr),
        lambda x: layer(x, edge_index),
        features.to(device),
        tolerance=1e-10,
    )


@pytest.mark.parametrize("aggr", ["sum", "mean", "vpa"])
def test_readout_against_pyg(
    batch: Batch, features: Tensor, device: str, aggr: str, same: Callable[..., None]
) -> None:
    from torch_geometric.nn import aggr as pyg

    module = {
        "sum": pyg.SumAggregation(),
        "mean": pyg.MeanAggregation(),
        "vpa": VariancePreservingAggregation(),
    }[aggr]
    index = batch.batch.to(device)
    readout = Graph.readout(index, batch.num_graphs)
    same(
        lambda x: aggregate(x, readout, aggr),
        lambda x: module(x, index),
        features.to(device),
        tolerance=1e-10,
    )
