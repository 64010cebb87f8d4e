"""A probe leaves nothing behind, and changes nothing while it looks."""

import copy
import random
import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GAT, GCN, GIN, GCNConv, MessagePassing, Sequential
from torch_geometric.nn.dense import Linear

import gnn_vpa
from gnn_vpa.ops import observe

from .conftest import Sample


def _norm_and_dropout() -> nn.Module:
    return Sequential(
        "x, edge_index",
        [
            (gnn_vpa.VPGCNConv(8, 16), "x, edge_index -> x"),
            nn.BatchNorm1d(16),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            (GCNConv(16, 4, cached=True), "x, edge_index -> x"),
        ],
    )


MODELS: dict[str, Callable[[], nn.Module]] = {
    "norm, dropout, in place, cached": _norm_and_dropout,
    "GAT with dropout": lambda: GAT(8, 8, 2, heads=2, dropout=0.5),
    "frozen": lambda: GCN(8, 8, 2).requires_grad_(False),
    "spectral norm": lambda: Sequential(
        "x, edge_index", [(nn.utils.parametrizations.spectral_norm(nn.Linear(8, 4)), "x -> x")]
    ),
}


def state(model: nn.Module) -> dict[str, object]:
    """All that a look at a model could change, as values that can be compared."""
    found: dict[str, object] = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name in ("_parameters", "_modules"):
                continue
            key = f"{path}.{name}"
            if isinstance(value, dict):
                found[key] = {
                    k: v.clone() if isinstance(v, Tensor) else (id(v), str(v))
                    for k, v in value.items()
                }
            else:
                found[key] = value.clone() if isinstance(value, Tensor) else str(value)
    for name, parameter in model.named_parameters():
        found[f"{name}.value"] = parameter.detach().clone()
        found[f"{name}.grad"] = None if parameter.grad is None else parameter.grad.clone()
        found[f"{name}.version"] = parameter._version
        found[f"{name}.hooks"] = str(parameter._backward_hooks)
        found[f"{name}.requires_grad"] = parameter.requires_grad
    return found


def assert_same(before: object, after: object, key: str = "") -> None:
    if isinstance(before, dict):
        assert isinstance(after, dict)
        assert before.keys() == after.keys(), key
        for name in before:
            assert_same(before[name], after[name], f"{key} {name}")
    elif isinstance(before, Tensor):
        assert isinstance(after, Tensor), key
        assert torch.equal(before, after), key
    else:
        assert before == after, key


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_as_it_was(name: str, training: bool, sample: Sample) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().train(training)
    x, edge_index = sample.x, sample.edge_index
    before, given = state(model), (x.clone(), x._version, edge_index.clone())
    report = gnn_vpa.probe(model, x, edge_index, loss=lambda out: out.square().sum())
    assert report.verdict
    assert_same(before, state(model))
    assert torch.equal(x, given[0])
    assert (x._version, x.grad, x.requires_grad) == (given[1], None, False)
    assert torch.equal(edge_index, given[2])
    assert observe.observer() is None


def test_gradients_that_are_there_stay(sample: Sample) -> None:
    model = GCN(8, 8, 2)
    model(sample.x, sample.edge_index).sum().backward()
    before = [parameter.grad for parameter in model.parameters()]
    values = [None if grad is None else grad.clone() for grad in before]
    called: list[object] = []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(called.append)
    gnn_vpa.probe(model, sample.x, sample.edge_index)
    for parameter, grad, value in zip(model.parameters(), before, values, strict=True):
        assert parameter.grad is grad
        assert grad is None or torch.equal(grad, value)  # type: ignore[arg-type]
    assert called == []


