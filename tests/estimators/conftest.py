"""Graphs of two kinds, and estimators that are quick to fit."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa import GraphClassifier, GraphRegressor

QUICK: dict[str, Any] = {
    "width": 8, "depth": 2, "epochs": 3, "learning_rate": 0.01, "device": "cpu"
}  # fmt: skip


def star_or_path(number: int) -> Data:
    """A star where the number is odd, a path otherwise; of 4 to 9 nodes with a feature each."""
    nodes = 4 + number // 2 % 6
    target = torch.arange(1, nodes)
    source = torch.zeros_like(target) if number % 2 else target - 1
    edges = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
    x = torch.rand(nodes, 2, generator=torch.Generator().manual_seed(number))
    return Data(x=x, edge_index=edges, y=number % 2)


@pytest.fixture(scope="session")
def graphs() -> list[Data]:
    return [star_or_path(number) for number in range(60)]


@pytest.fixture(scope="session")
def labels() -> np.ndarray:
    return np.array(["path", "star"] * 30)


@pytest.fixture(scope="session")
def sizes(graphs: list[Data]) -> np.ndarray:
    return np.array([float(graph.num_nodes) for graph in graphs])


@pytest.fixture
def classifier() -> GraphClassifier:
    return GraphClassifier(**QUICK, random_state=0)


@pytest.fixture
def regressor() -> GraphRegressor:
    return GraphRegressor(aggr="sum", **QUICK, random_state=0)
