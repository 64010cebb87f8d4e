"""``--ray`` as a user meets it, where no cluster is needed to say something."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gnn_vpa.cli._app import app
from gnn_vpa.cli._ray import spell_ray
from gnn_vpa.experiments import ray_backend


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Take note of which cluster is asked for, and end there."""
    found: list[tuple[Any, ...]] = []

    @contextmanager
    def connected(*args: Any) -> Iterator[None]:
        found.append(args)
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(ray_backend, "connected", connected)
    return found


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        (["--ray", "MUTAG"], True),
        (["MUTAG", "--ray"], True),
        (["MUTAG", "--ray", "--epochs", "2"], True),
        (["MUTAG", "--ray", "head:6379"], "head:6379"),
        (["MUTAG", "--ray=head:6379"], "head:6379"),
        (["MUTAG", "--ray", "local"], "local"),
    ],
)
def test_an_address_may_follow_and_a_data_set_is_none(
    asked: list[tuple[Any, ...]], tmp_path: Path, typed: list[str], address: object
) -> None:
    CliRunner().invoke(app, ["run", *typed, "--out", str(tmp_path / "new")])
    assert asked == [(address, {})]


def test_what_nodes_need_is_json_or_text(asked: list[tuple[Any, ...]], tmp_path: Path) -> None:
    settings = ["--runtime-env", "working_dir=.", "--runtime-env", 'env_vars={"A": "1"}']
    CliRunner().invoke(app, ["run", "MUTAG", "--ray", *settings, "--out", str(tmp_path / "new")])
    assert asked == [(True, {"working_dir": ".", "env_vars": {"A": "1"}})]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["run", "MUTAG", "--runtime-env", "working_dir=."], "use it with --ray"),
        (["run", "MUTAG", "--ray", "--runtime-env", "x"], "expected NAME=X"),
        (["train", "MUTAG", "--ray"], "one model is one training"),
    ],
)
def test_wrong_use_is_said(tmp_path: Path, typed: list[str], message: str) -> None:
    found = CliRunner().invoke(app, [*typed, "--out", str(tmp_path / "new")])
    assert found.exit_code == 2
    assert message in " ".join(found.stderr.split())


def test_without_ray_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    found = CliRunner().invoke(app, ["run", "MUTAG", "--ray", "--out", str(tmp_path / "new")])
    assert found.exit_code == 2
    assert "pip install 'gnn-vpa[ray]'" in " ".join(found.stderr.split())


def test_other_arguments_are_left_alone() -> None:
    typed = ["run", "a:1", "--rays", "--set", "ray=1"]
    assert spell_ray(typed) == typed
    assert spell_ray([]) == []
