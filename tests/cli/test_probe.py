"""``gnn-vpa probe`` as a user meets it."""

import os
import re
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from gnn_vpa.cli._app import app

from .conftest import Start

QUICK = ["--graphs", "8", "--depth", "2"]

MODULE = """
import torch
from torch_geometric.nn import GIN, GCN

def pair():
    torch.manual_seed(0)
    return GIN(4, 8, 2), (torch.randn(20, 4), torch.randint(20, (2, 200)))

def named():
    return GCN(4, 8, 2), {"x": torch.randn(20, 4), "edge_index": torch.randint(20, (2, 80))}

def trainable():
    torch.manual_seed(0)
    inputs = torch.randn(20, 4), torch.randint(20, (2, 80))
    return GCN(4, 1, 2), inputs, lambda out: out.square().mean()

class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gnn, self.lin = GIN(7, 8, 2), torch.nn.Linear(8, 2)

    def forward(self, x, edge_index, batch):
        h = self.gnn(x, edge_index)
        return self.lin(torch.zeros(int(batch.max()) + 1, 8).index_add(0, batch, h))

def model():
    return Classifier()

def made(in_channels, out_channels, width=8):
    assert (in_channels, out_channels) == (7, 2)
    return Classifier()

def two(in_channels, out_channels):
    assert in_channels == 2
    return Classifier()

def nothing():
    return "no model"

def fails():
    raise KeyError("weights")
"""


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["probe", *map(str, arguments)])


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of one's own in the folder that the command is run from."""
    monkeypatch.chdir(tmp_path)
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    return name


def test_a_paper_model_gets_a_table_and_a_verdict() -> None:
    result = invoke("MUTAG", "--model", "gcn", "--aggr", "sum", *QUICK)
    assert result.exit_code == 0, result.stderr
    table, verdict = result.stdout.split("\n\n")
    assert table.splitlines()[0].split()[:4] == ["layer", "step", "mean", "variance"]
    assert any(line.startswith("convs.1  ") for line in table.splitlines())
    assert re.search(r"convs\.\d \(GraphConv\), sum: variance .*would make it", verdict)
    assert result.stderr == "Probing gcn+sum on MUTAG …\n"


def test_a_terminal_gets_a_drawn_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "110")
    result = invoke("MUTAG", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "───" in result.stdout


@pytest.mark.parametrize(("model", "aggr"), [("gin", "max"), ("gat", "default"), ("sgc", "vpa")])
def test_every_model_can_be_probed(model: str, aggr: str) -> None:
    result = invoke("MUTAG", "--model", model, "--aggr", aggr, "--graphs", "8")
    assert result.exit_code == 0, result.stderr
    assert f"aggregation ({aggr})" in result.stdout


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, second, other = (invoke("MUTAG", *QUICK, "--seed", seed).stdout for seed in "112")
    assert first == second
    assert first != other


def test_files_are_written_where_asked(tmp_path: Path) -> None:
    page, picture, numbers = (tmp_path / "new" / f"s.{end}" for end in ("html", "png", "csv"))
    result = invoke("MUTAG", *QUICK, "--html", page, "--plot", picture, "--csv", numbers)
    assert result.exit_code == 0, result.stderr
    assert "gnn-vpa probe" in page.read_text(encoding="utf-8")
    assert picture.read_bytes().startswith(b"\x89PNG")
    frame = pd.read_csv(numbers)
    assert {"layer", "step", "variance", "backward_variance"} <= set(frame.columns)
    for path in (page, picture, numbers):
        assert f"Wrote {path}" in result.stdout


def test_training_is_followed(tmp_path: Path) -> None:
    numbers = tmp_path / "training.csv"
    result = invoke("MUTAG", *QUICK, "--train", 2, "--every", 10, "--csv", numbers)
    assert result.exit_code == 0, result.stderr
    assert "Before training:" in result.stdout
    assert "After 2 epochs:" in result.stdout
    steps = pd.read_csv(numbers)["training_step"].unique()
    assert steps.tolist() == list(range(0, 48, 10))  # 188 graphs in batches of 8, twice


@pytest.mark.parametrize("function", ["pair", "named"])
def test_a_model_of_ones_own_with_its_inputs(module: str, function: str) -> None:
    result = invoke("--model", f"{module}:{function}")
    assert result.exit_code == 0, result.stderr
    assert "convs.0" in result.stdout


def test_a_model_of_ones_own_on_a_data_set(module: str) -> None:
    result = invoke("MUTAG", "--model", f"{module}:model", "--graphs", 8)
    assert result.exit_code == 0, result.stderr
    assert "gnn.convs.0" in result.stdout


def test_a_function_that_run_takes_is_called_with_the_channels_of_the_data(module: str) -> None:
    result = invoke("MUTAG", "--model", f"{module}:made", "--graphs", 8)
    assert result.exit_code == 0, result.stderr
    assert "gnn.convs.0" in result.stdout
    failed = invoke("MUTAG", "--model", f"{module}:two", "--graphs", 8)
    assert failed.exit_code == 2
    assert "7 and 2 channels, but failed with AssertionError" in failed.stderr


def test_a_model_of_ones_own_is_trained_by_its_own_loss(module: str) -> None:
    result = invoke("--model", f"{module}:trainable", "--train", 3)
    assert result.exit_code == 0, result.stderr
    assert "After 3 epochs:" in result.stdout
    without = invoke("--model", f"{module}:pair", "--train", 3)
    assert without.exit_code == 2
    assert "(model, inputs, loss)" in without.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a data set, such as MUTAG"),
        (["MUTAGG"], "did you mean MUTAG?"),
        (["MUTAG", "--model", "ginn"], "Did you mean 'gin'?"),
        (["MUTAG", "--aggr", "summ"], "'summ' is unknown"),
        (["MUTAG", "--model", "sgc", "--aggr", "sum"], "SGC has no 'sum'"),
        (["MUTAG", "--model", "sgc", "--depth", "3"], "'depth' is unknown"),
        (["MUTAG", "--plot", "signal.bmp"], "must end in .png, .svg, .pdf"),
        (["--model", "no_such_module:make"], "No module named 'no_such_module'"),
        (["--model", "math:make"], "has no attribute 'make'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_use_is_explained(arguments: list[str], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nothing", "must return a model"),
        ("fails", "failed with KeyError: 'weights'"),
        ("model", "without inputs"),
        ("made", "asks for the channels of a data set: name one"),
    ],
)
def test_a_function_that_makes_no_model_is_explained(
    module: str, function: str, message: str
) -> None:
    result = invoke("--model", f"{module}:{function}")
    assert result.exit_code == 2
    assert message in result.stderr


def test_help_shows_examples() -> None:
    result = CliRunner().invoke(app, ["probe", "--help"], env={"COLUMNS": "120"})
    assert "gnn-vpa probe MUTAG --model gin --aggr sum" in result.stdout


def test_an_impatient_user_gets_one_line(start: Start) -> None:
    reader, writer = os.pipe()
    command = start("probe", "MUTAG", "--train", "10000", stdout=writer, stderr=writer)
    os.close(writer)
    with os.fdopen(reader) as shown:
        for line in shown:
            if line.startswith("Training"):
                break
        time.sleep(0.2)
        command.interrupt()
        rest = shown.read()
    assert command.wait() == 130
    assert rest.strip() == "Interrupted."
