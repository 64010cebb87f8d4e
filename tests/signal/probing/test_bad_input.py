"""A useful answer to everything that can be wrong."""

import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GCN, GATConv, GCNConv, GraphConv, Sequential

import gnn_vpa
from gnn_vpa import GnnVpaError, UsageError
from gnn_vpa.signal.probing._numbers import times

from .conftest import Sample


def test_a_model_that_does_not_run_names_the_layer_and_the_shapes(sample: Sample) -> None:
    model = GCN(8, 8, 2)
    with pytest.raises(UsageError) as caught:
        gnn_vpa.probe(model, torch.randn(60, 5), sample.edge_index)
    text = str(caught.value)
    assert "convs.0.lin (Linear)" in text
    assert "x: [60, 5]" in text
    assert "mat1 and mat2" in text
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_missing_inputs_are_an_error_too() -> None:
    with pytest.raises(UsageError, match="missing 1 required positional argument"):
        gnn_vpa.probe(GCN(8, 8, 2), torch.randn(3, 8))


@pytest.mark.parametrize("model", ["model", GCN, None], ids=["a string", "a class", "None"])
def test_what_is_no_model_is_named(model: Any) -> None:
    with pytest.raises(UsageError, match=r"expected a torch.nn.Module, got (str|type|NoneType)"):
        gnn_vpa.probe(model, torch.randn(3, 8))
    with pytest.raises(UsageError, match=r"expected a torch.nn.Module"):
        gnn_vpa.probe.during(model)


class Returns(nn.Module):
    def __init__(self, value: object) -> None:
        super().__init__()
        self.lin, self.value = nn.Linear(8, 4), value

    def forward(self, x: Tensor) -> object:
        self.lin(x)
        return self.value


@pytest.mark.parametrize("value", [None, 3, "text", torch.tensor([1, 2])], ids=str)
def test_a_model_that_returns_no_tensor_of_numbers_is_seen_forward(value: object) -> None:
    report = gnn_vpa.probe(Returns(value), torch.randn(10, 8))
    assert [step.name for step in report.steps] == ["(input)", "lin"]
    assert all(step.backward is None for step in report.steps)
    assert "no gradient could be sent back" in report.verdict
    assert "loss=" in report.verdict


@pytest.mark.parametrize(
    "wrap",
    [lambda x: (x, "text"), lambda x: {"a": [x]}, lambda x: [None, (x,)]],
    ids=["tuple", "dict", "list"],
)
def test_tensors_are_found_wherever_they_are_returned(wrap: Any) -> None:
    class Wraps(nn.Linear):
        def forward(self, x: Tensor) -> Any:
            return wrap(super().forward(x))

    report = gnn_vpa.probe(Wraps(8, 4), torch.randn(10, 8))
    assert report.steps[-1].shape == (10, 4)
    assert report.steps[-1].backward is not None


def test_a_model_without_message_passing_is_told_so() -> None:
    report = gnn_vpa.probe(nn.Linear(8, 4), torch.randn(10, 8))
    assert "No message passing was seen" in report.verdict
    assert report.to_frame(by="degree").empty


def test_a_model_without_parameters_is_differentiated_by_its_inputs(sample: Sample) -> None:
    report = gnn_vpa.probe(nn.Sequential(nn.ReLU(), nn.Tanh()), sample.x)
    assert report.steps[-1].backward is not None
    assert report.steps[0].backward is not None


def test_a_layer_that_runs_twice_appears_twice(sample: Sample) -> None:
    conv = GraphConv(8, 8)

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = conv

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            out: Tensor = self.conv(self.conv(x, edge_index).relu(), edge_index)
            return out

    report = gnn_vpa.probe(Twice(), sample.x, sample.edge_index)
    updates = [step for step in report.steps if step.step == "update"]
    assert [(step.name, step.call) for step in updates] == [("conv", 1), ("conv #2", 2)]
    middle = conv(sample.x, sample.edge_index)
    last = conv(middle.relu(), sample.edge_index)
    for step, value in zip(updates, (middle, last), strict=True):
        assert step.forward.variance == pytest.approx(
            value.double().var(correction=0).item(), rel=1e-6
        )


def test_what_works_in_place_spoils_no_statistics() -> None:
    torch.manual_seed(0)
    layers = [nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.LeakyReLU(0.1), nn.Linear(8, 4)]
    plain = nn.Sequential(*layers)
    changed = nn.Sequential(
        layers[0], nn.ReLU(inplace=True), layers[2], nn.LeakyReLU(0.1, inplace=True), layers[4]
    )
    x = torch.randn(50, 8)
    one, other = gnn_vpa.probe(plain, x), gnn_vpa.probe(changed, x)
    for expected, found in zip(one.steps, other.steps, strict=True):
        assert found.forward == expected.forward
        assert found.backward == expected.backward
        assert found.gain == expected.gain or expected.step == "input"


