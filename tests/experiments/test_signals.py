"""The signal at the start of each method, recorded by the run itself."""

import math
from pathlib import Path

import torch

import gnn_vpa
from gnn_vpa.experiments import Cell, Store, expand, initial_signals, read_signals, run_grid
from gnn_vpa.graphs import GraphSet, load
from gnn_vpa.signal.probing._subjects import papers_model
from gnn_vpa.training import Protocol, Task


def _cells(data: str | GraphSet, model: str = "gcn", **settings: object) -> list[Cell]:
    return expand(
        [data],
        [model],
        **{"folds": 2, "protocol": Protocol(epochs=1), **settings},  # type: ignore[arg-type]
    ).cells


def test_the_numbers_are_those_of_the_probe() -> None:
    signals = initial_signals(load("MUTAG"), Task("gcn", "sum"), count=8)
    subject = papers_model(load("MUTAG"), "gcn", "sum", size=8)
    report = gnn_vpa.probe(subject.model, *subject.lessons[0].args)
    updates = [step for step in report.steps if step.step == "update"]
    assert [signal.variance for signal in signals] == [step.forward.variance for step in updates]
    assert [signal.distance for signal in signals] == [step.distance for step in updates]


def test_sum_grows_and_vpa_does_not() -> None:
    rates = {}
    for aggr in ("sum", "vpa"):
        variances = [
            signal.variance for signal in initial_signals(load("MUTAG"), Task("gcn", aggr))
        ]
        rates[aggr] = (variances[-1] / variances[0]) ** 0.25
    assert rates["sum"] > 1.5 * rates["vpa"]


def test_settings_are_the_models() -> None:
    mutag = load("MUTAG")
    assert len(initial_signals(mutag, Task("gcn", "vpa", options=(("depth", 7),)))) == 7
    assert len(initial_signals(mutag, Task("gin", "vpa", "printed"))) == 5


def test_random_numbers_of_others_are_left_alone() -> None:
    before = torch.get_rng_state()
    initial_signals(load("MUTAG"), Task("gcn", "sum"), count=4)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_run_records_each_method_once_and_needs_no_data_later(
    toy: GraphSet, tmp_path: Path
) -> None:
    cells = _cells(toy, aggrs=["sum", "vpa"], seeds=[0, 1], baselines=["majority"])
    run_grid(cells, tmp_path, device="cpu")
    signals = read_signals(tmp_path)  # there is no data set of this name anywhere
    assert signals.groupby(["dataset", "model", "aggregation"]).size().to_dict() == {
        ("toy", "GCN", "sum"): 5,
        ("toy", "GCN", "vpa"): 5,
    }
    expected = [signal.variance for signal in initial_signals(toy, Task("gcn", "sum"))]
    assert signals[signals["aggregation"] == "sum"]["variance"].tolist() == expected


def test_options_of_any_size_are_reported(toy: GraphSet, tmp_path: Path) -> None:
    for dropout in (1e-5, 0.30000001, 0.30000002):
        options = {"dropout": dropout}
        run_grid(_cells(toy, aggrs=["vpa"], options=options), tmp_path, device="cpu")
    results = gnn_vpa.Results(tmp_path)
    shown = {f"dropout={d}" for d in ("1e-05", "0.30000001", "0.30000002")}
    assert set(results.folds["options"]) == set(results.signals["options"]) == shown
    assert set(results.table["options"]) == shown
    page = results.report().read_text()
    assert page.count("The signal at the start, beside the accuracy") == 3


def test_a_method_without_neighbours_to_tell_apart_has_no_distance(
    toy: GraphSet, tmp_path: Path
) -> None:
    run_grid(_cells(toy, "sgc", aggrs=["vpa"]), tmp_path, device="cpu")
    (distance,) = read_signals(tmp_path)["distance"]
    assert math.isnan(distance) or distance >= 0


def test_a_run_that_was_ended_before_gets_its_signals_when_it_is_run_again(tmp_path: Path) -> None:
    cells = _cells("MUTAG", aggrs=["vpa"])
    run_grid(cells, tmp_path, device="cpu")
    expected = read_signals(tmp_path)
    with Store(tmp_path) as store:
        store._connection.execute("DELETE FROM signals")
    assert read_signals(tmp_path).empty
    run_grid(cells, tmp_path, device="cpu")
    assert read_signals(tmp_path).equals(expected)
