from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gnn_vpa.cli._app import app
from gnn_vpa.nn import MODELS


def _run(tu_dir: Path, *arguments: str) -> Result:
    quick = ["--graphs", "5", "--draws", "1", "--data-dir", str(tu_dir)]
    return CliRunner().invoke(app, ["theory", *arguments, *quick])


def test_a_line_for_each_layer(tu_dir: Path) -> None:
    result = _run(tu_dir, "MUTAG", "--aggr", "sum,vpa", "--depth", "2")
    assert result.exit_code == 0, result.output
    header, *rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert header == ["data set", "aggr", "layer", "independent", "correlated", "measured", "rho"]
    layers = ["convs.0", "convs.1", "head.lin1"]
    assert [row[1:3] for row in rows] == [[a, layer] for a in ("sum", "vpa") for layer in layers]


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_known(tu_dir: Path, model: str) -> None:
    assert _run(tu_dir, "MUTAG", "--model", model).exit_code == 0


def test_a_picture_is_drawn(tu_dir: Path, tmp_path: Path) -> None:
    picture = tmp_path / "new" / "theory.svg"
    result = _run(tu_dir, "MUTAG", "--out", str(picture))
    assert result.stdout.endswith(f"Wrote {picture}\n")
    assert picture.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MUTAG", "--out", "theory.bmp"], "theory.bmp must end in .png"),
        (["MUTAG", "--model", "gat", "--aggr", "sum"], "aggr: GAT has no 'sum'"),
        (["MUTAGG"], "did you mean MUTAG?"),
        (["MUTAG", "--model", "gim"], "model: 'gim' is unknown: did you mean gin?"),
        (["MUTAG", "--model", "sgc", "--depth", "2"], "option of sgc: 'depth' is unknown"),
        (["MUTAG", "--model", "mine:net"], "gnn-vpa probe --model mine:net"),
    ],
)
def test_wrong_use_ends_with_a_message(tu_dir: Path, arguments: list[str], message: str) -> None:
    result = _run(tu_dir, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
