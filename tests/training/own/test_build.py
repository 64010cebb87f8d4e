"""What is wrong with a user's model is said in a sentence, before anything is trained."""

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, SumAggregation

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.nn import Model
from gnn_vpa.pyg import VPGATConv
from gnn_vpa.training import Lane, Protocol, Task, fit
from gnn_vpa.training.own import build, check, conversion, register, unused_edge_features
from gnn_vpa.training.own.build import own_model

Write = Callable[[str, str], None]
HEAD = (
    "import torch\nfrom torch import nn\nfrom torch_geometric.nn import Linear, global_add_pool\n\n"
)


def net(forward: str, arguments: str = "x, edge_index, batch") -> str:
    """The source of a factory whose model has this forward."""
    return HEAD + (
        "class Net(nn.Module):\n"
        "    def __init__(self, i, o):\n"
        "        super().__init__()\n"
        "        self.lin = nn.Linear(i, o)\n"
        f"    def forward(self, {arguments}):\n"
        f"        {forward}\n\n"
        "def make(in_channels, out_channels, hidden=4):\n"
        "    return Net(in_channels, out_channels)\n"
    )


WRONG = {
    "def make(i, o):\n    raise ValueError('no such width.')": (
        r"mynet:make\(3, 2\) raised ValueError: no such width\."
    ),
    "def make(i, o):\n    return None": "must return a torch.nn.Module, but returned nothing",
    "def make(i, o):\n    return 'net'": "but returned an object of type str",
    "def make(i):\n    return None": r"mynet:make\(i\) cannot be called with in_channels",
    "def make(i, o, *, depth):\n    return None": "missing a required argument: 'depth'",
    net("return self.lin(x)"): (
        r"for 2 graphs the model must return a tensor of shape \(2, 2\).* returned a tensor"
    ),
    net("return global_add_pool(x, batch)"): r"returned a tensor of shape \(2, 3\)",
    net("return (global_add_pool(self.lin(x), batch), x)"): "returned an object of type tuple",
    net("raise KeyError('oh')"): "its model raised KeyError when it was called with two graphs",
    net("return x", "x, edge_index, batch, pos"): "forward wants pos, but bonds has no positions",
    net("return x", "x, edge_index, edge_weight, batch"): "bonds has no edge weights",
    net("return x", "x, edge_index, batch, mask"): "forward wants mask, but is called as model",
    HEAD + "def make(i, o):\n    return nn.ReLU()": "has no weights that could be trained",
}  # fmt: skip


@pytest.mark.parametrize("source", WRONG)
def test_a_wrong_model_is_named_before_anything_is_trained(
    bonds: GraphSet, write_module: Write, source: str
) -> None:
    write_module("mynet", source)
    lanes = [Lane(0, splits(bonds.y, 5)[0])]
    trained: list[int] = []
    tasks = [Task("gin", "vpa"), Task("mynet:make", "")]
    with pytest.raises(UsageError, match=WRONG[source]):
        fit(bonds, tasks, Protocol(epochs=1), lanes, progress=trained.append)
    assert trained == []


def test_an_unknown_option_is_named_with_those_there_are(
    bonds: GraphSet, write_module: Write
) -> None:
    write_module("mynet", net("return global_add_pool(self.lin(x), batch)"))
    with pytest.raises(
        UsageError, match=r"hidden=4\) cannot .* hiden=8: got an unexpected keyword"
    ):
        check(bonds, Task("mynet:make", "", options=(("hiden", 8),)))


def test_graphs_without_nodes_are_refused(mynets: ModuleType) -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    empty = Data(edge_index=none, x=torch.empty(0, 3), num_nodes=0, y=0)
    pair = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), x=torch.ones(2, 3), y=1)
    graphs = GraphSet.from_pyg([pair, empty], name="hollow")
    with pytest.raises(UsageError, match=r"hollow has graphs without nodes \(graph 1 is the first"):
        check(graphs, Task("mynets:gin", ""))


@pytest.mark.parametrize(
    "arguments",
    ["x, edge_index, batch", "x, edge_index, b", "x, adj, batch=None", "x, edge_index, *, batch",
     "x, edge_index, edge_attr=None, batch=None", "*args", "data"],
)  # fmt: skip
def test_however_forward_is_written_it_is_called_with_the_batch(
    bonds: GraphSet, write_module: Write, arguments: str
) -> None:
    unpacked = {"*args": "x, edge_index, batch = args", "data": "x, batch = data.x, data.batch"}
    first = unpacked.get(arguments, "batch = b" if arguments.endswith(" b") else "pass")
    write_module("mynet", net(f"{first}; return global_add_pool(self.lin(x), batch)", arguments))
    check(bonds, Task("mynet:make", ""))


