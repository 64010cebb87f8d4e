"""A whole model in variance-preserving form, and the report of it."""

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import (
    GAT,
    GCN,
    GIN,
    AttentionalAggregation,
    EdgeCNN,
    EdgeConv,
    GATConv,
    GCNConv,
    GINConv,
    GraphConv,
    GraphSAGE,
    HeteroConv,
    LabelPropagation,
    MaxAggregation,
    MeanAggregation,
    MessagePassing,
    SAGEConv,
    Sequential,
    SGConv,
    SumAggregation,
    to_hetero,
)
from torch_geometric.typing import OptTensor
from torch_geometric.utils import degree

from gnn_vpa import UsageError, calibrate, init_
from gnn_vpa.pyg import VPAggregation, VPGATConv, VPGCNConv, VPSGConv, convert, register

EDGE_INDEX = torch.tensor([[1, 2, 3, 0, 4, 0], [0, 0, 0, 1, 3, 4]])
X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


class Plain(MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x)

    def message(self, x_j: Tensor) -> Tensor:
        """Send the feature."""
        return x_j


class Nonlinear(Plain):
    def message(self, x_j: Tensor) -> Tensor:
        return x_j.relu()


class Updating(Plain):
    def update(self, inputs: Tensor) -> Tensor:
        return 2 * inputs


class Weighted(MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x, edge_weight=edge_weight)

    def message(self, x_j: Tensor, edge_weight: Tensor) -> Tensor:
        return edge_weight.unsqueeze(-1) * x_j


