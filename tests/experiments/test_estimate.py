from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from gnn_vpa.experiments import (
    Cell,
    Estimate,
    Pace,
    epoch_work,
    estimate,
    expand,
    paces_of_run,
    run_grid,
    time_models,
)
from gnn_vpa.training import Protocol, Task

_CELL = Cell("MUTAG", Task("gin", "vpa"), Protocol(epochs=100), folds=10)


def test_what_was_seen_of_the_same_is_preferred_to_the_model_and_the_model_to_others() -> None:
    other = Pace("MUTAG", "gat", 4.0, 100.0)
    model = Pace("PTC", "gin", 2.0, epoch_work(_CELL))
    same = Pace("MUTAG", "gin", 1.0, 100.0)
    assert estimate([_CELL], [other]) == Estimate(4000.0, 6.0)
    assert estimate([_CELL], [other, model]) == Estimate(2000.0, 3.0)
    assert estimate([_CELL], [other, model, same]) == Estimate(1000.0, 1.5)


def test_on_a_gpu_small_graphs_cost_their_steps() -> None:
    large = Cell("RDT-B", Task("gin", "vpa"))
    small = Cell("NCI1", Task("gin", "vpa"))
    nodes, steps = (
        epoch_work(large, gpu=gpu) / epoch_work(small, gpu=gpu) for gpu in (False, True)
    )
    assert nodes > 2 * steps  # RDT-B has seven times the nodes of NCI1, but half of its steps
    pace = Pace("NCI1", "gin", 1.0, epoch_work(small, gpu=True), gpu=True)
    assert estimate([large], [pace]).seconds == pytest.approx(steps * 10 * 200)


def test_the_size_of_ones_own_data_is_not_known() -> None:
    mine = Cell("mine", Task("gin", "vpa"), Protocol(epochs=1), folds=1)
    assert estimate([mine], [Pace("MUTAG", "gin", 2.0, 100.0)]) == Estimate(2.0, 3.0)


def test_a_baseline_takes_no_time() -> None:
    cells = expand(["MUTAG"], [], baselines=["majority"]).cells
    assert estimate(cells, [Pace("MUTAG", "gin", 1.0, 1.0)]).seconds == 0


def test_finished_cells_are_seen(tmp_path: Path) -> None:
    cells = expand(["MUTAG"], ["sgc"], ["vpa"], protocol=Protocol(epochs=2), folds=3).cells
    run_grid(cells, tmp_path, device="cpu")
    (pace,) = paces_of_run(tmp_path, "cpu")
    assert (pace.dataset, pace.model, pace.work) == ("MUTAG", "sgc", 3371 + 74.42)
    assert 0 < pace.seconds < 10


def test_calibration_takes_the_smallest_data_set_that_is_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GNN_VPA_DATA", str(tmp_path))
    monkeypatch.setenv("GNN_VPA_CACHE", str(tmp_path))
    cells = expand(["NCI1", "MUTAG"], ["sgc"], folds=2).cells
    (pace,) = time_models(cells, device="cpu")
    assert (pace.dataset, pace.model) == ("MUTAG", "sgc")
    assert 1e-5 < pace.seconds < 10
    assert time_models(expand(["NCI1"], ["sgc"]).cells, device="cpu") == []


def test_a_certain_estimate_has_no_range() -> None:
    assert str(Estimate(0.2, 1.5)) == "about 1 s"


@pytest.mark.parametrize(("moments", "seconds"), [([50, 52, 54, 56], 1.0), ([50], 25.0)])
def test_a_pace_is_that_of_epochs_behind_the_first(
    moments: list[float], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, now = import_module("gnn_vpa.experiments.estimate"), [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])

    def fit(*_: object, progress: Callable[[int], None], **__: object) -> None:
        for done, now[0] in enumerate(moments, start=1):  # the first has all that is prepared
            progress(done - 1)  # of one of two groups
            progress(done)

    monkeypatch.setattr(module, "fit", fit)
    (pace,) = time_models(expand(["MUTAG"], ["sgc"], folds=2).cells, device="cpu")
    assert pace.seconds == seconds  # of a fold
