from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import gnn_vpa
from gnn_vpa.cli import info
from gnn_vpa.cli._app import app


def _found() -> dict[str, str]:
    result = CliRunner().invoke(app, ["info"])
    assert result.exit_code == 0
    return dict(line.split("\t") for line in result.stdout.splitlines())


def test_versions_and_the_backend_of_the_cpu() -> None:
    found = _found()
    assert found["gnn-vpa"] == gnn_vpa.__version__
    assert found["torch"] == version("torch")
    assert found["cpu"].endswith(f"backend {gnn_vpa.backend('cpu')}")


def test_a_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(info, "_EXTRAS", {"surely-not-installed": "ray"})
    assert _found()["surely-not-installed"] == "not installed: pip install 'gnn-vpa[ray]'"


def test_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GNN_VPA_DATA", raising=False)
    assert _found()["data"] == "GNN_VPA_DATA is not set"
    monkeypatch.setenv("GNN_VPA_DATA", str(tmp_path))
    assert _found()["data"] == f"no archive in {tmp_path}"
    (tmp_path / "MUTAG.zip").touch()
    assert _found()["data"] == f"MUTAG in {tmp_path}"