def test_random_states_stay(sample: Sample) -> None:
    class Random(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            noise = random.random() + np.random.rand()  # noqa: NPY002
            return x * torch.rand_like(x) * noise

    def states() -> list[object]:
        return [random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()]  # noqa: NPY002

    before = states()
    report = gnn_vpa.probe(Random(), sample.x)
    assert report.verdict
    assert states() == before


class Meanwhile(nn.Module):
    """Runs something in another thread, in the midst of the model that it is a part of."""

    def __init__(self, work: Callable[[], object] | None) -> None:
        super().__init__()
        self.work = work

    def forward(self, x: Tensor) -> Tensor:
        if self.work is not None and threading.current_thread() is threading.main_thread():
            thread = threading.Thread(target=self.work)
            thread.start()
            thread.join()
        return x


def _with(meanwhile: Meanwhile) -> nn.Module:
    torch.manual_seed(0)
    stages = [
        (meanwhile, "x -> x"),
        (gnn_vpa.VPGCNConv(8, 16), "x, edge_index -> x"),
        nn.Linear(16, 4),
    ]
    return Sequential("x, edge_index", stages)


def test_a_model_that_another_thread_runs_is_not_heard(sample: Sample) -> None:
    other, _ = gnn_vpa.convert(GIN(8, 8, 2))
    reports = [
        gnn_vpa.probe(_with(Meanwhile(work)), sample.x, sample.edge_index)
        for work in (None, lambda: other(sample.x, sample.edge_index))
    ]
    assert reports[0].steps == reports[1].steps
    assert reports[0].verdict == reports[1].verdict


def test_another_thread_may_run_the_model_that_is_watched(sample: Sample) -> None:
    meanwhile = Meanwhile(None)
    model = _with(meanwhile)
    frames = []

    def evaluate() -> None:
        with torch.no_grad():
            model(sample.x, sample.edge_index)

    for meanwhile.work in (None, evaluate):
        with gnn_vpa.probe.during(model, every=1) as signal:
            model(sample.x, sample.edge_index).sum().backward()
        frames.append(signal.to_frame())
    assert frames[0].equals(frames[1])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_random_states_of_a_gpu_stay(sample: Sample) -> None:
    model = GAT(8, 8, 2, heads=2, dropout=0.5).cuda()
    before = torch.cuda.get_rng_state()
    report = gnn_vpa.probe(model, sample.x.cuda(), sample.edge_index.cuda())
    assert report.verdict
    assert torch.equal(torch.cuda.get_rng_state(), before)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_gives_the_numbers_of_the_cpu(sample: Sample) -> None:
    model = GCN(8, 8, 3)
    here = gnn_vpa.probe(model, sample.x, sample.edge_index)
    there = gnn_vpa.probe(model.cuda(), sample.x.cuda(), sample.edge_index.cuda())
    for one, other in zip(here.steps, there.steps, strict=True):
        assert (one.name, one.step) == (other.name, other.step)
        assert other.forward.variance == pytest.approx(one.forward.variance, rel=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_the_model_computes_what_it_computes_unobserved(name: str, sample: Sample) -> None:
    """What the probe saw is what the model returns; our layers sum in another order unobserved."""
    torch.manual_seed(0)
    model = MODELS[name]()
    outputs: list[Tensor] = []
    model.register_forward_hook(lambda _, __, out: outputs.append(out.detach().clone()))
    torch.manual_seed(1)
    gnn_vpa.probe(model, sample.x, sample.edge_index)
    torch.manual_seed(1)
    copy.deepcopy(model)(sample.x.clone(), sample.edge_index)
    torch.testing.assert_close(outputs[0], outputs[-1])
    assert len(outputs) == 2 or name == "frozen"


def test_a_model_made_lazy_stays_lazy(sample: Sample) -> None:
    model = Sequential("x, edge_index", [(GCNConv(-1, 4), "x, edge_index -> x"), Linear(-1, 2)])
    report = gnn_vpa.probe(model, sample.x, sample.edge_index)
    assert report.steps[-1].shape == (60, 2)
    assert model[0].lin.in_channels == -1
    assert model(torch.ones(3, 5), torch.tensor([[0], [1]])).shape == (3, 2)


def test_a_model_that_keeps_its_last_result_can_be_probed(sample: Sample) -> None:
    class Keeps(nn.Module):
        last: Tensor | None = None

        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            self.last = self.lin(x)
            return self.last

    model = Keeps()
    kept = model(sample.x)
    assert len(gnn_vpa.probe(model, sample.x).steps) == 2
    assert model.last is kept


def test_it_can_be_called_without_gradients_around(sample: Sample) -> None:
    model = GCN(8, 8, 2)
    with torch.no_grad():
        report = gnn_vpa.probe(model, sample.x, sample.edge_index)
    assert report.steps[-1].backward is not None
    with torch.inference_mode():
        report = gnn_vpa.probe(model, sample.x, sample.edge_index)
    assert report.steps[-1].backward is not None


def test_no_layer_keeps_a_step_hook(sample: Sample) -> None:
    model = GAT(8, 8, 2)
    gnn_vpa.probe(model, sample.x, sample.edge_index)
    for module in model.modules():
        hooks = [name for name in vars(module) if name.endswith("hooks")]
        assert all(len(getattr(module, name)) == 0 for name in hooks)
        assert not isinstance(module, MessagePassing) or hooks


def test_memory_holds_numbers_and_no_activations(sample: Sample) -> None:
    """A step of a report has no tensor, and a model's activations are free once it is made."""
    report = gnn_vpa.probe(GCN(8, 8, 2), sample.x, sample.edge_index)
    for step in report.steps:
        assert not any(isinstance(value, Tensor) for value in vars(step).values())
