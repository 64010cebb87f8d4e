"""The verdict says what was measured, and names only remedies that were tried."""

import copy
import math
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import (
    GCN,
    GIN,
    PNA,
    GINEConv,
    GraphConv,
    SAGEConv,
    Sequential,
    SumAggregation,
    global_add_pool,
    global_mean_pool,
)

import gnn_vpa
from gnn_vpa.signal.probing import _verdict
from gnn_vpa.signal.probing._numbers import percent, times
from gnn_vpa.signal.probing._symptoms import symptoms

from .conftest import Sample


@pytest.fixture
def star() -> tuple[Tensor, Tensor]:
    """Five hubs, each of which hears from 500 others, who hear from one another."""
    hub, other = torch.meshgrid(torch.arange(5), torch.arange(5, 505), indexing="ij")
    spokes = torch.stack([other.flatten(), hub.flatten()])
    ring = torch.stack([other[0], other[0].roll(1)])
    x = torch.randn(505, 16, generator=torch.Generator().manual_seed(0))
    return x, torch.cat([spokes, ring], dim=1)


def test_it_names_the_layer_the_cause_and_the_remedy(star: tuple[Tensor, Tensor]) -> None:
    torch.manual_seed(0)
    x, edge_index = star
    model = Sequential("x, e", [(GraphConv(16, 16, aggr="sum"), "x, e -> x")])
    report = gnn_vpa.probe(model, x, edge_index)
    (finding,) = report.findings
    summed = gnn_vpa.aggregate(x, edge_index, "sum").double()
    gain = (summed.var(correction=0) / x.double().var(correction=0)).item()
    kept = gnn_vpa.aggregate(x, edge_index, "vpa").double()
    assert finding.layer == "module_0"
    assert finding.value == pytest.approx(gain, rel=1e-6)
    assert finding.remedy == "convert(model)"
    assert finding.remedied == pytest.approx(
        (kept.var(correction=0) / x.double().var(correction=0)).item(), rel=1e-5
    )
    hubs = (summed[:5] - summed.mean()).square().sum() / (summed - summed.mean()).square().sum()
    assert finding.text == (
        f"module_0 (GraphConv), sum: variance {times(gain)} ({times(3000 / 505)} if messages were "
        "independent); nodes of degree 256 or more (0.99 %) "
        f"carry {percent(hubs.item())} of it; "
        f"convert(model) would make it {times(finding.remedied)}."
    )
    assert report.verdict == finding.text


