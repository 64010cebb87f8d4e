"""The probe standing by while a model trains."""

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCN

import gnn_vpa
from gnn_vpa.ops import observe

from .conftest import Sample
from .test_traces import assert_same, state


def train(model: nn.Module, sample: Sample, steps: int = 6) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(sample.x, sample.edge_index).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def network() -> nn.Module:
    torch.manual_seed(0)
    return GCN(8, 16, 3, norm="batch", dropout=0.3)


def test_training_is_what_it_is_unobserved(sample: Sample) -> None:
    plain, watched = network(), network()
    torch.manual_seed(1)
    expected = train(plain, sample)
    torch.manual_seed(1)
    with gnn_vpa.probe.during(watched, every=2):
        found = train(watched, sample)
    assert found == expected
    assert_same(
        {k: v for k, v in state(plain).items() if "hooks" not in k and "version" not in k},
        {k: v for k, v in state(watched).items() if "hooks" not in k and "version" not in k},
    )


def test_every_so_many_steps_are_measured(sample: Sample) -> None:
    model = network()
    before = copy.deepcopy(model)
    with gnn_vpa.probe.during(model, every=4) as signal:
        train(model, sample, 10)
    assert [step for step, _ in signal.reports] == [0, 4, 8]
    first = signal.reports[0][1]
    torch.manual_seed(3)
    once = gnn_vpa.probe(before, sample.x, sample.edge_index)
    assert [(s.name, s.step) for s in first.steps] == [(s.name, s.step) for s in once.steps]
    assert first.steps[1].forward == once.steps[1].forward  # dropout comes later
    assert all(step.backward is not None for step in first.steps if step.step == "update")


def test_gradients_are_those_of_the_users_loss(sample: Sample) -> None:
    model = nn.Linear(8, 4)
    with gnn_vpa.probe.during(model, every=1) as signal:
        out = model(sample.x)
        out.square().mean().backward()
    back = signal.reports[0][1].steps[-1].backward
    expected = (2 * out / out.numel()).double()
    assert back is not None
    assert back.variance == pytest.approx(expected.var(correction=0).item(), rel=1e-6)


def test_nothing_stays_behind(sample: Sample) -> None:
    model = network()
    model.requires_grad_(False)
    before = state(model)
    with gnn_vpa.probe.during(model, every=1):
        pass
    assert_same(before, state(model))
    model = network()
    with gnn_vpa.probe.during(model, every=1):
        model(sample.x, sample.edge_index)
    for module in model.modules():
        hooks = [name for name in vars(module) if name.endswith("hooks")]
        assert all(len(getattr(module, name)) == 0 for name in hooks)
    assert observe.observer() is None


def test_between_measurements_there_is_one_hook_alone(sample: Sample) -> None:
    model = network()
    with gnn_vpa.probe.during(model, every=100):
        train(model, sample, 2)
        hooked = [m for m in model.modules() if m._forward_hooks or m._forward_pre_hooks]
        assert hooked == [model]
        assert observe.observer() is None


def test_evaluation_does_not_count(sample: Sample) -> None:
    model = network()
    with gnn_vpa.probe.during(model, every=1) as signal:
        with torch.no_grad():
            model(sample.x, sample.edge_index)
        assert signal.reports == []
        assert "No training step was seen" in signal.verdict
        train(model, sample, 1)
    assert len(signal.reports) == 1


def test_an_error_in_a_step_takes_the_hooks_away(sample: Sample) -> None:
    model = network()
    with gnn_vpa.probe.during(model, every=1) as signal:
        with pytest.raises(RuntimeError):
            model(torch.randn(60, 3), sample.edge_index)
        hooked = [m for m in model.modules() if m._forward_hooks or m._forward_pre_hooks]
        assert hooked == [model]
        train(model, sample, 1)
    assert signal.reports[-1][1].steps[-1].backward is not None


def test_an_error_in_the_block_is_the_users(sample: Sample) -> None:
    model = network()
    with pytest.raises(RuntimeError), gnn_vpa.probe.during(model, every=1):
        train(model, sample._replace(x=torch.randn(60, 3)), 1)
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


def test_scripted_models_are_refused() -> None:
    with pytest.raises(gnn_vpa.UsageError, match="scripted"):
        gnn_vpa.probe.during(torch.jit.script(nn.Linear(2, 2)))


def test_the_frame_tells_the_training_step(sample: Sample, tmp_path: Path) -> None:
    model = network()
    with gnn_vpa.probe.during(model, every=3) as signal:
        train(model, sample, 6)
    frame = signal.to_frame()
    assert frame.columns[0] == "training_step"
    assert frame["training_step"].unique().tolist() == [0, 3]
    assert signal.to_frame(by="degree")["training_step"].nunique() == 2
    figure = signal.plot(tmp_path / "training.png")
    assert (tmp_path / "training.png").stat().st_size > 1000
    assert len(figure.axes[0].get_lines()) == 3  # layers
    (tmp_path / "folder").mkdir()
    with pytest.raises(gnn_vpa.UsageError, match=r"folder is a folder: .*folder/training\.png"):
        signal.plot(tmp_path / "folder")
    assert str(signal).startswith("Step 0\n")
    assert signal.verdict.startswith("At step 0: ")


def test_the_papers_models_are_seen_while_they_train(sample: Sample) -> None:
    model = gnn_vpa.build_model("gcn", 8, 2, "vpa")
    with gnn_vpa.probe.during(model, every=1) as signal:
        scores: Tensor = model(*sample)
        scores.sum().backward()
    steps = signal.reports[0][1].steps
    assert {"message", "aggregation", "update", "readout"} <= {step.step for step in steps}
