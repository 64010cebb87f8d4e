"""Three models side by side against the same three one by one."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state
from torch.nn import functional as F

from gnn_vpa import UsageError, build_model
from gnn_vpa.nn import Model, WeightedGraph
from gnn_vpa.nn._lanes import add_bias, by_lane
from gnn_vpa.ops import Graph

from .conftest import Batch

SLOTS = 30
GRAPHS = 4
SIZES = [23, 30, 17]

# A bias in front of a BatchNorm has a gradient of 0, but for rounding. Adam divides rounding by
# rounding there, unless its epsilon is well above it.
ADAM: dict[str, Any] = {"lr": 0.001, "eps": 1e-5}


class Lanes(NamedTuple):
    """The batches of all lanes as one, each padded to the same number of slots."""

    x: Tensor
    graph: Any
    readout: Any
    nodes: Tensor


def _side_by_side(batches: list[Batch], padding_value: int = 3) -> Lanes:
    rows, edges, members, counts = [], [], [], []
    for lane, (x, edge_index, batch) in enumerate(batches):
        padding = SLOTS - len(x)
        rows += [x, x.new_full((padding, *x.shape[1:]), padding_value)]
        edges.append(edge_index + lane * SLOTS)
        slots = torch.arange(len(x)) + lane * SLOTS
        members.append(torch.stack([slots, batch + lane * GRAPHS]))
        counts += [torch.ones(len(x)), torch.zeros(padding)]
    size, graphs = SLOTS * len(batches), GRAPHS * len(batches)
    return Lanes(
        torch.cat(rows),
        Graph(torch.cat(edges, dim=1), size),
        Graph(torch.cat(members, dim=1), (size, graphs)),
        torch.cat(counts),
    )


def _models(name: str, aggregations: list[str], **options: Any) -> list[Model]:
    models = []
    for seed, aggr in enumerate(aggregations):
        torch.manual_seed(seed)
        models.append(build_model(name, 5, 3, aggr, **options).double())
    return models


def _uniforms(model: Model) -> list[Tensor]:
    return [torch.rand(model.dropout_shape(GRAPHS), dtype=torch.float64) for _ in SIZES]


def _assert_lane(stacked: dict[str, Tensor], alone: dict[str, Any], lane: int) -> None:
    for name, value in alone.items():
        torch.testing.assert_close(stacked[name][lane], value, rtol=1e-9, atol=1e-9, msg=name)


def _train_both(models: list[Model], batches: list[Batch], lanes: Lanes) -> None:
    """Take three steps of Adam both ways, and compare scores, gradients, weights and buffers."""
    classes = torch.tensor([0, 2, 1, 0])
    template = deepcopy(models[0])
    weights, buffers = stack_module_state(models)
    together = torch.optim.Adam(weights.values(), **ADAM)
    alone = [torch.optim.Adam(model.parameters(), **ADAM) for model in models]
    for _ in range(3):
        uniforms = _uniforms(template)
        together.zero_grad()
        arguments = (*lanes, torch.cat(uniforms, dim=-2))
        stacked = by_lane(functional_call(template, (weights, buffers), arguments), len(models))
        sum(F.cross_entropy(scores, classes) for scores in stacked).backward()
        together.step()
        for lane, (model, batch) in enumerate(zip(models, batches, strict=True)):
            alone[lane].zero_grad()
            scores = model(*batch, uniform=uniforms[lane])
            F.cross_entropy(scores, classes).backward()
            alone[lane].step()
            torch.testing.assert_close(stacked[lane], scores, rtol=1e-9, atol=1e-9)
            # A bias before a norm has the gradient 0, which lanes do not compute.
            gradients = {
                name: torch.zeros_like(weight) if weight.grad is None else weight.grad
                for name, weight in weights.items()
            }
            _assert_lane(gradients, {n: p.grad for n, p in model.named_parameters()}, lane)
            _assert_lane({**weights, **buffers}, model.state_dict(), lane)
    # What was trained is what is used: evaluation sees each lane's own running statistics.
    stacked = by_lane(functional_call(template.eval(), (weights, buffers), lanes), len(models))
    for scores, model, batch in zip(stacked, models, batches, strict=True):
        torch.testing.assert_close(scores, model.eval()(*batch), rtol=1e-9, atol=1e-9)


def test_three_lanes_train_as_three_models(
    kind: tuple[str, str], make_batch: Callable[..., Batch]
) -> None:
    name, aggr = kind
    batches = [make_batch(seed, num_nodes=size) for seed, size in enumerate(SIZES)]
    _train_both(_models(name, [aggr] * 3), batches, _side_by_side(batches))


def test_three_lanes_of_one_hot_codes_train_as_three_models(
    kind: tuple[str, str], make_batch: Callable[..., Batch]
) -> None:
    name, aggr = kind
    batches = [make_batch(seed, num_nodes=size) for seed, size in enumerate(SIZES)]
    batches = [batch._replace(x=batch.x.argmax(1)) for batch in batches]
    _train_both(_models(name, [aggr] * 3), batches, _side_by_side(batches))


@pytest.mark.parametrize("name", ["gin", "gcn"])
def test_lanes_may_differ_in_their_aggregation(name: str, make_batch: Callable[..., Batch]) -> None:
    batches = [make_batch(seed, num_nodes=size) for seed, size in enumerate(SIZES)]
    lanes = _side_by_side(batches)

    def scaled(graph: Graph, count: Tensor) -> WeightedGraph:
        return WeightedGraph(
            graph, scale=by_lane(count.clamp(min=1).double(), 3).pow(power).flatten()
        )

    power = torch.tensor([[0.0], [-1.0], [-0.5]], dtype=torch.float64)
    graph = scaled(lanes.graph, lanes.graph.degree)
    size = torch.cat([batch.batch.bincount() for batch in batches])
    lanes = lanes._replace(graph=graph, readout=scaled(lanes.readout, size))
    _train_both(_models(name, ["sum", "mean", "vpa"]), batches, lanes)


def test_padding_changes_nothing(kind: tuple[str, str], make_batch: Callable[..., Batch]) -> None:
    name, aggr = kind
    batch = make_batch(0)
    model = build_model(name, 5, 3, aggr).double()
    uniform = _uniforms(model)[0]
    before = deepcopy(model.state_dict())
    runs = []
    for padding_value in (0, 1000):
        model.load_state_dict(before)
        model.zero_grad()
        scores = model(*_side_by_side([batch], padding_value), uniform)
        scores.square().sum().backward()
        gradients = [parameter.grad.clone() for parameter in model.parameters()]
        runs.append((scores, gradients, deepcopy(model.state_dict())))
    torch.testing.assert_close(runs[0], runs[1], rtol=1e-9, atol=1e-9)


def test_an_idle_lane_keeps_its_statistics_and_harms_no_other(
    kind: tuple[str, str], make_batch: Callable[..., Batch]
) -> None:
    name, aggr = kind
    batches = [make_batch(seed, num_nodes=size) for seed, size in enumerate(SIZES)]
    lanes = _side_by_side(batches)
    nodes = lanes.nodes.clone()
    nodes[SLOTS : 2 * SLOTS] = 0
    models = _models(name, [aggr] * 3)
    weights, buffers = stack_module_state(models)
    before = deepcopy(buffers)
    arguments = (*lanes[:3], nodes, torch.cat(_uniforms(models[0]), dim=-2))
    functional_call(models[0], (weights, buffers), arguments).square().sum().backward()
    gradients = [weight.grad for weight in weights.values() if weight.grad is not None]
    assert all(gradient.isfinite().all() for gradient in gradients)
    for buffer, old in zip(buffers.values(), before.values(), strict=True):
        assert torch.equal(buffer[1], old[1])
        assert not torch.equal(buffer[0], old[0])


def test_lanes_compile_without_a_break(make_batch: Callable[..., Batch]) -> None:
    batches = [make_batch(seed, num_nodes=size) for seed, size in enumerate(SIZES)]
    models = _models("gin", ["vpa"] * 3, depth=2)
    weights, buffers = stack_module_state(models)
    lanes, uniform = _side_by_side(batches), torch.cat(_uniforms(models[0]), dim=-2)

    def step(weights: dict[str, Any], buffers: dict[str, Any]) -> Tensor:
        return functional_call(models[0], (weights, buffers), (*lanes, uniform))

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    runs = []
    for function in (step, compiled):
        own = deepcopy(buffers)
        scores = function(weights, own)
        gradients = torch.autograd.grad(
            scores.square().sum(), list(weights.values()), allow_unused=True
        )
        runs.append((scores, gradients, own))
    torch.testing.assert_close(*runs)


def test_bias_by_lane() -> None:
    x = torch.zeros(4, 2)
    expected = torch.tensor([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [3.0, 4.0]])
    assert torch.equal(add_bias(x, torch.tensor([[1.0, 2.0], [3.0, 4.0]])), expected)


def test_rows_that_do_not_divide_into_lanes_are_refused() -> None:
    with pytest.raises(UsageError, match="x: 7 rows do not divide into 3 lanes"):
        by_lane(torch.zeros(7, 2), 3)