def test_models_see_positions_weights_and_features_of_edges(write_module: Write) -> None:
    pair = torch.tensor([[0, 1], [1, 0]])
    graphs = GraphSet.from_pyg(
        [
            Data(
                edge_index=pair, x=torch.ones(2, 3), y=i % 2, pos=torch.rand(2, 2),
                edge_weight=torch.rand(2), edge_attr=torch.rand(2, 5),
            )
            for i in range(4)
        ]
    )  # fmt: skip
    tests = "assert (pos.shape[1], edge_weight.dim(), edge_attr.shape[1]) == (2, 1, 5)"
    text = net(
        f"{tests}; return global_add_pool(self.lin(x), batch)",
        "x, edge_index, pos, edge_weight, edge_attr, batch",
    )
    write_module("mynet", text)
    check(graphs, Task("mynet:make", ""))


def test_lazy_layers_draw_their_weights_from_the_same_seed(
    bonds: GraphSet, write_module: Write
) -> None:
    text = net("return global_add_pool(self.lin(x), batch)")
    write_module("mynet", text.replace("nn.Linear(i, o)", "Linear(-1, o)"))
    drawn = []
    for _ in range(2):
        torch.manual_seed(3)
        drawn.append(own_model(Task("mynet:make", ""), bonds).get_parameter("lin.weight"))
    assert drawn[0].shape == (2, 3)
    assert torch.equal(*drawn)


# Aggregations ---------------------------------------------------------------------------------


class Attending(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, chosen: str = "") -> None:
        super().__init__()
        self.aggr = chosen
        self.conv, self.pool = GATConv(in_channels, out_channels), SumAggregation()

    def forward(
        self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor
    ) -> torch.Tensor:
        return self.pool(self.conv(x, edge_index), batch)


def taking(in_channels: int, out_channels: int, aggr: str = "max") -> nn.Module:
    return Attending(in_channels, out_channels, aggr)


def test_an_aggregation_is_passed_where_it_is_taken_and_else_the_model_is_converted() -> None:
    passed = build(Task(register(taking), "vpa"), 3, 2)
    assert passed.model.aggr == "vpa"
    assert passed.report is None
    assert build(Task(register(taking), ""), 3, 2).model.aggr == "max"  # its own
    converted = build(Task(register(Attending), "vpa"), 3, 2).model
    assert isinstance(converted.conv, VPGATConv)
    text = conversion(Task(register(Attending), "vpa"))
    assert "conv  GATConv -> VPGATConv" in text
    assert conversion(Task(register(taking), "vpa")) == ""


def test_a_conversion_that_changes_nothing_is_no_method_of_its_own(mynets: ModuleType) -> None:
    with pytest.raises(UsageError, match="mynets:OfBatch takes no aggr, and there is nothing in"):
        build(Task("mynets:OfBatch", "vpa"), 3, 2)
    with pytest.raises(
        UsageError, match="mynets:gin takes no aggr, and cannot be converted to max"
    ):
        build(Task("mynets:gin", "max"), 3, 2)


# Edge features --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "is_used"),
    [("gin", False), ("mynets:gin", False), ("mynets:gine", True), ("mynets:OfBatch", True)],
)
def test_edge_features_that_a_model_does_not_see_are_spoken_of(
    bonds: GraphSet, toy_without: GraphSet, model: str, is_used: bool
) -> None:
    task = Task(model, "vpa" if model == "gin" else "")
    said = unused_edge_features(bonds, task)
    expected = f"bonds has edge features (2 columns), which {model} does not use: it is trained"
    assert (said is None) if is_used else str(said).startswith(expected)
    if model != "mynets:gine":
        assert unused_edge_features(toy_without, task) is None


@pytest.fixture
def toy_without(bonds: GraphSet) -> GraphSet:
    from dataclasses import replace

    return replace(bonds, edge_attributes=None)


def test_a_model_of_ours_is_none_of_theirs() -> None:
    assert isinstance(Task("gin", "vpa").build(3, 2), Model)