def test_a_remedy_that_does_not_help_is_not_named(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    report = gnn_vpa.probe(GIN(8, 16, 2), sample.x, sample.edge_index)
    monkeypatch.setattr(_verdict, "trials", lambda call: [("a prayer", call)])
    assert report.findings
    for finding in report.findings:
        assert finding.remedy == ""
        assert math.isnan(finding.remedied)
        assert "tried without success: a prayer" in finding.text


class DeepGINE(nn.Module):
    """Ten layers that see edges, and grow with the weights of ``init_``."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            GINEConv(nn.Sequential(nn.Linear(w, 64), nn.ReLU(), nn.Linear(64, 64)), edge_dim=4)
            for w in (8, *[64] * 9)
        )
        self.lin = nn.Linear(64, 2)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index, edge_attr).relu()
        out: Tensor = self.lin(global_mean_pool(x, batch))
        return out


class DeepPNA(nn.Module):
    """Layers whose scalers ``init_`` does not know."""

    def __init__(self) -> None:
        super().__init__()
        aggregators, scalers = ["mean", "max", "std"], ["identity", "amplification", "attenuation"]
        degrees = torch.tensor([0, 10, 20, 20, 10])
        self.pna = PNA(8, 64, 4, aggregators=aggregators, scalers=scalers, deg=degrees, edge_dim=4)
        self.lin = nn.Linear(64, 2)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Tensor:
        out: Tensor = self.lin(global_add_pool(self.pna(x, edge_index, None, edge_attr), batch))
        return out


@pytest.mark.parametrize("has_loss", [True, False], ids=["loss", "no loss"])
@pytest.mark.parametrize("make", [DeepGINE, DeepPNA])
def test_no_remedy_is_named_that_makes_the_network_worse(
    make: Callable[[], nn.Module], has_loss: bool, sample: Sample
) -> None:
    """Every remedy that is named, applied as one would, starts with a loss like the plain one's."""
    torch.manual_seed(0)
    model, target = make(), torch.tensor([0, 1, 0])
    edge_attr = nn.functional.one_hot(sample.edge_index[0] % 4, 4).float()
    inputs = sample.x, sample.edge_index, edge_attr, sample.batch

    def loss(out: Tensor) -> Tensor:
        return nn.functional.cross_entropy(out, target)

    plain = loss(model(*inputs)).item()
    findings = gnn_vpa.probe(model, *inputs, loss=loss if has_loss else None).findings
    remedies = {finding.remedy for finding in findings} - {""}
    assert remedies
    for remedy in remedies:
        mended = gnn_vpa.convert(model)[0] if "convert" in remedy else copy.deepcopy(model)
        if "init_" in remedy:
            gnn_vpa.init_(mended)
        if "calibrate" in remedy:
            gnn_vpa.calibrate(mended, inputs)
        assert loss(mended(*inputs)).item() < 4 * plain, remedy


def test_a_remedy_that_helps_one_layer_and_harms_the_whole_says_so(sample: Sample) -> None:
    torch.manual_seed(0)
    edge_attr = nn.functional.one_hot(sample.edge_index[0] % 4, 4).float()
    # calibrate takes inputs by place or by name, so it is not tried here
    report = gnn_vpa.probe(
        DeepGINE(), sample.x, sample.edge_index, edge_attr=edge_attr, batch=sample.batch
    )
    pattern = r"convert\(model\), then init_\(model\) \(.*, but a loss of \d+ instead of 3\.\d+\)"
    assert any(re.search(pattern, finding.text) for finding in report.findings)
    assert not any("init_" in finding.remedy for finding in report.findings)


def test_the_verdict_draws_the_random_numbers_of_the_probe(sample: Sample) -> None:
    """Remedies meet the same dropout as the model did, whatever is drawn before they are tried."""
    torch.manual_seed(0)
    model = GIN(8, 16, 4, dropout=0.5)
    verdicts: list[str] = []
    for _ in range(2):
        torch.manual_seed(1)
        report = gnn_vpa.probe(model, sample.x, sample.edge_index)
        torch.rand(len(verdicts))
        verdicts.append(report.verdict)
    assert "convert(model)" in verdicts[0]
    assert verdicts[0] == verdicts[1]


def test_remedies_are_tried_on_the_model_as_it_was(sample: Sample) -> None:
    """Weights that change between the probe and the verdict do not change the verdict."""
    torch.manual_seed(0)
    model = GIN(8, 16, 4)
    x, edge_index = sample.x, sample.edge_index
    expected = gnn_vpa.probe(model, x, edge_index).verdict
    report = gnn_vpa.probe(model, x, edge_index)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(100)
        x.mul_(7)
    assert report.verdict == expected


def test_a_sum_that_explodes_with_depth_is_told_with_its_rate(sample: Sample) -> None:
    torch.manual_seed(0)
    crowded = torch.cat([sample.edge_index] * 4, dim=1)
    report = gnn_vpa.probe(GIN(8, 32, 8), sample.x, crowded)
    layers = [step.forward.variance for step in report.steps if step.step == "update"]
    rate = (layers[-1] / layers[0]) ** (1 / 7)
    found = next(f for f in report.findings if "the variance grows" in f.text)
    assert found.value == pytest.approx(rate)
    assert found.remedy
    assert abs(math.log(found.remedied)) < abs(math.log(rate)) / 2


def test_what_is_not_finite_comes_first(sample: Sample) -> None:
    class Breaks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.where(x > 1, torch.inf, x)

    model = nn.Sequential(nn.Linear(8, 8), Breaks(), nn.Identity())
    x = sample.x
    report = gnn_vpa.probe(model, x)
    count = int((model[0](x) > 1).sum())
    assert report.findings[0].layer == "1"
    assert f"{count} of 480 values are NaN or infinite" in report.findings[0].text


class Root(nn.Module):
    """Its derivative is infinite at 0, and 0 times that is NaN."""

    def forward(self, x: Tensor) -> Tensor:
        return (x * (x > 0)).sqrt()


def test_a_gradient_that_alone_is_not_finite_is_named(sample: Sample) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), Root(), nn.Linear(8, 8))
    hidden = model[:2](sample.x)
    sent = torch.randn(60, 8, generator=torch.Generator().manual_seed(0))
    (gradient,) = torch.autograd.grad(model[2:](hidden), hidden, sent)
    count = int((~gradient.isfinite()).sum())
    assert count > 0
    report = gnn_vpa.probe(model, sample.x)
    assert not any(step.forward.nonfinite for step in report.steps)
    assert report.findings[0].layer == "1"
    text = report.findings[0].text
    assert text.startswith(f"1 (Linear), output: {count} of 480 values of its gradient are NaN or")
    assert "the gradient of 2, behind it, still is finite" in text
    assert f"{count} NaN/∞" in str(report)


def test_a_gradient_that_the_loss_breaks_is_the_losses(sample: Sample) -> None:
    report = gnn_vpa.probe(nn.Linear(8, 8), sample.x, loss=lambda out: (0 * out).norm().sqrt())
    assert "no layer ran behind it, the loss sends them" in report.verdict
    report = gnn_vpa.probe(nn.Linear(8, 8), sample.x, loss=lambda out: (out - 100).log().sum())
    assert "The loss is nan." in report.verdict
    assert "keeps its scale" not in report.verdict


def test_a_parameter_whose_gradient_alone_is_not_finite_is_named(sample: Sample) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin, self.scale = nn.Linear(8, 8), nn.Parameter(torch.zeros(3))

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.lin(x) * (1 + self.scale.sqrt().sum())
            return out

    report = gnn_vpa.probe(nn.Sequential(Scaled()), sample.x)
    assert report.findings[0].layer == "0"
    assert report.findings[0].text.startswith("0, parameter scale: 3 of 3 values of its gradient")


