"""Batches by levels: a model computes on them what it computes on all nodes."""

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
import torch
from torch import Tensor

from gnn_vpa.graphs import FeatureKind, GraphSet, features
from gnn_vpa.nn import Model
from gnn_vpa.ops import Graph
from gnn_vpa.training import Task
from gnn_vpa.training.batch import EMPTY
from gnn_vpa.training.layered import Layered
from gnn_vpa.training.level_tables import level_tables, model_for

METHODS = [
    *((model, aggr) for model in ("gin", "gcn") for aggr in ("sum", "mean", "max", "vpa")),
    *((model, aggr) for model in ("gat", "sgc") for aggr in ("default", "vpa")),
    ("deep", "vpa"),
    *((model, "power(0.3)") for model in ("gin", "gcn", "gat", "sgc", "deep")),
]
SETS = [
    "MUTAG", "PTC_FM", "PROTEINS", "NCI1", "IMDB-BINARY", "IMDB-MULTI",
    "REDDIT-BINARY", "REDDIT-MULTI-5K", "COLLAB",
]  # fmt: skip


def task_of(model: str, aggr: str, kind: FeatureKind) -> Task:
    options = (("branch", 0.25), ("depth", 4)) if model == "deep" else ()
    return Task(model, aggr, features=kind, options=options)


def layered_of(
    graphs: GraphSet, task: Task, network: Model, dtype: torch.dtype = torch.float32
) -> Layered:
    cpu = torch.device("cpu")
    return Layered(level_tables(graphs, [task], network, cpu, dtype, per_graph=False))


def compare(graphs: GraphSet, task: Task, ids: Tensor, reference: ModuleType) -> None:
    """Compare scores and gradients of one lane's batch, by levels and node by node."""
    network = model_for(task, graphs).double().train()
    batch = layered_of(graphs, task, network, torch.float64).cut(ids)
    real = ids[0] >= 0
    x = features(graphs, task.features).matrix().double()
    plain = reference.batch_of(graphs, x, ids[0][real])
    uniform = torch.rand(network.dropout_shape(ids.shape[1]), dtype=torch.float64)
    before = {name: buffer.clone() for name, buffer in network.named_buffers()}
    results = []
    for by_levels in (False, True):
        network.zero_grad()
        network.load_state_dict(before, strict=False)
        if by_levels:
            scores, y = network(batch.x, batch.graph, uniform=uniform)[real], batch.y[real]
        else:
            drawn = uniform[..., real, :]
            scores, y = network(plain.x, plain.edge_index, plain.batch, None, drawn), plain.y
        scores.square().mean().backward()
        given = [torch.zeros_like(p) if p.grad is None else p.grad for p in network.parameters()]
        running = [buffer.clone() for _, buffer in network.named_buffers()]
        results.append([scores.detach(), y, *given, *running])
    # BatchNorm takes the scale of a single column out again: its gradient is what is left of
    # terms as large as the other gradients, so rounding is measured by these.
    largest = max(1.0, *(float(t.abs().max()) for t in results[0]))
    for got, expected in zip(*results, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9 * largest)


@pytest.mark.parametrize(("model", "aggr"), METHODS)
@pytest.mark.parametrize("features", ["degree", "labels"])
@pytest.mark.sampled(12)
def test_a_model_computes_the_same(
    toy: GraphSet, model: str, aggr: str, features: FeatureKind, reference: ModuleType
) -> None:
    ids = torch.tensor([[3, 17, 4, EMPTY, 80, 3, 5, 6, EMPTY]])
    compare(toy, task_of(model, aggr, features), ids, reference)


@pytest.mark.parametrize("aggr", ["default", "vpa"])
def test_wide_features_propagate_in_the_step(
    toy: GraphSet, aggr: str, reference: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnn_vpa.training.level_tables.MAX_PROPAGATED_COLUMNS", 2)
    ids = torch.tensor([[3, 17, 4, EMPTY, 80, 3, 5, 6, EMPTY]])
    task = Task("sgc", aggr, features="degree", options=(("K", 2),))
    compare(toy, task, ids, reference)


@pytest.mark.parametrize("name", SETS)
def test_on_every_real_set(
    real: Callable[[str], GraphSet], name: str, reference: ModuleType
) -> None:
    graphs = real(name)
    some = torch.linspace(0, graphs.num_graphs - 1, 24).long().tolist()
    sample = GraphSet.from_pyg([graphs.graph(i) for i in some], name=name)
    compare(sample, Task("gin", "vpa"), torch.arange(24).unsqueeze(0), reference)


def test_lanes_keep_to_themselves(toy: GraphSet) -> None:
    """A lane's rows are the same whatever stands beside it, but for empty ones."""
    task = Task("gin", "vpa")
    layered = layered_of(toy, task, model_for(task, toy))
    ids = torch.tensor([[3, 17, 4, 80], [5, 6, EMPTY, EMPTY], [9, EMPTY, 2, 8]])
    together = layered.cut(ids)
    for lane in range(3):
        alone = layered.cut(ids[lane : lane + 1])
        for hop, own in zip(together.graph.hops, alone.graph.hops, strict=True):
            share, expected = hop.rows.share[lane], own.rows.share[0]
            assert torch.equal(share[: len(expected)], expected)
            assert not share[len(expected) :].any()


@pytest.mark.parametrize(("model", "aggr"), METHODS)
def test_steps_that_are_cut_in_one_go_are_those_cut_one_by_one(
    toy: GraphSet, model: str, aggr: str
) -> None:
    task = task_of(model, aggr, "labels")
    layered = layered_of(toy, task, model_for(task, toy))
    ids = torch.randint(EMPTY, toy.num_graphs, (4, 3, 5))
    ids[1, 2], ids[3] = EMPTY, EMPTY
    for batch, step in zip(layered.cut_steps(ids), ids, strict=True):
        alone = layered.cut(step)
        for got, expected in zip(tensors_of(batch), tensors_of(alone), strict=True):
            assert torch.equal(got, expected)


def tensors_of(part: object) -> Iterator[Tensor]:
    """Yield all tensors that a batch is made of."""
    if isinstance(part, torch.Tensor):
        yield part
    elif isinstance(part, Graph):
        yield from tensors_of((part.by_target, part.by_source, part.multiplicity))
    elif isinstance(part, tuple):
        for own in part:
            yield from tensors_of(own)


def test_there_are_fewer_rows_than_nodes(toy: GraphSet) -> None:
    task = Task("gin", "vpa", features="ones")
    layered = layered_of(toy, task, model_for(task, toy))
    ids = torch.arange(60).unsqueeze(0)
    nodes = int(toy.node_ptr[60])
    rows = [hop.rows.share.shape[1] for hop in layered.cut(ids).graph.hops]
    assert rows == sorted(rows)
    assert rows[0] < nodes / 5
    assert rows[-1] < nodes
