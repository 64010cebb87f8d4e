"""What runs on a node says what it lacks there."""

import pickle
import sys

import pytest

from gnn_vpa.experiments.ray_actor import actor_class


def test_what_runs_on_a_node_travels_without_the_package() -> None:
    cloudpickle = pytest.importorskip("ray.cloudpickle", reason="Ray is not installed")
    content = cloudpickle.dumps(actor_class())
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.partition(".")[0] == "gnn_vpa"]:
            patch.setitem(sys.modules, name, None)
        made = pickle.loads(content)("cpu", pickle.dumps({}))
        problem, place = made.place()
    assert place is None
    assert "gnn-vpa cannot be used there" in problem
    assert "install it on the node" in problem


def test_a_model_that_cannot_be_read_on_a_node_is_said() -> None:
    problem, place = actor_class()("cpu", b"no pickle").place()
    assert place is None
    assert "--runtime-env working_dir=." in problem
