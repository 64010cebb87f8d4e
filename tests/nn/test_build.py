"""The models against PyG's own layers, and the names they are built from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch

from gnn_vpa import UsageError, build_model
from gnn_vpa.graphs import features, read_tu
from gnn_vpa.nn import GAT, GCN, GIN, SGC, Model, WeightedGraph, with_self_loops
from gnn_vpa.ops import Graph

from .conftest import Batch as MadeBatch
from .conftest import PyGModel


def _pair(
    make_reference: type[PyGModel],
    kind: tuple[str, str],
    in_channels: int,
    dtype: torch.dtype = torch.float64,
) -> tuple[Model, PyGModel]:
    """Build our model and PyG's from the same seed."""
    name, aggr = kind
    torch.manual_seed(3)
    ours = build_model(name, in_channels, num_classes=3, aggr=aggr).to(dtype)
    torch.manual_seed(3)
    return ours, make_reference(name, aggr, in_channels, num_classes=3).to(dtype)


def test_initial_weights_are_those_of_pyg(
    make_reference: type[PyGModel], kind: tuple[str, str]
) -> None:
    ours, reference = _pair(make_reference, kind, 5, torch.float32)
    wanted = dict(reference.named_parameters())
    assert [name for name, _ in ours.named_parameters()] == list(wanted)
    for name, parameter in ours.named_parameters():
        assert torch.equal(parameter, wanted[name]), name


def test_training_is_that_of_pyg(
    make_reference: type[PyGModel],
    kind: tuple[str, str],
    make_batch: Callable[..., MadeBatch],
    assert_same_training: Callable[..., None],
) -> None:
    x, edge_index, batch = make_batch(0)
    ours, reference = _pair(make_reference, kind, 5)
    uniform = torch.rand(ours.dropout_shape(4), dtype=x.dtype)
    scores = ours(x, edge_index, batch, uniform=uniform)
    assert_same_training(ours, scores, reference, reference(x, edge_index, batch, uniform))


def test_evaluation_is_that_of_pyg(
    make_reference: type[PyGModel], kind: tuple[str, str], make_batch: Callable[..., MadeBatch]
) -> None:
    x, edge_index, batch = make_batch(1)
    ours, reference = (model.eval() for model in _pair(make_reference, kind, 5))
    expected = reference(x, edge_index, batch, None)
    torch.testing.assert_close(ours(x, edge_index, batch), expected, rtol=1e-10, atol=1e-10)


def test_training_on_mutag_is_that_of_pyg(
    make_reference: type[PyGModel],
    kind: tuple[str, str],
    tu_dir: Path,
    assert_same_training: Callable[..., None],
) -> None:
    graphs = read_tu(tu_dir / "MUTAG.zip")
    data = Batch.from_data_list([graphs.graph(i) for i in range(32)])
    codes = features(graphs).codes[: data.num_nodes]
    x = torch.eye(7, dtype=torch.float64)[codes]
    ours, reference = _pair(make_reference, kind, 7)
    uniform = torch.rand(ours.dropout_shape(32), dtype=x.dtype)
    readout = Graph.readout(data.batch, 32)
    scores = ours(codes, data.edge_index, readout, uniform=uniform)
    expected = reference(x, data.edge_index, data.batch, uniform)
    assert_same_training(ours, scores, reference, expected)


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("name", ["gin", "gcn", "gat", "sgc"])
@pytest.mark.sampled(3)
def test_a_whole_model_compiles_without_a_break(
    name: str, merged: bool, make_batch: Callable[..., MadeBatch]
) -> None:
    x, edge_index, batch = make_batch(0)
    shallow: dict[str, Any] = {} if name == "sgc" else {"depth": 2}
    model = build_model(name, 5, 3, **shallow).double()
    edges, nodes = (torch.arange(n) % 3 if merged else None for n in (edge_index.shape[1], len(x)))
    graph: Any = Graph(edge_index, len(x), edges)
    if name in ("gat", "sgc"):
        graph = WeightedGraph(graph, loops=True) if merged else with_self_loops(graph)
    readout = Graph.readout(batch, 4, nodes)
    args = (x, graph, readout, nodes, torch.rand(model.dropout_shape(4)))
    expected = model(*args)
    expected.sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    scores = torch.compile(model, fullgraph=True, backend="aot_eager")(*args)
    scores.sum().backward()
    torch.testing.assert_close(scores, expected)
    torch.testing.assert_close([parameter.grad for parameter in model.parameters()], gradients)


# Names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model"), [("GIN", GIN), ("gcn", GCN), ("Gat", GAT), ("sGc", SGC)]
)
def test_names_in_any_case(name: str, model: type[Model]) -> None:
    assert type(build_model(name, 5, 2)) is model


def test_printed_gin_has_five_layers_and_a_hidden_layer_of_64() -> None:
    model: Any = build_model("gin", 5, 2, variant="printed")
    linears = [layer for layer in model.head.modules() if isinstance(layer, nn.Linear)]
    assert len(model.convs) == 5
    assert [(lin.in_features, lin.out_features) for lin in linears] == [(64, 64), (64, 2)]


def test_printed_sgc_has_five_hops_and_the_others_are_as_released() -> None:
    assert build_model("sgc", 5, 2, variant="printed").K == 5
    for name in ("gcn", "gat"):
        assert repr(build_model(name, 5, 2, variant="printed")) == repr(build_model(name, 5, 2))


@pytest.mark.parametrize("name", ["gin", "gcn", "gat"])
def test_overrides(name: str, make_batch: Callable[..., MadeBatch]) -> None:
    x, edge_index, batch = make_batch(0)
    model: Any = build_model(name, 5, 2, width=8, depth=2, dropout=0.1, hidden=16).double()
    assert len(model.convs) == 2
    assert model.head.lin1.weight.shape == (16, 8)
    assert model.head.dropout.p == 0.1
    assert model(x, edge_index, batch).shape == (4, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gni", 5, 2), "name: 'gni' is unknown.*Did you mean 'gin'"),
        (("gin", 5, 2, "vap"), "aggr: 'vap' is unknown.*Did you mean 'vpa'"),
        (("gat", 5, 2, "mean"), "aggr: GAT has no 'mean', expected one of default, vpa, power"),
        (("gin", 5, 2, "vpa", "print"), "variant: 'print' is unknown.*Did you mean 'printed'"),
        (("gin", 0, 2), "in_channels: expected a whole number of at least 1, got 0"),
        (("gcn", 5, 0), "num_classes: expected a whole number of at least 1, got 0"),
        (("gcn", 5.0, 2), "in_channels: expected a whole number of at least 1, got 5.0"),
    ],
)
def test_what_cannot_be_built_is_named(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build_model(*arguments)


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("gin", {"widht": 8}, "option of gin: 'widht' is unknown.*Did you mean 'width'"),
        ("gin", {"K": 3}, "option of gin: 'K' is unknown"),
        ("sgc", {"K": 0}, "K: expected a whole number of at least 1, got 0"),
        ("gcn", {"depth": -1}, "depth: expected a whole number of at least 1, got -1"),
        ("gcn", {"hidden": 0}, "hidden: expected a whole number of at least 1, got 0"),
        ("gat", {"dropout": 1.0}, "dropout: expected a probability from 0 to below 1, got 1.0"),
    ],
)
def test_wrong_options_are_named(name: str, option: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build_model(name, 5, 2, **option)
