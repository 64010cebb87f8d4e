import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import GAT, GIN, MLP, GraphConv, GraphSAGE, SAGEConv
from torch_geometric.nn.dense import Linear as PyGLinear

import gnn_vpa
from gnn_vpa import UsageError, init_
from gnn_vpa.nn.deep import DeepGCN
from gnn_vpa.signal._activations import gain


@pytest.fixture(autouse=True)
def _same_weights() -> None:
    torch.manual_seed(0)


def _std(report: object, path: str) -> float:
    return next(entry.std for entry in report.drawn if entry.path == path)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "mean_square"),
    [
        (F.relu, 1 / 2),
        (nn.Identity(), 1),
        (nn.LeakyReLU(0.2), (1 + 0.2**2) / 2),
        (F.selu, 1),  # its fixed point
        (nn.PReLU(), (1 + 0.25**2) / 2),
    ],
)
def test_the_gain_makes_up_for_the_activation(function: object, mean_square: float) -> None:
    assert gain(function) == pytest.approx(mean_square**-0.5, rel=1e-3)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_slopes_of_channels_count_on_average(dtype: torch.dtype) -> None:
    """A product with weights of equal spread sums over all of them."""
    act = nn.PReLU(num_parameters=4)
    with torch.no_grad():
        act.weight.copy_(torch.tensor([0.0, 0.25, -0.5, 2.0]))
    mean_square = (1 + (0.25**2 + 0.5**2 + 2**2) / 4) / 2
    assert gain(act.to(dtype)) == pytest.approx(mean_square**-0.5, rel=1e-6)
    assert act.weight.dtype == dtype
    model = nn.Sequential(nn.Linear(8, 4), act, nn.Linear(4, 2)).to(dtype)
    assert _std(init_(model), "2") == pytest.approx((mean_square * 4) ** -0.5, rel=1e-6)


def test_a_product_behind_slopes_keeps_the_variance(generator: torch.Generator) -> None:
    act = nn.PReLU(num_parameters=512)
    with torch.no_grad():
        act.weight.copy_(torch.linspace(-2, 2, 512))
    model = nn.Sequential(nn.Linear(512, 512), act, nn.Linear(512, 512))
    init_(model, generator=generator)
    z = torch.randn(1000, 512, generator=generator)
    # A third of it is of the means, which all inputs share: 512 squares of normals, 6 % of that.
    assert model[1:](z).square().mean().item() == pytest.approx(1, abs=4 * 0.0625 / 3)


def test_an_activation_of_ones_own_may_be_in_a_half_type() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.tensor(3.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.factor * x

    assert gain(Scaled().to(torch.bfloat16)) == pytest.approx(1 / 3, rel=1e-6)


def test_weights_have_the_reported_spread_and_biases_are_zero() -> None:
    model = nn.Sequential(nn.Linear(300, 400), nn.ReLU(), nn.Linear(400, 300))
    report = init_(model)
    for path, fan_in in (("0", 300), ("2", 400)):
        lin = model.get_submodule(path)
        assert _std(report, path) == pytest.approx(math.sqrt(2 / fan_in), rel=1e-3)
        assert lin.weight.std().item() == pytest.approx(_std(report, path), rel=0.02)
        assert not lin.bias.any()


def test_a_deep_mlp_keeps_the_variance(generator: torch.Generator) -> None:
    layers = [nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(40)]
    model = nn.Sequential(*layers, nn.Linear(256, 256))
    init_(model, generator=generator)
    x = math.sqrt(2) * torch.randn(100, 256, generator=generator).relu()
    assert 0.2 < model(x).var().item() < 5, "PyTorch's own weights give about 1e-2"


@pytest.mark.parametrize(("layer", "names"), [(GraphConv, ["rel", "root"]), (SAGEConv, ["l", "r"])])
def test_results_that_are_added_share_the_variance(layer: type, names: list[str]) -> None:
    report = init_(nn.ModuleList([layer(50, 8)]), "identity")
    for name in names:
        assert _std(report, f"0.lin_{name}") == pytest.approx(math.sqrt(1 / 100))


def test_a_layer_without_root_weight_has_it_all() -> None:
    report = init_(SAGEConv(50, 8, root_weight=False), "identity")
    assert _std(report, "lin_l") == pytest.approx(math.sqrt(1 / 50))


def test_gin_adds_the_node_itself_before_its_mlp() -> None:
    report = init_(GIN(50, 32, num_layers=1))
    assert _std(report, "convs.0.nn.lins.0") == pytest.approx(math.sqrt(2 / 2 / 50), rel=1e-3)
    assert _std(report, "convs.0.nn.lins.1") == pytest.approx(math.sqrt(2 / 32), rel=1e-3)


def test_a_converted_model_is_drawn_as_its_original() -> None:
    plain = GraphSAGE(5, 16, num_layers=3)
    converted, _ = gnn_vpa.convert(plain)
    first, second = init_(plain), init_(converted)
    assert [entry.std for entry in first.drawn] == [entry.std for entry in second.drawn]


@pytest.mark.parametrize("name", ["gin", "gcn", "gat", "sgc"])
def test_the_papers_models_are_rectified(name: str) -> None:
    report = init_(gnn_vpa.build_model(name, 7, 2))
    assert {entry.activation for entry in report.drawn} == {"relu"}


def test_a_deep_network_stays_near_one_where_messages_are_independent(
    generator: torch.Generator,
) -> None:
    model = DeepGCN(64, 2, depth=20, width=256)
    init_(model, generator=generator)
    loops = torch.arange(300).expand(2, -1)  # a single neighbour: nothing is correlated
    x = math.sqrt(2) * torch.randn(300, 64, generator=generator).relu()
    *_, last = model.signals(x, loops)
    assert 0.3 < last.var().item() < 3


class _Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.second(torch.tanh(self.first(x))))