def test_an_aggregation_stands_beside_what_theory_says_of_an_aggregation(sample: Sample) -> None:
    """A GCN's messages are small, and their sum is not: the layer's gain is neither of them."""
    torch.manual_seed(0)
    report = gnn_vpa.probe(GCN(8, 16, 2), sample.x, sample.edge_index)
    step = next(s for s in report.steps if s.step == "aggregation" and s.total_gain < 0.5)
    text = next(f.text for f in report.findings if f.layer == step.layer)
    assert text.startswith(
        f"{step.layer} (GCNConv), sum: variance {times(step.total_gain)}: its messages "
        f"{times(step.total_gain / step.gain)}, their aggregation {times(step.gain)} "
        f"({times(step.expected_gain)} if they were independent)"
    )


def test_neighbours_that_were_alike_from_the_start_have_not_become_so(sample: Sample) -> None:
    for seed in range(10):
        torch.manual_seed(seed)
        report = gnn_vpa.probe(GCN(8, 8, 2, 4), 3 * sample.x + 20, sample.edge_index)
        distances = [step.distance for step in report.steps if step.distance == step.distance]
        assert distances[0] < 0.05
        assert "become alike" not in report.verdict
        if distances[-1] < 0.0025:
            assert "features of nearly the same direction at (input)" in report.verdict


def test_nan_in_the_input_is_the_inputs_fault(sample: Sample) -> None:
    sample.x[0, 0] = math.nan
    report = gnn_vpa.probe(nn.Linear(8, 8), sample.x)
    assert "the model was given them" in report.findings[0].text


def test_what_the_input_is_at_fault_for_is_said_once_and_no_remedy_is_tried(
    sample: Sample,
) -> None:
    report = gnn_vpa.probe(GCN(8, 8, 2, 4), sample.x * math.inf, sample.edge_index)
    (finding,) = report.findings
    assert finding.text.startswith("the model's input: 480 of 480 values are NaN or infinite; ")
    assert "tried without success" not in finding.text


def test_neighbours_that_become_alike_are_seen(sample: Sample) -> None:
    torch.manual_seed(0)
    layers = [(SAGEConv(8, 8, aggr="mean", root_weight=False), "x, e -> x") for _ in range(8)]
    report = gnn_vpa.probe(Sequential("x, e", layers), sample.x, sample.edge_index)
    last = [step for step in report.steps if step.step == "update"][-1]
    found = next(f for f in report.findings if "become alike" in f.text)
    assert found.value == last.distance < 0.05


@pytest.mark.parametrize("seed", range(4))
def test_constant_features_stay_constant_under_a_mean(sample: Sample, seed: int) -> None:
    torch.manual_seed(seed)
    model = gnn_vpa.build_model("gcn", 1, 2, "mean")
    report = gnn_vpa.probe(model, torch.ones(60, 1), sample.edge_index, sample.batch)
    assert any("have the same features at (input)" in f.text for f in report.findings)


def test_dead_activations_are_seen() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    nn.init.constant_(model[0].bias, -100)  # type: ignore[arg-type]
    report = gnn_vpa.probe(model, torch.randn(50, 8))
    assert any("100 % of the values are 0" in f.text for f in report.findings)


def test_a_readout_is_judged_by_the_size_of_the_graphs() -> None:
    sizes = torch.tensor([1] * 50 + [400])
    batch = torch.repeat_interleave(torch.arange(51), sizes)
    x = torch.randn(450, 8, generator=torch.Generator().manual_seed(0))

    class Pools(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pool, self.lin = SumAggregation(), nn.Linear(8, 2)

        def forward(self, x: Tensor, batch: Tensor) -> Tensor:
            out: Tensor = self.lin(self.pool(x, batch))
            return out

    report = gnn_vpa.probe(Pools(), x, batch=batch)
    found = next(f for f in report.findings if f.layer == "pool")
    assert "in the readout" in found.text
    pooled = torch.zeros(51, 8).index_add(0, batch, x).double()
    share = (pooled[50] - pooled.mean()).square().sum() / pooled.var(correction=0) / pooled.numel()
    expected = f"graphs of 256 nodes or more (2 %) carry {percent(share.item())} of it"
    assert expected in found.text
    assert found.remedy == "convert(model)"


def test_a_healthy_network_is_told_so() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(64, 64, bias=False) for _ in range(4)))
    for layer in model:
        nn.init.normal_(layer.weight, std=1 / 8)  # type: ignore[arg-type]
    report = gnn_vpa.probe(model, torch.randn(200, 64))
    assert report.findings == ()
    assert report.verdict.startswith("The signal keeps its scale: from 0 to 3, 4 layers")


def test_every_symptom_measures_itself(sample: Sample) -> None:
    """Measured again on the same steps, a symptom is what it was."""
    torch.manual_seed(0)
    for model in (GIN(8, 32, 8), gnn_vpa.convert(GIN(8, 32, 8))[0]):
        steps = gnn_vpa.probe(model, sample.x, sample.edge_index).steps
        for symptom in symptoms(steps):
            assert symptom.measure(steps) == pytest.approx(symptom.value)
            assert symptom.badness(symptom.value) > 0
