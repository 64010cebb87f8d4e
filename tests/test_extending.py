"""What CONTRIBUTING shows: an aggregation and a model are one entry and one file each."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch_geometric.data import Data

import gnn_vpa
from gnn_vpa.aggregations import AGGREGATIONS, names
from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.nn import MODELS
from gnn_vpa.signal import predicted_variance, signal_by_layer
from gnn_vpa.training import Lane, Protocol, Task, fit

AGGREGATION = """
from gnn_vpa.aggregations import AGGREGATIONS, Aggregation

AGGREGATIONS["third"] = Aggregation("third", "linear", 1 / 3, "#56B4E9", "3 3", "h")
"""

MODEL = '''
"""A model in a file of its own."""

from gnn_vpa.nn.gcn import GCN


class Twice(GCN):
    """The GCN with layers of twice the width."""

    name = "twice"

    def __init__(self, in_channels, num_classes, aggr="vpa", *, width=8, depth=2):
        super().__init__(in_channels, num_classes, aggr, width=2 * width, depth=depth)
'''


def _import(folder: Path, name: str, text: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def third(tmp_path: Path) -> Iterator[str]:
    _import(tmp_path, "an_aggregation", AGGREGATION)
    yield "third"
    del AGGREGATIONS["third"]


@pytest.fixture
def twice(tmp_path: Path) -> Iterator[str]:
    _import(tmp_path, "a_model", MODEL)
    yield "twice"
    del MODELS["twice"]


@pytest.fixture(scope="module")
def graphs() -> GraphSet:
    pair = torch.tensor([[0, 1], [1, 0]])
    line = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    some = [Data(edge_index=e, num_nodes=3, y=i) for i, e in enumerate((pair, line))] * 20
    return GraphSet.from_pyg(some, name="toy")


def _lanes(graphs: GraphSet) -> list[Lane]:
    return [Lane(fold, split) for fold, split in enumerate(splits(graphs.y, folds=4))]


def test_an_aggregation_that_is_added_is_everywhere(third: str, graphs: GraphSet) -> None:
    assert third in names()
    ends, x = torch.tensor([[1, 2, 3], [0, 0, 0]]), torch.ones(4, 1)
    assert gnn_vpa.aggregate(x, ends, third)[0].item() == pytest.approx(3 ** (2 / 3))
    assert predicted_variance(third, 8) == pytest.approx(8 ** (1 / 3))
    for name, model in MODELS.items():
        assert third in model.aggregations()
        network = gnn_vpa.build_model(name, 1, 2, third)
        network(x, ends, torch.zeros(4, dtype=torch.int64))
        assert signal_by_layer(network, x, ends, torch.zeros(4, dtype=torch.int64))
    for outcome in fit(graphs, Task("gin", third), Protocol(epochs=30), _lanes(graphs)):
        assert outcome.curve_train_loss[-1] < outcome.curve_train_loss[0] / 2


def test_a_model_that_is_added_trains_and_is_predicted(twice: str, graphs: GraphSet) -> None:
    model = gnn_vpa.build_model(twice, 1, 2, "power(0.3)", width=4)
    ends, batch = torch.tensor([[1, 2, 3], [0, 0, 0]]), torch.zeros(4, dtype=torch.int64)
    assert len(signal_by_layer(model, torch.ones(4, 1), ends, batch)) > 0
    for outcome in fit(graphs, Task(twice, "sum"), Protocol(epochs=30), _lanes(graphs)):
        assert outcome.curve_train_loss[-1] < outcome.curve_train_loss[0]
