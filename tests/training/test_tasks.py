"""Every kind of task and every setting, in both engines, against the plain loop."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import GraphSet, Split, TargetKind
from gnn_vpa.training import METRICS, Lane, Outcome, Protocol, Task, fit
from gnn_vpa.training.metrics import evaluate

Toys = dict[tuple[TargetKind, bool], GraphSet]
SHORT = Protocol(epochs=2, batch_size=16)
MODELS = [("gin", "vpa"), ("gcn", "mean"), ("gat", "vpa"), ("sgc", "default")]
KINDS: list[tuple[TargetKind, Protocol]] = [
    ("classes", SHORT),
    ("classes", replace(SHORT, class_weight="balanced", metric="macro_f1")),
    ("labels", SHORT),
    ("labels", replace(SHORT, class_weight="balanced", metric="average_precision")),
    ("regression", SHORT),
    ("regression", replace(SHORT, loss="mse", metric="r2")),
    ("regression", replace(SHORT, loss="huber", metric="rmse")),
]
SETTINGS = [
    {"optimizer": "adamw", "weight_decay": 0.1},
    {"optimizer": "sgd", "weight_decay": 0.01, "learning_rate": 0.02},
    {"weight_decay": 0.03, "schedule": "cosine"},
    {"optimizer": "sgd", "schedule": "cosine"},
    {"clip": 0.05},
    {"optimizer": "adamw", "clip": 0.05, "schedule": "cosine"},
    {"epochs": 12, "patience": 2, "metric": "macro_f1", "learning_rate": 0.01},
]


def lanes_of(graphs: GraphSet, count: int = 2) -> list[Lane]:
    draw = torch.Generator().manual_seed(5)
    lanes = []
    for fold in range(count):
        ids = torch.randperm(graphs.num_graphs, generator=draw)
        lanes.append(Lane(fold, Split(ids[:55], ids[55:70], ids[70:])))
    return lanes


def curves_of(outcome: Outcome) -> np.ndarray:
    return np.stack([outcome.curve_train_loss, outcome.curve_val, outcome.curve_test])


def check(
    graphs: GraphSet,
    tasks: Sequence[Task],
    protocols: Sequence[Protocol],
    reference: ModuleType,
    device: str = "cpu",
) -> list[Outcome]:
    """Train tasks together, and compare each lane with the plain loop."""
    lanes = lanes_of(graphs)
    outcomes = fit(graphs, tasks, protocols, lanes, dtype=torch.float64, device=device)
    trainings = [(t, p, lane) for t, p in zip(tasks, protocols, strict=True) for lane in lanes]
    for (task, protocol, lane), outcome in zip(trainings, outcomes, strict=True):
        expected = reference.train_one_fold(graphs, task, protocol, lane, torch.float64)
        # R2 of few numbers that hardly differ shows rounding: in the plain loop a bias in front of
        # a norm has a gradient of 1e-15 instead of none, which Adam divides by 1e-8.
        near = 1e-8 if protocol.metric == "r2" else 1e-9
        np.testing.assert_allclose(curves_of(outcome), expected, rtol=near, atol=near)
        assert outcome.predictions is not None
        for place, part in enumerate((lane.split.valid, lane.split.test)):
            right = evaluate(graphs.y[part], outcome.predictions[place])
            got = {name: both[place] for name, both in outcome.scores.items()}
            assert got == pytest.approx(right, abs=1e-12, rel=1e-12, nan_ok=True)
    return outcomes


@pytest.mark.parametrize("engine", ["layered", "planned"])
@pytest.mark.parametrize("missing", [False, True], ids=["all there", "some missing"])
@pytest.mark.parametrize(("kind", "protocol"), KINDS)
@pytest.mark.parametrize(("model", "aggr"), MODELS)
@pytest.mark.sampled(7)
def test_every_kind_of_task_equals_the_plain_loop(
    toys: Toys,
    reference: ModuleType,
    request: pytest.FixtureRequest,
    engine: str,
    missing: bool,
    kind: TargetKind,
    protocol: Protocol,
    model: str,
    aggr: str,
) -> None:
    if engine == "planned":
        request.getfixturevalue("planned")
    task = Task(model, aggr, features="labels")
    check(toys[kind, missing], [task], [protocol], reference)


@pytest.mark.parametrize("engine", ["layered", "planned"])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda own: "-".join(map(str, own.values())))
@pytest.mark.sampled(5)
def test_every_setting_equals_the_plain_loop(
    toys: Toys,
    reference: ModuleType,
    request: pytest.FixtureRequest,
    engine: str,
    settings: dict[str, object],
) -> None:
    if engine == "planned":
        request.getfixturevalue("planned")
    protocol = replace(SHORT, **settings)  # type: ignore[arg-type]
    outcomes = check(toys["classes", True], [Task("gin", "vpa")], [protocol], reference)
    if protocol.patience is not None:
        assert {len(outcome.curve_val) for outcome in outcomes} != {protocol.epochs}


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.sampled(3)
def test_lanes_of_one_step_have_settings_of_their_own(
    toys: Toys, reference: ModuleType, planned: None, optimizer: str, schedule: str
) -> None:
    own = [(1e-3, 0.0, 0.5), (3e-3, 0.0, 0.2), (1e-3, 0.1, 0.0)]
    tasks = [
        Task("gin", aggr, options=(("dropout", dropout),))
        for aggr, (_, _, dropout) in zip(("sum", "vpa", "vpa"), own, strict=True)
    ]
    shared = replace(SHORT, optimizer=optimizer, schedule=schedule, clip=0.5)  # type: ignore[arg-type]
    protocols = [replace(shared, learning_rate=r, weight_decay=d) for r, d, _ in own]
    check(toys["regression", True], tasks, protocols, reference)


@pytest.mark.parametrize("engine", ["layered", "planned"])
def test_one_task_with_two_protocols_has_two_outcomes(
    toys: Toys, reference: ModuleType, request: pytest.FixtureRequest, engine: str
) -> None:
    if engine == "planned":
        request.getfixturevalue("planned")
    protocols = [SHORT, replace(SHORT, learning_rate=0.01), replace(SHORT, epochs=3)]
    check(toys["classes", False], [Task("gcn", "vpa")] * 3, protocols, reference)


@pytest.mark.gpu
@pytest.mark.parametrize("missing", [False, True], ids=["all there", "some missing"])
@pytest.mark.parametrize(("kind", "protocol"), KINDS)
def test_every_kind_of_task_on_a_gpu(
    toys: Toys, reference: ModuleType, kind: TargetKind, protocol: Protocol, missing: bool
) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    check(toys[kind, missing], [Task("gin", "vpa")], [protocol], reference, "cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda own: "-".join(map(str, own.values())))
def test_every_setting_on_a_gpu(
    toys: Toys, reference: ModuleType, settings: dict[str, object]
) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    tasks = [Task("gin", "vpa", options=(("dropout", dropout),)) for dropout in (0.5, 0.2)]
    protocol = replace(SHORT, **settings)  # type: ignore[arg-type]
    other = replace(protocol, learning_rate=2e-3)
    check(toys["classes", True], tasks, [protocol, other], reference, "cuda")


@pytest.mark.parametrize("engine", ["layered", "planned"])
def test_the_weights_of_the_best_epoch_are_kept(
    toys: Toys, request: pytest.FixtureRequest, reference: ModuleType, engine: str
) -> None:
    if engine == "planned":
        request.getfixturevalue("planned")
    graphs, task, protocol = toys["regression", False], Task("gin", "vpa"), replace(SHORT, epochs=6)
    lanes = lanes_of(graphs)
    outcomes = fit(graphs, task, protocol, lanes, dtype=torch.float64, keep_weights=True)
    assert {outcome.best_epoch for outcome in outcomes} != {5}
    assert all(o.weights is None for o in fit(graphs, task, SHORT, lanes))
    for lane, outcome in zip(lanes, outcomes, strict=True):
        model = task.build(3, 2).double().eval()
        assert outcome.weights is not None
        assert outcome.predictions is not None
        model.load_state_dict(outcome.weights)
        x = graphs.own_features
        assert x is not None
        batch = reference.batch_of(graphs, x.matrix().double(), lane.split.test)
        with torch.no_grad():
            scores = model(batch.x, batch.edge_index, reference.readout_of(batch))
        own = graphs.y[lane.split.train].double()
        said = scores * own.std(0, correction=0) + own.mean(0)
        torch.testing.assert_close(said, outcome.predictions.test, rtol=1e-9, atol=1e-9)


def test_only_a_lane_that_diverges_ends(toys: Toys, planned: None) -> None:
    graphs, lanes = toys["regression", False], lanes_of(toys["regression", False])
    protocols = [SHORT, replace(SHORT, learning_rate=math.inf)]
    sane, wild = (fit(graphs, Task("gcn", "vpa"), own, lanes) for own in protocols)
    both = fit(graphs, [Task("gcn", "vpa")] * 2, protocols, lanes)
    for got in (*wild, *both[2:]):
        assert got.diverged_epoch in (0, 1)
        assert math.isnan(got.test_score)
        assert got.predictions is None
    for got, alone in zip(both[:2], sane, strict=True):
        assert got.diverged_epoch is None
        np.testing.assert_allclose(curves_of(got), curves_of(alone), rtol=1e-4)


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("engine", ["layered", "planned"])
@pytest.mark.parametrize(
    "settings",
    [
        {"patience": 2, "learning_rate": 0.01},
        {"optimizer": "sgd", "schedule": "cosine", "weight_decay": 0.1},
        {"optimizer": "adamw", "schedule": "step"},
    ],
    ids=lambda own: "-".join(map(str, own)),
)
@pytest.mark.sampled(4)
def test_what_was_interrupted_goes_on_to_the_same_bits(
    toys: Toys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    engine: str,
    settings: dict[str, object],
) -> None:
    if engine == "planned":
        request.getfixturevalue("planned")
    monkeypatch.setattr("gnn_vpa.training.checkpoint._PAUSE", 0.0)
    graphs, path = toys["labels", True], tmp_path / "state.pt"
    lanes = lanes_of(graphs, 2)
    protocol = replace(SHORT, epochs=5, **settings)  # type: ignore[arg-type]
    work = (graphs, Task("gin", "vpa"), protocol, lanes)
    expected = fit(*work, keep_weights=True)
    calls: list[int] = []

    def stop(epoch: int) -> None:
        calls.append(epoch)
        if len(calls) in (2, 3):
            raise Killed

    for _ in range(30):
        try:
            outcomes = fit(*work, keep_weights=True, checkpoint=path, progress=stop)
            break
        except Killed:
            assert path.exists()
    assert len(calls) > 2
    again = fit(*work, keep_weights=True, checkpoint=path)  # all of it from the file
    for right, *others in zip(expected, outcomes, again, strict=True):
        assert right.weights is not None
        for got in others:
            assert np.array_equal(curves_of(got), curves_of(right))
            assert (got.best_epoch, got.scores) == (right.best_epoch, right.scores)
            assert got.weights is not None
            assert got.weights.keys() == right.weights.keys()
            assert all(torch.equal(got.weights[name], t) for name, t in right.weights.items())
            for said, expected_said in zip(
                got.predictions or (), right.predictions or (), strict=True
            ):
                assert torch.equal(said, expected_said)


def test_a_metric_that_a_fold_leaves_undefined_is_refused_at_once(toys: Toys) -> None:
    graphs = toys["classes", False]
    ones = (graphs.y == 1).nonzero().squeeze(1)
    (lane,) = lanes_of(graphs, 1)
    bad = Lane(4, Split(lane.split.train, lane.split.valid, ones[:5]))
    match = r"classes, fold 4: ROC-AUC is undefined in its test part, which lacks graphs with and"
    with pytest.raises(UsageError, match=match):
        fit(graphs, Task("gin", "vpa"), replace(SHORT, metric="roc_auc"), [lane, bad])
    (outcome,) = fit(graphs, Task("gin", "vpa"), SHORT, [bad])
    assert math.isnan(outcome.scores["roc_auc"][1])
    assert not math.isnan(outcome.scores["roc_auc"][0])
    assert set(outcome.scores) == {m.name for m in METRICS.values() if "classes" in m.kinds}


def test_nothing_to_learn_is_refused(toys: Toys) -> None:
    graphs = toys["classes", True]
    gone = (graphs.y < 0).nonzero().squeeze(1)
    (lane,) = lanes_of(graphs, 1)
    bad = Lane(2, Split(gone, lane.split.valid, lane.split.test))
    with pytest.raises(UsageError, match="classes, fold 2: all targets of its training part"):
        fit(graphs, Task("gin", "vpa"), SHORT, [bad])


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("classes", {"loss": "mse"}, "loss: 'mse' is not for classes, expected one of cross_ent"),
        ("regression", {"loss": "bce"}, "expected one of l1, mse, huber"),
        ("regression", {"class_weight": "balanced"}, "class_weight: regression has no classes"),
        ("labels", {"metric": "r2"}, "metric: 'r2' is not for labels"),
    ],
)
def test_settings_of_another_kind_are_refused(
    toys: Toys, kind: TargetKind, settings: dict[str, object], message: str
) -> None:
    graphs = toys[kind, False]
    protocol = replace(SHORT, **settings)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=message):
        fit(graphs, Task("gin", "vpa"), protocol, lanes_of(graphs))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs: expected more than 0, got 0"),
        ({"learning_rate": -1.0}, "learning_rate: expected more than 0"),
        ({"weight_decay": -0.1}, "weight_decay: expected 0 or more, got -0.1"),
        ({"weight_decay": math.nan}, "weight_decay: expected 0 or more, got nan"),
        ({"patience": 0}, "patience: expected more than 0"),
        ({"clip": 0.0}, "clip: expected more than 0"),
        ({"schedule": "cos"}, "schedule: 'cos' is unknown, expected one of constant, cosine, step"),
    ],
)
def test_settings_that_are_none_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Protocol(**settings)  # type: ignore[arg-type]
