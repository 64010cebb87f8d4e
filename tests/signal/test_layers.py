import pytest
import torch
from torch import nn

from gnn_vpa import Graph, UsageError, build_model
from gnn_vpa.nn.deep import DeepGCN
from gnn_vpa.signal import LayerSignal, average_signals, signal_by_layer

METHODS = [(name, aggr) for name in ("gin", "gcn") for aggr in ("sum", "mean", "max", "vpa")]
METHODS += [(name, aggr) for name in ("gat", "sgc") for aggr in ("default", "vpa")]


def _hubs() -> tuple[torch.Tensor, torch.Tensor]:
    """Twenty stars of 2 to 11 leaves: many degrees, both ways."""
    edges, batch, first = [], [], 0
    for graph in range(20):
        leaves = 2 + graph % 10
        ends = torch.stack([torch.arange(1, leaves + 1), torch.zeros(leaves, dtype=torch.int64)])
        edges += [ends + first, ends.flip(0) + first]
        batch += [graph] * (leaves + 1)
        first += leaves + 1
    return torch.cat(edges, dim=1), torch.tensor(batch)


def _draws(
    name: str, aggr: str, x: torch.Tensor, count: int = 12, **options: int
) -> list[LayerSignal]:
    edges, batch = _hubs()
    graph, readout = Graph(edges, len(batch)), Graph.readout(batch)
    draws = []
    for seed in range(count):
        torch.manual_seed(seed)
        model = build_model(name, x.shape[1], 2, aggr, **options)  # type: ignore[arg-type]
        draws.append(signal_by_layer(model, x, graph, readout))
    return average_signals(draws)


@pytest.mark.parametrize(("name", "aggr"), METHODS)
def test_independent_features_meet_the_lemmas_in_the_first_layer(name: str, aggr: str) -> None:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(len(_hubs()[1]), 200, generator=draw)
    first = _draws(name, aggr, x, count=3)[0]
    assert first.rho == pytest.approx(0, abs=0.02)
    assert first.independent == pytest.approx(first.measured, rel=0.1)
    assert first.correlated == pytest.approx(first.independent, rel=0.1)


@pytest.mark.parametrize(("name", "aggr"), [m for m in METHODS if m[0] != "gin"])
def test_equal_features_are_predicted_by_their_correlation(name: str, aggr: str) -> None:
    layers = _draws(name, aggr, torch.ones(len(_hubs()[1]), 1), width=256, hidden=256)
    assert layers[0].rho == pytest.approx(1)
    for layer in layers:
        assert 0.5 < layer.correlated / layer.measured < 2, layer
    if aggr in ("sum", "vpa"):
        assert layers[-1].independent < 0.5 * layers[-1].measured, "independence fails"


def test_gin_is_told_what_its_norms_leave() -> None:
    x = torch.randn(len(_hubs()[1]), 16, generator=torch.Generator().manual_seed(0))
    layers = _draws("gin", "vpa", x, count=4)
    assert [layer.layer for layer in layers] == [f"convs.{i}.nn.0" for i in range(4)]
    assert all(0.5 < layer.correlated / layer.measured < 2 for layer in layers)


def test_a_residual_network_is_followed_through_its_sums() -> None:
    edges, batch = _hubs()
    draws = []
    for seed in range(6):
        torch.manual_seed(seed)
        model = DeepGCN(1, 2, width=128, depth=10, branch=0.2)
        draws.append(signal_by_layer(model, torch.ones(len(batch), 1), edges, batch))
    *layers, head = average_signals(draws)
    assert head.layer == "head.lin1"
    assert len(layers) == 10
    for layer in layers:
        assert layer.correlated == pytest.approx(layer.measured, rel=0.3)
    last = list(model.signals(torch.ones(len(batch), 1), edges))[-1]
    assert draws[-1][-2].measured == pytest.approx(last.var(correction=0).item(), rel=1e-4)


def test_codes_are_the_features_that_they_stand_for() -> None:
    edges, batch = _hubs()
    codes = torch.arange(len(batch)) % 3
    model = build_model("gcn", 3, 2)
    by_code = signal_by_layer(model, codes, edges, batch)
    assert by_code == signal_by_layer(model, torch.eye(3)[codes], edges, batch)


def test_looking_changes_nothing() -> None:
    edges, batch = _hubs()
    model = build_model("gin", 1, 2).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    signal_by_layer(model, torch.ones(len(batch), 1), edges, batch)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(module.training for module in model.modules())
    assert not any(module._forward_hooks for module in model.modules())


def test_wrong_use_is_named() -> None:
    edges, batch = _hubs()
    x = torch.ones(len(batch), 1)
    with pytest.raises(UsageError, match=r"model: expected one of .* got Linear"):
        signal_by_layer(nn.Linear(1, 1), x, edges, batch)  # type: ignore[arg-type]
    merged = Graph(edges, len(batch), torch.ones(edges.shape[1]))
    with pytest.raises(UsageError, match="graph: a merged graph hides degrees"):
        signal_by_layer(build_model("gcn", 1, 2), x, merged, batch)
