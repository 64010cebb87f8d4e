"""Which trainings share a step."""

from dataclasses import fields, replace
from typing import Any

import pytest

from gnn_vpa.training import Protocol, Task, family_of

TASK, PROTOCOL = Task("gin", "vpa"), Protocol()
OTHERS: dict[str, Any] = {
    "epochs": 7, "batch_size": 7, "learning_rate": 0.5, "weight_decay": 0.5, "optimizer": "sgd",
    "schedule": "step", "patience": 7, "clip": 7.0, "loss": "cross_entropy",
    "class_weight": "balanced", "metric": "macro_f1", "precision": "bfloat16",
}  # fmt: skip


@pytest.mark.parametrize("name", [field.name for field in fields(Protocol)])
def test_protocols_share_a_step_but_for_what_a_lane_has_as_a_number(name: str) -> None:
    other = replace(PROTOCOL, **{name: OTHERS[name]})
    together = family_of(TASK, PROTOCOL) == family_of(TASK, other)
    assert together == (name in ("learning_rate", "weight_decay"))
    assert name in other.settings()


@pytest.mark.parametrize(
    ("other", "together"),
    [
        (Task("gin", "sum"), True),
        (Task("gin", "max"), False),
        (Task("gcn", "vpa"), False),
        (Task("gin", "vpa", options=(("dropout", 0.1),)), True),
        (Task("gin", "vpa", options=(("width", 8),)), False),
        (Task("gin", "vpa", options=(("start", "init"),)), True),
        (Task("gin", "vpa", features="ones"), False),
    ],
)
def test_tasks_share_a_step_but_for_what_changes_shapes(other: Task, together: bool) -> None:
    assert (family_of(TASK, PROTOCOL) == family_of(other, PROTOCOL)) == together


def test_settings_of_old_results_stay_what_they_were() -> None:
    assert PROTOCOL.settings() == {"epochs": 200, "batch_size": 64, "learning_rate": 1e-3}
    assert repr(TASK) == (
        "Task(model='gin', aggr='vpa', variant='released', features='auto', options=())"
    )
