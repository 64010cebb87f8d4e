"""Small models that several tests look at."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINEConv, global_add_pool

from gnn_vpa.graphs import GraphSet, load
from gnn_vpa.trained import TrainedModel, train_model
from gnn_vpa.training import Protocol, Task, own

QUICK = Protocol(epochs=2)


def signed(config: Mapping[str, Any]) -> bytes:
    """Return a configuration with its SHA-256 in it, made with zeros in that place."""
    unsigned = json.dumps({**config, "checksum": "0" * 64}).encode()
    digest = hashlib.sha256(unsigned).hexdigest().encode()
    return unsigned.replace(b'"checksum": "' + b"0" * 64, b'"checksum": "' + digest)


class Net(nn.Module):
    """A user's network that sees edge features."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int = 8) -> None:
        super().__init__()
        lin = nn.Sequential(nn.Linear(in_channels, hidden), nn.ReLU())
        self.conv, self.lin = GINEConv(lin, edge_dim=4), nn.Linear(hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_attr: Tensor) -> Tensor:
        """Return scores."""
        out: Tensor = self.lin(global_add_pool(self.conv(x, edge_index, edge_attr), batch))
        return out


class Negated(Net):
    """The same weights, and the opposite of what the network says."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_attr: Tensor) -> Tensor:
        """Return scores."""
        return -super().forward(x, edge_index, batch, edge_attr)


def make(in_channels: int, out_channels: int) -> nn.Module:
    """Make the network."""
    return Net(in_channels, out_channels)


def make_wider(in_channels: int, out_channels: int) -> nn.Module:
    """Make one with other weights."""
    return Net(in_channels, out_channels, 9)


def make_other(in_channels: int, out_channels: int) -> nn.Module:
    """Make one with the same weights that computes something else."""
    return Negated(in_channels, out_channels)


def some_graphs(count: int, y: Callable[[int], object], seed: int = 0) -> list[Data]:
    """Return random graphs with two node attributes."""
    torch.manual_seed(seed)
    graphs = []
    for number in range(count):
        nodes = int(torch.randint(2, 9, ()))
        edges = torch.randint(nodes, (2, 3 * nodes))
        graphs.append(Data(x=torch.randn(nodes, 2), edge_index=edges, y=y(number)))
    return graphs


@pytest.fixture(scope="session")
def mutag() -> GraphSet:
    """MUTAG, which comes with the package."""
    return load("MUTAG")


@pytest.fixture(scope="session")
def classifier(mutag: GraphSet) -> TrainedModel:
    """A model of classes and node labels."""
    return train_model(mutag, Task("gin", "vpa"), QUICK)


@pytest.fixture(scope="session")
def numbers() -> GraphSet:
    """Graphs of which two numbers are learned."""
    graphs = some_graphs(60, lambda n: torch.tensor([[5.0 + n % 7, 1000.0 * n]]))
    return GraphSet.from_pyg(graphs, "numbers")


@pytest.fixture(scope="session")
def regressor(numbers: GraphSet) -> TrainedModel:
    """A model of two numbers."""
    return train_model(numbers, Task("gcn", "vpa"), QUICK)


@pytest.fixture(scope="session")
def labeller() -> TrainedModel:
    """A model of two labels."""
    graphs = some_graphs(60, lambda n: torch.tensor([[float(n % 2), float(n % 3 == 0)]]))
    return train_model(GraphSet.from_pyg(graphs, "labels"), Task("sgc", "vpa"), QUICK)


@pytest.fixture(scope="session")
def own_model(mutag: GraphSet) -> TrainedModel:
    """A model of a user's own that sees edge features."""
    task = Task(own.register(make), "", source=own.source_hash(make))
    return train_model(mutag, task, QUICK)


@pytest.fixture
def saved(classifier: TrainedModel, tmp_path: Path) -> Path:
    """The classifier in a folder."""
    classifier.save(tmp_path / "mine")
    return tmp_path / "mine"