def test_a_model_may_change_its_input_in_place() -> None:
    x = torch.randn(50, 8)
    before = x.clone()
    report = gnn_vpa.probe(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(8, 4)), x)
    assert torch.equal(x, before)
    assert report.steps[0].forward.zeros == 0
    assert report.steps[1].forward.zeros > 0.3


def test_meta_tensors_have_no_numbers(sample: Sample) -> None:
    with pytest.raises(UsageError, match="the model is on the device meta"):
        gnn_vpa.probe(GCN(8, 8, 2).to("meta"), sample.x, sample.edge_index)
    with pytest.raises(UsageError, match="an input is on the device meta"):
        gnn_vpa.probe(GCN(8, 8, 2), sample.x.to("meta"), sample.edge_index)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_another_device_is_named(sample: Sample) -> None:
    with pytest.raises(UsageError, match=r"model is on cuda:0, the inputs on cpu.*to\('cuda:0'\)"):
        gnn_vpa.probe(GCN(8, 8, 2).cuda(), sample.x, sample.edge_index)


def test_another_device_is_named_without_one(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, with a model that says it is elsewhere."""

    class Elsewhere(nn.Parameter):
        device = torch.device("cuda:0")

    model = nn.Linear(8, 8)
    far = [Elsewhere(torch.ones(1))]
    monkeypatch.setattr(model, "parameters", lambda: far, raising=False)
    with pytest.raises(UsageError, match=r"model is on cuda:0, the inputs on cpu.*to\('cuda:0'\)"):
        gnn_vpa.probe(model, sample.x)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda out: out, r"single number that depends on the model, got \[10, 4\]"),
        (lambda out: 3.0, "got float"),
        (lambda out: out.detach().sum(), "depends on the model"),
        (lambda out: F.cross_entropy(out, torch.zeros(3)), "failed on what the model returned"),
    ],
    ids=["no number", "no tensor", "detached", "fails"],
)
def test_a_loss_that_does_not_fit_is_explained(loss: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        gnn_vpa.probe(nn.Linear(8, 4), torch.randn(10, 8), loss=loss)


def test_a_backward_pass_that_fails_leaves_the_forward_signal() -> None:
    class Spoils(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.lin(x).exp()
            out = hidden * 2
            hidden.zero_()  # what the derivative of exp needs
            return out

    report = gnn_vpa.probe(Spoils(), torch.randn(10, 8))
    assert "The backward pass failed" in report.verdict
    assert report.steps[-1].forward.count == 80


def test_scripted_modules_are_shown_from_outside(sample: Sample) -> None:
    scripted = torch.jit.script(nn.Sequential(nn.Linear(8, 8), nn.ReLU()))
    report = gnn_vpa.probe(nn.Sequential(scripted, nn.Linear(8, 2)), sample.x)
    assert [step.layer for step in report.steps] == ["", "0", "1"]
    assert "0 (RecursiveScriptModule) is compiled" in report.verdict
    assert "torch.jit" in report.notes[0]


def test_compiled_modules_are_shown_from_outside(sample: Sample) -> None:
    compiled: Any = torch.compile(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), backend="eager")
    report = gnn_vpa.probe(nn.Sequential(compiled, nn.Linear(8, 2)), sample.x)
    assert [step.layer for step in report.steps] == ["", "0", "1"]
    assert "0 (OptimizedModule) is compiled" in report.verdict
    assert "_orig_mod" in report.notes[0]
    whole = gnn_vpa.probe(compiled, sample.x)
    assert [step.kind for step in whole.steps] == ["input", "OptimizedModule"]


def test_a_model_that_cannot_be_copied_is_told_what_to_do() -> None:
    model = nn.Linear(8, 4)
    model.lock = threading.Lock()  # type: ignore[assignment]
    with pytest.raises(UsageError, match=r"cannot be copied.*probe.during"):
        gnn_vpa.probe(model, torch.randn(10, 8))
    with gnn_vpa.probe.during(model, every=1) as signal:
        model(torch.randn(10, 8)).sum().backward()
    assert len(signal.reports) == 1


def test_an_error_that_the_model_catches_is_no_error(sample: Sample) -> None:
    class Falls(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wrong, self.right = nn.Linear(3, 3), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            try:
                out: Tensor = self.wrong(x)
            except RuntimeError:
                out = self.right(x)
            return out

    report = gnn_vpa.probe(Falls(), sample.x)
    assert [step.name for step in report.steps] == ["(input)", "right"]


def test_edges_that_leave_the_graph_are_the_models_error() -> None:
    with pytest.raises(GnnVpaError, match="larger than 2"):
        gnn_vpa.probe(GraphConv(8, 4), torch.randn(3, 8), torch.tensor([[0, 9], [1, 2]]))


LAYERS = {
    "plain": lambda: GraphConv(8, 8),
    "loops": lambda: GCNConv(8, 8),
    "attention": lambda: GATConv(8, 8, add_self_loops=False),
    "fused": lambda: gnn_vpa.convert(GraphConv(8, 8))[0],
    "fused loops": lambda: gnn_vpa.convert(GCNConv(8, 8))[0],
    "fused attention": lambda: gnn_vpa.convert(GATConv(8, 8, add_self_loops=False))[0],
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("layers", [1, 2])
def test_a_graph_without_nodes_keeps_no_scale(layer: str, layers: int) -> None:
    model = Sequential("x, e", [(LAYERS[layer](), "x, e -> x") for _ in range(layers)])
    report = gnn_vpa.probe(model, torch.randn(0, 8), torch.empty(2, 0, dtype=torch.int64))
    assert report.steps[-1].shape == (0, 8)
    assert report.findings == ()
    assert report.verdict.startswith("There are no nodes: module_0, aggregation, has the shape [0,")
    assert "keeps" not in report.verdict


def test_no_rows_at_all_keep_no_scale() -> None:
    layers = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    verdict = gnn_vpa.probe(layers, torch.randn(0, 8)).verdict
    assert verdict.startswith("There are no nodes: (input), input, has the shape [0, 8].")


@pytest.mark.parametrize("name", ["gin", "gcn", "gat"])
def test_a_model_of_a_graph_without_nodes_is_measured_behind_them(name: str) -> None:
    """The graph's result is made of biases."""
    model = gnn_vpa.build_model(name, 8, 2)
    edges, batch = torch.empty(2, 0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
    graph, readout = gnn_vpa.Graph(edges, 0), gnn_vpa.Graph.readout(batch, 1)
    report = gnn_vpa.probe(model, torch.randn(0, 8), graph, readout)
    assert "keeps its scale" not in report.verdict
    assert report.findings or "There are no nodes" in report.verdict


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("nodes", [1, 5])
def test_a_graph_without_edges_has_no_aggregation_to_blame(layer: str, nodes: int) -> None:
    model = Sequential("x, e", [(LAYERS[layer](), "x, e -> x")])
    report = gnn_vpa.probe(model, torch.randn(nodes, 8), torch.empty(2, 0, dtype=torch.int64))
    assert report.steps[-1].shape == (nodes, 8)
    assert f"variance {times(0)}" not in report.verdict
    assert report.verdict.endswith(
        "No node has a neighbour: there are no edges, or self-loops alone. So nothing can be said "
        "of the aggregation."
    )


def test_the_layers_without_edges_are_named_among_others(sample: Sample) -> None:
    steps = [(GraphConv(8, 8, aggr="mean"), "x, e -> x"), (GraphConv(8, 8), "x, none -> x")]
    model = Sequential("x, e, none", steps)
    none = torch.empty(2, 0, dtype=torch.int64)
    verdict = gnn_vpa.probe(model, sample.x, sample.edge_index, none).verdict
    assert "module_1 (GraphConv)" not in verdict
    assert "No node has a neighbour in module_1: " in verdict


def test_many_self_loops_are_still_blamed() -> None:
    loops = torch.arange(50).repeat(2, 30)
    model = Sequential("x, e", [(GraphConv(8, 8), "x, e -> x")])
    report = gnn_vpa.probe(model, torch.randn(50, 8), loops)
    assert report.findings[0].value == pytest.approx(900, rel=1e-3)


def test_integers_are_given_and_embedded() -> None:
    report = gnn_vpa.probe(nn.Embedding(5, 3), torch.tensor([0, 4, 2]))
    assert [step.kind for step in report.steps] == ["Embedding"]


def test_complex_numbers_are_measured_by_their_parts() -> None:
    class Fourier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transform = Transform()

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.transform(x)
            return out.abs()

    class Transform(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.fft(x)

    x = torch.randn(16, 8)
    report = gnn_vpa.probe(Fourier(), x)
    parts = torch.view_as_real(torch.fft.fft(x)).double()
    found = next(step for step in report.steps if step.layer == "transform")
    assert found.forward.variance == pytest.approx(parts.var(correction=0).item(), rel=1e-6)
    assert found.backward is not None


def test_unknown_groups_are_refused() -> None:
    report = gnn_vpa.probe(nn.Linear(8, 4), torch.randn(10, 8))
    with pytest.raises(UsageError, match="'degrees' is unknown"):
        report.to_frame(by="degrees")


def test_steps_between_measurements_must_be_some() -> None:
    with pytest.raises(UsageError, match="expected 1 or more steps, got 0"):
        gnn_vpa.probe.during(nn.Linear(8, 4), every=0)
