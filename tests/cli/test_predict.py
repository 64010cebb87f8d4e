"""What ``gnn-vpa predict`` does where something goes wrong on its way."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gnn_vpa
from gnn_vpa.cli._app import app
from gnn_vpa.graphs import load

MODULE = """
from gnn_vpa.graphs import load

def broken():
    yield from load("MUTAG").to_pyg()[:5]
    raise KeyError("atom 6")
"""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command in a folder with a model, ``m``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "minetold.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "minetold", raising=False)
    mutag = load("MUTAG")
    signs = np.where(mutag.y.numpy() == 1, "+1", "=1")
    options: dict[str, Any] = {"width": 4, "depth": 1, "epochs": 1, "random_state": 0}
    gnn_vpa.GraphClassifier(**options).fit(mutag, signs).model_.save("m")

    def run(*arguments: str, exit_code: int = 0) -> Any:
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == exit_code, done.output
        return done

    return run


def test_classes_that_are_signed_numbers_keep_their_names(cli: Any) -> None:
    said = {line.split(",")[1] for line in cli("predict", "m", "MUTAG").stdout.splitlines()[1:]}
    assert said <= {"+1", "'=1"}
    assert said != {"'=1"}


def test_a_function_whose_graphs_end_in_an_error_is_named(cli: Any) -> None:
    done = cli("predict", "m", "minetold:broken", "--out", "p.csv", exit_code=1)
    assert "minetold:broken has failed after 5 graphs with KeyError: 'atom 6'" in done.stderr
    assert not Path("p.csv").exists()


@pytest.mark.parametrize("out", ["m/config.json", "m/predictions.csv", "MUTAG.zip"])
def test_neither_the_model_nor_the_graphs_are_written_over(cli: Any, out: str) -> None:
    Path("MUTAG.zip").write_bytes(b"an archive")
    before = {path: path.read_bytes() for path in Path().rglob("*.*") if path.is_file()}
    done = cli("predict", "m", "MUTAG.zip", "--out", out, exit_code=2)
    assert "would write over the model or the graphs" in done.stderr
    assert {path: path.read_bytes() for path in before} == before