class Normed(MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        norm = degree(edge_index[1], len(x)).clamp(min=1).reciprocal()[edge_index[1]]
        return self.propagate(edge_index, x=x, norm=norm)

    def message(self, x_j: Tensor, norm: Tensor) -> Tensor:
        return norm.unsqueeze(-1) * x_j


class OwnAggregate(Plain):
    def aggregate(self, inputs: Tensor, index: Tensor) -> Tensor:
        return inputs[:1]


class OwnPropagate(Plain):
    def propagate(self, edge_index: Tensor, **kwargs: Any) -> Tensor:
        return kwargs["x"]


class LoudGAT(GATConv):
    def message(self, x_j: Tensor, alpha: Tensor) -> Tensor:
        return 2 * alpha.unsqueeze(-1) * x_j


class LateGCN(GCNConv):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return 2 * super().forward(x, edge_index)


class LateGAT(GATConv):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return 2 * super().forward(x, edge_index)


class Optional(MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x)

    def message(
        self, x_j: Tensor, edge_weight: OptTensor = None, bonus: OptTensor = None
    ) -> Tensor:
        x_j = x_j if bonus is None else x_j + bonus
        return x_j if edge_weight is None else edge_weight.view(-1, 1) * x_j


class NamedGAT(GATConv):
    """Only the name is new."""


@pytest.mark.parametrize(
    ("model", "converted"),
    [
        (GCN(4, 8, 2), ["VPGCNConv"] * 2),
        (GIN(4, 8, 2), ["VPGINConv"] * 2),
        (GAT(4, 8, 2, heads=2), ["VPGATConv"] * 2),
        (GAT(4, 8, 2, v2=True), ["VPGATv2Conv"] * 2),
        (GraphSAGE(4, 8, 2), ["VPSAGEConv"] * 2),
        (GIN(-1, 8, 2), ["VPGINConv"] * 2),
        (Sequential("x, e", [(SGConv(4, 4), "x, e -> x"), nn.ReLU()]), ["VPSGConv"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_models_of_pyg(model: nn.Module, converted: list[str]) -> None:
    result, report = convert(model)
    assert [entry.after for entry in report.changed] == converted
    assert report.left == []
    assert result(X, EDGE_INDEX).isfinite().all()


def test_a_layer_or_an_aggregation_by_itself() -> None:
    assert type(convert(GATConv(4, 4))[0]) is VPGATConv
    assert type(convert(SGConv(4, 4))[0]) is VPSGConv
    for cls in (SumAggregation, MeanAggregation):
        module, report = convert(cls())
        assert type(module) is VPAggregation
        assert [entry.path for entry in report] == [""]
        assert module(torch.ones(4, 1), torch.zeros(4, dtype=torch.int64)).item() == 2


def test_everything_else_is_kept() -> None:
    shared = GINConv(nn.Linear(4, 4))
    model = nn.ModuleDict({"list": nn.ModuleList([shared, shared]), "drop": nn.Dropout()}).eval()
    seen: list[str] = []
    shared.register_forward_hook(lambda *_: seen.append("hook"))
    model["drop"].train()
    for parameter in shared.parameters():
        parameter.requires_grad_(False)
    result, report = convert(model.double())
    assert result["list"][0] is result["list"][1]
    assert [entry.path for entry in report] == ["list.0"]
    assert not result["list"][0].training
    assert result["drop"].training
    assert not any(p.requires_grad for p in result.parameters())
    assert result["list"][0](X.double(), EDGE_INDEX).dtype == torch.float64
    assert seen == ["hook"]
    assert type(shared) is GINConv
    assert isinstance(shared.aggr_module, SumAggregation)


def test_what_a_layer_had_cached_is_forgotten() -> None:
    for make, ours in ((GCNConv, VPGCNConv), (SGConv, VPSGConv)):
        layer = make(4, 4, cached=True)
        layer(X, EDGE_INDEX)
        expected = ours(4, 4)
        expected.load_state_dict(layer.state_dict())
        torch.testing.assert_close(convert(layer)[0](X, EDGE_INDEX), expected(X, EDGE_INDEX))


def test_several_kinds_of_edges() -> None:
    edges = {("a", "to", "a"): EDGE_INDEX, ("a", "of", "b"): EDGE_INDEX}
    layer = HeteroConv({key: SAGEConv((-1, -1), 4) for key in edges})
    result, report = convert(layer)
    assert len(report.changed) == 2
    assert "edge types" in report.left[0].reason
    assert result({"a": X, "b": X}, edges)["b"].shape == (6, 4)
    made = to_hetero(GraphSAGE(-1, 4, 2), (["a", "b"], list(edges)))
    result, report = convert(made)
    assert len(report.changed) == len(edges) * 2
    assert result({"a": X, "b": X}, edges)["b"].isfinite().all()


def test_converted_models_travel() -> None:
    model = nn.ModuleList([GINConv(nn.Linear(4, 4)), GraphConv(4, 4), SGConv(4, 4), NamedGAT(4, 4)])
    model.append(SumAggregation())
    result, _ = convert(model)
    buffer = io.BytesIO()
    torch.save(result, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, weights_only=False)
    for other in (loaded, copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert [type(m) for m in other] == [type(m) for m in result]
        for one, two in zip(list(other)[:4], list(result)[:4], strict=True):
            assert torch.equal(one(X, EDGE_INDEX), two(X, EDGE_INDEX))
    _, report = convert(result)
    assert not report.changed
    assert all("already" in entry.reason for entry in report)


def test_layers_of_ones_own() -> None:
    count = torch.tensor([3.0, 1, 1, 1, 1, 1]).unsqueeze(1)
    for cls in (Plain, Nonlinear, Updating):
        for aggr in ("sum", "mean"):
            layer = cls(aggr=aggr)
            result, report = convert(layer)
            assert report.changed[0].after == f"VP{cls.__name__}"
            factor = count.rsqrt() if aggr == "sum" else count.sqrt()
            torch.testing.assert_close(result(X, EDGE_INDEX), factor * layer(X, EDGE_INDEX))
    assert type(convert(Plain())[0])._linear
    assert not type(convert(Nonlinear())[0])._linear
    assert not type(convert(Updating())[0])._linear


@pytest.mark.parametrize("shape", [(6,), (6, 4)], ids=str)
def test_weights_of_ones_own_layer_enter_the_normaliser(shape: tuple[int, ...]) -> None:
    weight = torch.arange(1.0, 1 + torch.Size(shape).numel()).view(shape)

    class Here(Weighted):
        def message(self, x_j: Tensor, edge_weight: Tensor) -> Tensor:
            return (edge_weight if edge_weight.dim() == 2 else edge_weight[:, None]) * x_j

    result, _ = convert(Here())
    out = result(X, EDGE_INDEX, weight)
    used = weight[:3].view(3, -1)
    expected = (used * X[1:4]).sum(0) / used.square().sum(0).sqrt()
    torch.testing.assert_close(out[0], expected)
    assert convert(Weighted())[0](X, EDGE_INDEX, torch.ones(6)).isfinite().all()


def test_what_looks_like_a_normalisation_is_left_unless_included() -> None:
    layer = Normed()
    result, report = convert(layer)
    assert type(result) is Normed
    assert "include=[Normed]" in report.left[0].reason
    forced, report = convert(layer, include=[Normed])
    assert [entry.after for entry in report] == ["VPNormed"]
    factor = torch.tensor([3.0, 1, 1, 1, 1, 1]).rsqrt().unsqueeze(1)
    torch.testing.assert_close(forced(X, EDGE_INDEX), factor * layer(X, EDGE_INDEX))


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (OwnAggregate(), "code of its own"),
        (OwnPropagate(), "code of its own"),
        (LabelPropagation(2, 0.1), "'gcn_norm' looks like"),
        (LoudGAT(4, 4), "changes GATConv.message"),
        (LateGCN(4, 4), "changes GCNConv.forward"),
        (GATConv(4, 4, aggr="mean"), "on top of weights"),
        (GCNConv(4, 4, normalize=False), "vp_gcn_norm"),
        (EdgeConv(nn.Linear(8, 4)), "extremum"),
        (SAGEConv(4, 4, aggr=["mean", "max"]), "no sum or mean"),
        (MaxAggregation(), "include=[MaxAggregation]"),
        (AttentionalAggregation(nn.Linear(4, 1)), "no sum or mean"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_what_has_no_form_is_left_for_a_reason(layer: nn.Module, reason: str) -> None:
    result, report = convert(layer)
    assert type(result) is type(layer)
    assert reason in report.left[0].reason
    assert not report.changed


def test_the_maximum_is_replaced_on_request() -> None:
    model = nn.ModuleList([EdgeConv(nn.Linear(8, 4)), MaxAggregation(), SAGEConv(4, 4, aggr="max")])
    assert len(convert(model, include=[MaxAggregation])[1].changed) == 3
    result, report = convert(model, include=[EdgeConv])
    assert [entry.path for entry in report.changed] == ["0"]
    assert isinstance(result[0].aggr_module, VPAggregation)


def test_a_subclass_of_a_known_layer_takes_its_form() -> None:
    layer, plain = NamedGAT(4, 4), VPGATConv(4, 4)
    plain.load_state_dict(layer.state_dict())
    result, report = convert(layer)
    assert [entry.after for entry in report] == ["VPNamedGAT"]
    assert isinstance(result, NamedGAT)
    torch.testing.assert_close(result(X, EDGE_INDEX), plain(X, EDGE_INDEX))


def test_a_subclass_may_call_the_forward_of_its_parent() -> None:
    layer, plain = LateGAT(4, 4), VPGATConv(4, 4)
    plain.load_state_dict(layer.state_dict())
    torch.testing.assert_close(convert(layer)[0](X, EDGE_INDEX), 2 * plain(X, EDGE_INDEX))


def test_arguments_that_are_not_given_have_their_defaults() -> None:
    expected = convert(Plain())[0](X, EDGE_INDEX)
    torch.testing.assert_close(convert(Optional())[0](X, EDGE_INDEX), expected)


def test_a_registered_name_on_top_of_attention_is_mended() -> None:
    register()
    assert type(convert(GATConv(4, 4, aggr="vpa"))[0]) is VPGATConv


def test_a_scripted_model_is_left() -> None:
    _, report = convert(torch.jit.script(nn.Linear(2, 2)))
    assert "TorchScript" in report.left[0].reason


def test_a_layer_that_is_being_explained_stays_so() -> None:
    layer = GraphConv(4, 4)
    layer.explain = True
    layer._edge_mask, layer._loop_mask = torch.zeros(6), torch.ones(6, dtype=torch.bool)
    result, _ = convert(layer)
    masked = result(X, EDGE_INDEX)
    result.explain = False
    assert not torch.allclose(masked, result(X, EDGE_INDEX))


def _trained(model: nn.Module, steps: int = 50) -> nn.Module:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, edge_index = torch.randn(60, 8), torch.randint(60, (2, 300))
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x, edge_index), (x[:, 0] > 0).long()).backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("layers", [GCN, GAT, GIN, GraphSAGE], ids=lambda cls: cls.__name__)
def test_a_trained_network_is_converted_with_a_warning(layers: type[nn.Module]) -> None:
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match=r"had been trained \(convs.*Train it again"):
        _, report = convert(_trained(layers(8, 64, 3, 2)))
    assert str(report).endswith("Train it again.")


def test_a_norm_that_has_seen_data_is_a_sign_of_training() -> None:
    model = GCN(8, 8, 2, norm="batch_norm")
    model(torch.randn(60, 8), torch.randint(60, (2, 300)))
    with pytest.warns(UserWarning, match="has seen 1 batches"):
        convert(model)


@pytest.mark.parametrize("norm", [None, "batch_norm", "layer_norm"])
@pytest.mark.parametrize(
    "layers", [GCN, GAT, GIN, GraphSAGE, EdgeCNN], ids=lambda cls: cls.__name__
)
def test_a_fresh_network_is_converted_without_a_warning(
    layers: type[nn.Module], norm: str | None
) -> None:
    """Any warning is an error here, and weights that ``init_`` and ``calibrate`` made are fresh."""
    inputs = torch.randn(60, 8), torch.randint(60, (2, 300))
    for width in (4, 64):
        torch.manual_seed(width)
        model = layers(8, width, 3, 2, norm=norm, jk="lstm")
        convert(model)
        init_(model)
        convert(model)
        calibrate(model, inputs)
        _, report = convert(model.eval())
        assert report.advice == "The model computes something else now: train it."


def test_wrong_use_is_refused() -> None:
    with pytest.raises(UsageError, match=r"model: expected a torch\.nn\.Module, got type"):
        convert(GCN)
    with pytest.raises(UsageError, match="include: expected classes"):
        convert(GCN(2, 2, 1), include=["EdgeConv"])  # type: ignore[list-item]


def test_the_report() -> None:
    model = nn.ModuleDict({"a": GATConv(4, 4), "pool": MaxAggregation(), "lin": nn.Linear(4, 4)})
    _, report = convert(model)
    assert [entry.path for entry in report] == ["a", "pool"]
    assert len(report) == 2
    assert list(report.to_frame()["after"].isna()) == [False, True]
    lines = str(report).splitlines()
    assert lines[0] == "1 changed, 1 left"
    assert lines[1] == "  changed  a     GATConv -> VPGATConv"
    assert lines[2].startswith("  left     pool  MaxAggregation: ")
    assert str(report.left[0]).startswith("pool: MaxAggregation left: ")
    assert str(convert(nn.Linear(2, 2))[1]).startswith("nothing changed")
    assert str(convert(MaxAggregation())[1]).startswith("nothing changed, 1 left")


@pytest.mark.parametrize("layer", [SAGEConv, GraphConv], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("watched", [False, True], ids=["fused", "step by step"])
def test_any_power_takes_the_place_of_a_sum(layer: type[MessagePassing], watched: bool) -> None:
    power, report = convert(layer(8, 4, aggr="sum"), aggr="power(0.30)")
    assert "with power(0.3)" in str(report)
    if watched:
        power.register_message_forward_hook(lambda *_: None)
    ends = torch.tensor([[0, 1, 2, 3, 4, 0], [4, 4, 4, 4, 4, 1]])
    x = torch.randn(5, 8, dtype=torch.float64)
    count = torch.tensor([0, 1, 0, 0, 5]).clamp(min=1).double()
    first = "lin_l" if layer is SAGEConv else "lin_rel"
    root = "lin_r" if layer is SAGEConv else "lin_root"
    power = power.double()
    total = torch.zeros(5, 8, dtype=torch.float64).index_add_(0, ends[1], x[ends[0]])
    expected = getattr(power, first)(total * count[:, None] ** -0.3) + getattr(power, root)(x)
    torch.testing.assert_close(power(x, ends), expected)


def test_attention_has_no_form_with_a_power() -> None:
    _, report = convert(GATConv(8, 4), aggr="power(0.3)")
    assert "has no form with power(0.3)" in str(report)
    with pytest.raises(UsageError, match="'max' is no sum"):
        convert(GATConv(8, 4), aggr="max")