def test_an_activation_is_found_in_the_code_of_forward() -> None:
    """The sigmoid at the end makes probabilities."""
    assert {entry.activation for entry in init_(_Functional()).drawn} == {"tanh"}


def test_the_nearest_activation_counts() -> None:
    inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 4))
    report = init_(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), inner))
    activations = {entry.path: entry.activation for entry in report.drawn}
    assert activations == {"0": "relu", "2.0": "tanh", "2.2": "tanh", "2.3": "identity"}


def test_it_can_be_told_the_activation() -> None:
    for activation in ("gelu", F.gelu, nn.GELU()):
        report = init_(MLP([8, 16, 4]), activation)
        assert _std(report, "lins.0") == pytest.approx(gain(F.gelu) / math.sqrt(8))


def test_what_is_left_is_listed_and_untouched() -> None:
    model = GAT(7, 16, num_layers=1, norm="BatchNorm")
    before = model.convs[0].att_src.clone()
    report = init_(model)
    assert report.left == ("convs.0.att_src", "convs.0.att_dst")
    assert torch.equal(model.convs[0].att_src, before)
    assert "convs.0.att_src: left as it was" in str(report)
    assert not model.convs[0].bias.any()


def test_a_generator_makes_it_repeatable() -> None:
    models = [nn.Linear(5, 5) for _ in range(2)]
    state = torch.get_rng_state()
    for model in models:
        init_(model, "relu", generator=torch.Generator().manual_seed(3))
    assert torch.equal(models[0].weight, models[1].weight)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # importing the compiler
def test_a_compiled_model_gets_the_weights_of_what_it_wraps() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    report = init_(torch.compile(model))  # type: ignore[arg-type]
    assert [entry.path for entry in report.drawn] == ["0"]
    assert not model[0].bias.any()


class _Two(_Functional):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.elu(self.second(F.relu(self.first(x))))


@pytest.mark.parametrize(
    ("model", "activation", "message"),
    [
        ("a string", None, "model: expected a torch.nn.Module, got str"),
        (nn.ReLU(), None, "model: it has no Linear layer"),
        (nn.ModuleList([PyGLinear(-1, 4)]), None, "model: 0 does not know its input size yet"),
        (_Two(), None, r"model: _Two has several activations \(elu, relu\)"),
        (nn.Linear(2, 2), "rely", "activation: 'rely' is unknown, expected one of identity, celu"),
        (nn.Linear(2, 2), torch.zeros_like, "activation: it makes everything 0"),
        (nn.Linear(2, 2), nn.Linear(3, 3), "activation: linear fails on 4,001 numbers in a row"),
        (nn.Linear(2, 2), nn.GLU(), "activation: glu fails on"),
        (nn.Linear(2, 2), torch.sum, r"activation: sum makes \[\] of a tensor of the shape"),
        (nn.Linear(2, 2), torch.numel, "activation: numel makes int of a tensor"),
    ],
)
def test_wrong_use_is_named(model: nn.Module, activation: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        init_(model, activation)
