"""How a Ray is found, what is said about one that cannot be used, and what travels to it."""

import sys
from pathlib import Path
from typing import Any

import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import expand, ray_backend
from gnn_vpa.experiments.asked import model_list
from gnn_vpa.experiments.ray_backend import RayCluster, connected
from gnn_vpa.graphs import GraphSet


class FakeRay:
    """Remembers what it is asked for."""

    def __init__(self, *, runs: bool = False, is_used: bool = False) -> None:
        self.runs, self.used = runs, is_used
        self.asked: list[Any] = []

    def is_initialized(self) -> bool:
        return self.used

    def init(self, address: str, **settings: Any) -> None:
        self.asked.append((address, settings["runtime_env"]))
        if address == "auto" and not self.runs:
            raise ConnectionError("Could not find any running Ray instance.")

    def shutdown(self) -> None:
        self.asked.append("shutdown")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setattr(ray_backend, "_ray", lambda: fake)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return fake


def test_a_ray_that_runs_is_used_and_left_as_it_is(fake: FakeRay) -> None:
    fake.runs = True
    with connected():
        pass
    assert fake.asked == [("auto", {}), "shutdown"]  # which ends the connection alone


def test_where_none_runs_one_is_started_and_ended(fake: FakeRay) -> None:
    with connected(runtime_env={"working_dir": "."}) as cluster:
        assert cluster.carries_code
    assert fake.asked == [
        ("auto", {"working_dir": "."}),
        ("local", {"working_dir": "."}),
        "shutdown",
    ]


def test_the_ray_of_this_process_is_used_and_never_ended(fake: FakeRay) -> None:
    fake.used = True
    with connected():
        pass
    assert fake.asked == []
    with pytest.raises(UsageError, match=r"give it to ray\.init"), connected(runtime_env={"a": 1}):
        pass


def test_ray_address_is_honoured(fake: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_backend, "_check_answers", lambda address: None)
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    with connected():
        pass
    with connected("other:6379"):
        pass
    assert [each[0] for each in fake.asked if each != "shutdown"] == ["head:6379", "other:6379"]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:9", "nobody answers there"),
        ("MUTAG", "expected host:port .* goes before --ray"),
    ],
)
def test_an_address_without_a_ray_is_refused_at_once(
    fake: FakeRay, address: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message), connected(address):
        pass
    assert fake.asked == []


def test_without_the_extra_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'gnn-vpa\[ray\]'"), connected():
        pass


def test_a_model_that_cannot_travel_is_refused_before_anything_runs(
    toy: GraphSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    (tmp_path / "locked.py").write_text(
        "import threading\nfrom torch import nn\nLOCK = threading.Lock()\n"
        "def make(in_channels, out_channels):\n"
        "    with LOCK:\n        return nn.Linear(in_channels, out_channels)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    cells = expand([toy], model_list("locked:make")).cells
    with pytest.raises(UsageError, match=r"locked:make cannot be sent .*--runtime-env"):
        RayCluster()._packed(cells)
    assert RayCluster(carries_code=True)._packed(cells)
    del sys.modules["locked"]
