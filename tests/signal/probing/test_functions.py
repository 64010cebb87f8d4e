"""What no module does is shown between modules, and never charged to the one behind it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GraphConv, HeteroConv, SAGEConv, global_add_pool, to_hetero

import gnn_vpa
from gnn_vpa.signal import Report, Step

from .conftest import Sample


class Chain(nn.Module):
    """Two layers, with a function between them and one behind."""

    def __init__(
        self, between: Callable[[Tensor], Tensor], behind: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)
        self.between, self.behind = between, behind

    def forward(self, x: Tensor) -> Tensor:
        return self.behind(self.second(self.between(self.first(x))))


def functions(report: Report) -> list[Step]:
    return [step for step in report.steps if step.step == "function"]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (F.relu, "relu"),
        (torch.sigmoid, "sigmoid"),
        (lambda x: F.leaky_relu(x, 0.1), "leaky_relu"),
        (lambda x: x.relu_(), "relu"),
        (lambda x: global_add_pool(x, torch.arange(60) // 20), "scatter_add"),
        (lambda x: 3 * x.tanh(), "tanh, mul"),
    ],
    ids=["relu", "sigmoid", "leaky relu", "in place", "pooling", "two of them"],
)
def test_a_function_has_a_step_of_its_own(
    function: Callable[[Tensor], Tensor], name: str, sample: Sample
) -> None:
    model = Chain(function, torch.sigmoid)
    report = gnn_vpa.probe(model, sample.x)
    between, behind = functions(report)
    assert (between.name, between.kind) == ("between first and second", name)
    assert (behind.name, behind.kind) == ("after second", "sigmoid")
    assert [step.name for step in report.steps] == [
        "(input)", "first", between.name, "second", behind.name,
    ]  # fmt: skip
    first = model.first(sample.x)
    before = first.double().var(correction=0).item()
    after = function(first).double().var(correction=0).item()
    assert between.forward.variance == pytest.approx(after, rel=1e-6)
    assert between.gain == pytest.approx(after / before, rel=1e-6)
    assert between.backward is not None


def test_what_a_function_breaks_is_its_fault(sample: Sample) -> None:
    report = gnn_vpa.probe(Chain(torch.log, nn.Identity()), sample.x)
    assert report.findings[0].text.startswith("between first and second (log), function: ")


def test_what_a_function_makes_zero_is_its_fault(sample: Sample) -> None:
    report = gnn_vpa.probe(Chain(lambda x: F.relu(x - 100), nn.Identity()), sample.x)
    texts = [finding.text for finding in report.findings]
    assert any(text.startswith("between first and second (sub, relu): 100 %") for text in texts)
    assert not any(text.startswith("second") for text in texts)


def test_a_sum_of_several_results_names_them_all(sample: Sample) -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = (nn.Linear(8, 8) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            h = self.a(x)
            out: Tensor = self.c(h + self.b(h))
            return out

    model = Residual()
    (step,) = functions(gnn_vpa.probe(model, sample.x))
    a = model.a(sample.x)
    b = model.b(a)
    terms = (a.double().var(correction=0) + b.double().var(correction=0)).item() / 2
    assert step.name == "between a, b and c"
    assert step.between == ("a", "b", "c")
    assert step.gain == pytest.approx((a + b).double().var(correction=0).item() / terms, rel=1e-6)


def test_what_a_model_is_given_is_no_functions_work(sample: Sample) -> None:
    """A second input, a buffer and a parameter enter layers as they are."""

    class Gives(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c, self.d = (nn.Linear(8, 8) for _ in range(4))
            self.register_buffer("held", torch.randn(60, 8))
            self.weight = nn.Parameter(torch.randn(60, 8))

        def forward(self, x: Tensor, more: Tensor) -> tuple[Tensor, ...]:
            return self.a(x), self.b(more), self.c(self.held), self.d(self.weight)

    assert functions(gnn_vpa.probe(Gives(), sample.x, torch.randn(60, 8))) == []


@pytest.mark.parametrize("frozen", [True, False])
def test_without_gradients_a_function_has_no_name(frozen: bool, sample: Sample) -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            with torch.set_grad_enabled(not frozen):
                out: Tensor = self.lin(x.exp())
            return out

    (step,) = functions(gnn_vpa.probe(Early(), sample.x))
    assert (step.name, step.kind) == ("between (input) and lin", "function")
    assert step.gain != step.gain, "nobody knows what it was made of"


ACTIVATIONS = [
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.CELU, nn.SELU, nn.SiLU, nn.Mish, nn.Hardtanh,
    nn.Hardswish, nn.Hardsigmoid,
]  # fmt: skip


@pytest.mark.parametrize("act", ACTIVATIONS, ids=lambda act: act.__name__)
@pytest.mark.parametrize("norm", [nn.BatchNorm1d, nn.LayerNorm, nn.Identity])
def test_a_norm_shows_what_it_gave_whatever_works_in_place_behind_it(
    norm: Callable[[int], nn.Module], act: Callable[..., nn.Module], sample: Sample
) -> None:
    torch.manual_seed(0)
    layers = nn.Linear(8, 8), norm(8), nn.Linear(8, 4)
    reports = [
        gnn_vpa.probe(nn.Sequential(*layers[:2], act(inplace=inplace), layers[2]), sample.x)
        for inplace in (False, True)
    ]
    for expected, found in zip(reports[0].steps, reports[1].steps, strict=True):
        assert found.forward == expected.forward
        back, same = expected.backward, found.backward
        assert (back is None) == (same is None)
        if back is not None and same is not None:  # by another formula, where it is in place
            assert same.variance == pytest.approx(back.variance, rel=1e-5)
            assert same.zeros == back.zeros


def test_a_norm_with_its_relu_in_one_is_called_both(sample: Sample) -> None:
    report = gnn_vpa.probe(gnn_vpa.build_model("gin", 8, 3), *sample)
    norms = [step for step in report.steps if "BatchNorm" in step.kind]
    assert norms
    for step in norms:
        assert (step.kind == "BatchNorm, ReLU") == (step.forward.zeros > 0.2)


class Typed(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv, self.lin = SAGEConv((8, 8), 16), nn.Linear(16, 16)
        self.function = function

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.lin(self.function(self.conv(x, edge_index)))
        return out


def typed_graph(types: int) -> tuple[dict[str, Tensor], dict[tuple[str, str, str], Tensor]]:
    draw = torch.Generator().manual_seed(0)
    edges = {
        ("a", f"to{number}", "a"): torch.randint(200, (2, 600), generator=draw)
        for number in range(types)
    }
    return {"a": torch.randn(200, 8, generator=draw)}, edges


@pytest.mark.parametrize("types", [1, 2, 4])
@pytest.mark.parametrize("function", [lambda x: x, torch.relu], ids=["sum", "sum and relu"])
def test_a_sum_over_edge_types_is_named(types: int, function: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    x, edges = typed_graph(types)
    model = to_hetero(Typed(function), (["a"], list(edges)), aggr="sum")
    report = gnn_vpa.probe(model, x, edges)
    found = [finding for finding in report.findings if "edge types" in finding.text]
    assert len(found) == (types > 1)
    if not found:
        return
    step = next(step for step in functions(report) if step.edge_types)
    assert step.edge_types == types
    assert f"the results of {types} edge types are summed" in found[0].text
    assert f"to divide by √{types} would keep it (not tried" in found[0].text
    results = [
        conv(x["a"], edges[key]) for conv, key in zip(model.conv.values(), edges, strict=True)
    ]
    total = function(sum(results)).double().var(correction=0).item()
    mean = sum(result.double().var(correction=0).item() for result in results) / types
    assert step.gain == pytest.approx(total / mean, rel=1e-5)


@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "cat"])
def test_of_a_hetero_convs_groupings_only_the_sum_is_named(aggr: str) -> None:
    torch.manual_seed(0)
    x, edges = typed_graph(3)
    model = HeteroConv({key: GraphConv(8, 8, aggr="mean") for key in edges}, aggr=aggr)
    verdict = gnn_vpa.probe(model, x, edges).verdict
    assert ("the results of 3 edge types are summed" in verdict) == (aggr == "sum")
