"""Random numbers: the same for the same graphs, whatever else runs, and the user's left alone."""

import random
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, global_add_pool

import gnn_vpa
from gnn_vpa.experiments import Progress, expand, identify
from gnn_vpa.experiments.groups import Group
from gnn_vpa.graphs import GraphSet, load, subset
from gnn_vpa.trained import train_model
from gnn_vpa.training import Protocol, Task


class Net(nn.Module):
    """Draws from every global generator while it is trained."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = GCNConv(in_channels, 8)
        self.head = nn.Linear(8, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = nn.functional.dropout(self.conv(x, edge_index), training=self.training)
        if self.training:
            x = x + torch.rand_like(x) * random.random() * np.random.rand()  # noqa: NPY002
        return self.head(global_add_pool(x, batch))


def make(in_channels: int, out_channels: int) -> nn.Module:
    return Net(in_channels, out_channels)


def _graphs() -> list[Data]:
    """Paths (class 0) and rings (class 1) of three to seven nodes, with random features."""
    draw, graphs = torch.Generator().manual_seed(0), []
    for number in range(40):
        nodes, target = 3 + number // 2 % 5, number % 2
        here = torch.arange(nodes if target else nodes - 1)
        there = (here + 1) % nodes
        edges = torch.stack([torch.cat([here, there]), torch.cat([there, here])])
        graphs.append(Data(torch.rand(nodes, 3, generator=draw), edges, y=target))
    return graphs


@pytest.fixture
def graphs() -> list[Data]:
    return _graphs()


def _run(out: Path, data: Any, model: Any = "gin", **settings: Any) -> gnn_vpa.Results:
    usual = {"aggrs": "vpa" if model == "gin" else None, "epochs": 2, "folds": 3, "device": "cpu"}
    asked: dict[str, Any] = {**usual, "workers": 1, **settings}
    return gnn_vpa.run(data, model, out=out, **asked)


def _numbers(results: gnn_vpa.Results) -> list[Any]:
    return results.folds[["train_loss", "val_score", "test_score"]].to_numpy().tolist()


# Threads ---------------------------------------------------------------------------------------


def test_runs_in_threads_have_the_numbers_of_runs_alone(tmp_path: Path, graphs: list[Data]) -> None:
    tasks = [("gin", "vpa"), ("gin", "sum"), ("gcn", "vpa"), ("gat", "vpa")]

    def run(name: str) -> list[list[Any]]:
        def one(number: int) -> list[Any]:
            model, aggr = tasks[number]
            return _numbers(_run(tmp_path / name / str(number), {"toy": graphs}, model, aggrs=aggr))

        if name == "alone":
            return [one(number) for number in range(4)]
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(one, range(4)))

    expected = run("alone")
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns in the midst of whatever they draw
    try:
        for turn in range(3):
            assert run(f"turn {turn}") == expected
    finally:
        sys.setswitchinterval(usual)


class _Waiting(Progress):
    """Holds a run in its first epoch."""

    def __init__(self) -> None:
        self.is_there, self.goes_on = Event(), Event()

    def epochs(self, group: Group, done: int) -> None:
        self.is_there.set()
        assert self.goes_on.wait(60)


def test_a_second_run_of_a_users_model_beside_another_is_refused(
    tmp_path: Path, graphs: list[Data]
) -> None:
    waiting = _Waiting()
    expected = _numbers(_run(tmp_path / "alone", graphs, make))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(_run, tmp_path / "first", graphs, make, progress=waiting)
        try:
            assert waiting.is_there.wait(60)
            with pytest.raises(gnn_vpa.UsageError, match=r"make: another thread .* process of its"):
                _run(tmp_path / "second", graphs, make)
            _run(tmp_path / "ours", graphs)  # of our models as many as one likes
        finally:
            waiting.goes_on.set()
        assert _numbers(first.result()) == expected
    assert not (tmp_path / "second").exists()
    assert _numbers(_run(tmp_path / "second", graphs, make)) == expected


# The same graphs -------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["gin", make], ids=["ours", "own"])
def test_the_same_graphs_have_the_same_numbers_under_any_name(
    tmp_path: Path, graphs: list[Data], model: Any
) -> None:
    one, other = (_run(tmp_path / name, {name: graphs}, model) for name in ("one", "other"))
    assert _numbers(one) == _numbers(other)
    fewer = _run(tmp_path / "fewer", {"one": graphs[2:]}, model)
    assert _numbers(fewer) != _numbers(one)


def test_a_model_is_the_same_under_any_name(graphs: list[Data]) -> None:
    one, other = (
        train_model(GraphSet.from_pyg(graphs, name), Task("gin", "vpa"), Protocol(epochs=2))
        for name in ("one", "other")
    )
    state = other.module.state_dict()
    assert all(torch.equal(t, state[n]) for n, t in one.module.state_dict().items())


def test_a_benchmark_has_the_seeds_of_its_name_under_any_name() -> None:
    """So the numbers of earlier versions stand."""
    mutag = load("MUTAG")
    mine, other = replace(mutag, name="mine"), subset(mutag, torch.arange(100))
    assert mutag.seed_source == mine.seed_source == "MUTAG"
    assert other.seed_source == other.checksum()


def test_results_with_seeds_of_names_are_not_gone_on_with(
    tmp_path: Path, graphs: list[Data]
) -> None:
    data, protocol = GraphSet.from_pyg(graphs, "toy"), Protocol(epochs=2)
    (cell,) = identify(expand([data], ["gin"], ["vpa"], protocol=protocol, folds=3).cells).cells
    _run(tmp_path, data, aggrs="vpa")
    with sqlite3.connect(tmp_path / "results.sqlite") as connection:
        changed = connection.execute(
            "UPDATE cells SET key = ? WHERE key = ?", (cell.key_by(1), cell.key)
        )
        assert changed.rowcount == 1
    connection.close()
    assert len(gnn_vpa.Results(tmp_path).folds) == 3
    with pytest.raises(gnn_vpa.UsageError, match=r"made of its content.*name another folder"):
        _run(tmp_path, data, aggrs="vpa")
    assert len(_run(tmp_path, data, aggrs="vpa", fresh=True).folds) == 3  # none of both


@pytest.mark.parametrize("model", ["gin", make], ids=["ours", "own"])
def test_signals_are_the_same_whatever_was_drawn_before(
    tmp_path: Path, graphs: list[Data], model: Any
) -> None:
    found = []
    for seed in range(2):
        torch.default_generator.manual_seed(seed)
        found.append(_run(tmp_path / str(seed), graphs, model, epochs=1).signals)
    assert found[0]["backward_variance"].notna().any()
    assert found[0].equals(found[1])


# The user's generators -------------------------------------------------------------------------


_NET = Net(3, 2)  # it draws its weights before the tests


def _states() -> tuple[str, ...]:
    numpy = np.random.get_state()  # noqa: NPY002
    return str(random.getstate()), str(numpy), str(torch.get_rng_state().tolist())


def _probed(out: Path, graphs: list[Data]) -> None:
    data = Batch.from_data_list(graphs)
    gnn_vpa.probe(_NET, data.x, data.edge_index, data.batch).verdict  # noqa: B018


def _calibrated(out: Path, graphs: list[Data]) -> None:
    gnn_vpa.calibrate(_NET, graphs)


def _trained(out: Path, graphs: list[Data]) -> None:
    train_model(GraphSet.from_pyg(graphs), Task("gin", "vpa"), Protocol(epochs=1))


@pytest.mark.parametrize(
    "work",
    [
        _run,
        lambda out, graphs: _run(out, graphs, make),
        lambda out, graphs: _run(out, graphs, epochs=1, baselines=True),
        lambda out, graphs: gnn_vpa.audit(graphs, folds=3),
        lambda out, graphs: gnn_vpa.GraphClassifier(epochs=1).fit(graphs),
        _trained,
        _probed,
        _calibrated,
    ],
    ids=["run", "own model", "baselines", "audit", "fit", "train_model", "probe", "calibrate"],
)
def test_global_generators_are_left_as_they_are(
    tmp_path: Path, graphs: list[Data], work: Callable[[Path, list[Data]], object]
) -> None:
    import sklearn.model_selection  # noqa: F401  it draws when it is first imported

    before = _states()
    work(tmp_path, graphs)
    assert _states() == before


@pytest.mark.skipif(torch.cuda.is_initialized(), reason="generators of GPUs are seeded at once")
def test_no_seed_is_left_for_gpus_that_are_not_in_use(tmp_path: Path, graphs: list[Data]) -> None:
    tracker = torch.cuda._lazy_seed_tracker  # what torch does when CUDA is first used
    before = list(tracker.get_calls())
    _run(tmp_path, graphs)
    _run(tmp_path / "own", graphs, make)
    assert not torch.cuda.is_initialized()
    assert tracker.get_calls() == before


@pytest.mark.gpu
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("model", ["gin", make], ids=["ours", "own"])
def test_generators_of_gpus_are_left_as_they_are(
    tmp_path: Path, graphs: list[Data], device: str, model: Any
) -> None:
    torch.cuda.manual_seed(3)
    torch.rand(5, device="cuda")
    before = torch.cuda.get_rng_state()
    _run(tmp_path, graphs, model, device=device)
    assert torch.equal(torch.cuda.get_rng_state(), before)
