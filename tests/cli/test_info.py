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
    remedy = "not installed: pip install 'gnn-vpa[ray]'"
    assert _found()["surely-not-installed"] == remedy
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")  # a narrow terminal wraps the line
    assert remedy in CliRunner().invoke(app, ["info"]).stdout


def test_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GNN_VPA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GNN_VPA_DATA", str(tmp_path / "missing"))
    assert "missing does not exist" in _found()["data"]
    monkeypatch.setenv("GNN_VPA_DATA", str(tmp_path))
    (tmp_path / "NCI1.zip").touch()
    (tmp_path / "MUTAG.zip").touch()
    assert _found()["data"] == f"MUTAG, NCI1 in {tmp_path}"


def test_no_data_says_how_to_get_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnn_vpa.graphs.find_archives", dict)
    assert _found()["data"] == "none: gnn-vpa data get MUTAG"
