"""``gnn-vpa run`` as a user meets it."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gnn_vpa import Results
from gnn_vpa.cli._app import app
from gnn_vpa.experiments import Cell
from gnn_vpa.training import Task

from .conftest import Start

QUICK = ["--epochs", "2", "--folds", "3", "--device", "cpu"]


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNN_VPA_WORKERS", "1")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["run", *arguments])


def test_it_leaves_results_and_a_report_and_names_them(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    result = _run("MUTAG", "--model", "sgc,gin", "--aggr", "sum,vpa", *QUICK, "--out", str(out))
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "results.sqlite"]
    assert f"Report:  {out / 'report.html'}" in result.stdout
    assert "Left out: sgc has no aggregation sum" in result.stderr
    table = [line.split("\t") for line in result.stdout.splitlines() if line.startswith("MUTAG\t")]
    assert [row[1] for row in table] == ["GIN+sum", "GIN+vpa", "SGC+vpa"]
    assert [row[3] for row in table] == ["87.2 ± 4.9", "86.7 ± 4.4", "73.9 ± 6.2"]


def test_without_a_terminal_there_is_a_line_for_each_cell(tmp_path: Path) -> None:
    arguments = ["MUTAG", "--model", "sgc", *QUICK, "--out", str(tmp_path)]
    lines = _run(*arguments).stderr.splitlines()
    assert lines[:2] == ["MUTAG has edge features, which sgc does not use.", "2 cells to run."]
    assert [line.split(":")[0] for line in lines[2:]] == [
        "MUTAG",  # what merging saves
        "[1/2] SGC on MUTAG",
        "[2/2] SGC+vpa on MUTAG",
    ]
    assert "left" in lines[3]
    assert _run(*arguments).stderr == "0 cells to run, 2 finished before.\n"


def test_in_a_terminal_there_are_bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = _run("MUTAG", "--model", "sgc", *QUICK, "--out", str(tmp_path))
    assert result.exit_code == 0
    assert "━" in result.stderr
    assert "[2/2] SGC+vpa on MUTAG" in result.stderr


def test_the_default_folder_is_under_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _run("MUTAG", "--model", "sgc", *QUICK).exit_code == 0
    assert Path("runs/mutag/results.sqlite").exists()


def test_seeds_baselines_and_other_widths(tmp_path: Path) -> None:
    arguments = ["--model", "sgc", "--aggr", "vpa", "--seeds", "0,1", "--width", "8"]
    result = _run("MUTAG", *arguments, "--baselines", *QUICK, "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    folds = Results(tmp_path).folds
    seeds = folds.groupby("model")["seed"].nunique().to_dict()
    assert seeds == {"MAJORITY": 1, "NO_EDGES": 1, "NO_FEATURES": 1, "SGC": 2, "WL": 1}
    settings = set(zip(folds["variant"], folds["options"], strict=True))
    assert settings == {("", ""), ("released", "width=8")}
    assert "WL subtree kernel + SVM" in result.stdout


def test_graphs_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "from torch_geometric.data import Data\n"
        "def graphs():\n"
        "    edges = torch.tensor([[0, 1], [1, 0]])\n"
        "    return [Data(edge_index=edges, num_nodes=2 + y, y=y) for y in (0, 1)] * 10\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # of another test
    result = _run("mine:graphs", *QUICK, "--model", "sgc", "--out", "results")
    assert result.exit_code == 0, result.output
    assert "paper" not in result.stdout.splitlines()[0]


def test_a_function_that_was_edited_gives_other_results_and_never_the_old_ones(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # two edits within a second
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # of another test: a copy would have it

    def run(edges: str) -> tuple[str, str]:
        (tmp_path / "mine.py").write_text(
            "import torch\n"
            "from torch_geometric.data import Data\n"
            "def graphs():\n"
            f"    edges = torch.tensor({edges})\n"
            "    return [Data(edge_index=edges, num_nodes=2 + y, y=y) for y in (0, 1)] * 10\n"
        )
        arguments = ["run", "mine:graphs", *QUICK, "--model", "sgc", "--aggr", "vpa"]
        with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
            streams = {"stdout": out.fileno(), "stderr": err.fileno()}
            code = start(*arguments, "--out", "results", **streams).wait()
        shown = (tmp_path / "out").read_text(), (tmp_path / "err").read_text()
        assert code == 0, shown[1]
        return shown

    assert "\nmine:graphs\tSGC+vpa" in run("[[0, 1], [1, 0]]")[0]
    edited, said = run("[[0], [1]]")
    assert "1 cell to run" in said
    rows = {line.split("\t")[0] for line in edited.splitlines() if "\tSGC+vpa" in line}
    assert len(rows - {"Avg"}) == 2
    assert all(name.startswith("mine:graphs@") for name in rows - {"Avg"})
    assert "0 cells to run, 1 finished before" in run("[[0, 1], [1, 0]]")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MUTAGG"], "did you mean MUTAG?"),
        (["MUTAG", "--model", "gim"], "did you mean gin?"),
        (["MUTAG", "--model", "sgc", "--aggr", "max"], "the grid is empty"),
        (["MUTAG", "--seed", "one"], "--seed: 'one' must be whole numbers"),
        (["MUTAG", "--folds", "70"], "class -1 has 63 member(s), too few for 70 folds"),
        (["MUTAG", "--features", "colour"], "colour"),
        (["MUTAG", "--model", "sgc", "--depth", "3"], "option of sgc: 'depth' is unknown"),
        (["absent.zip"], "absent.zip does not exist"),
    ],
)
def test_a_mistake_is_answered_with_what_to_do(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    result = _run(*arguments, "--out", str(tmp_path / "out"))
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_an_output_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = _run("MUTAG", *QUICK, "--out", str(tmp_path / "file"))
    assert result.exit_code == 2
    assert "is a file: name a folder" in result.stderr


def test_an_interrupt_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gnn_vpa", "run", "MUTAG", "--epochs", "100000"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*command, "--device", "cpu", "--out", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stderr is not None
        assert "edge features" in process.stderr.readline()
        assert process.stderr.readline() == "4 cells to run.\n"
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    kept = "What is trained so far is kept; type the same command again to go on."
    assert rest == f"Interrupted. {kept}\n"


@pytest.mark.parametrize("command", [["run", "MUTAG"], ["demo"], ["probe", "MUTAG"], ["depth"]])
@pytest.mark.parametrize("device", ["cpu:3", "cudax", "cuda:99"])
def test_a_device_that_is_not_there_is_refused_by_name(
    command: list[str], device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [*command, "--device", device])
    assert result.exit_code == 2
    assert device in result.stderr
    assert result.stderr.startswith("Error: ")
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_stands_for_fewer_folds_says_so(tmp_path: Path) -> None:
    arguments = ["MUTAG", "--model", "sgc", "--aggr", "vpa", *QUICK, "--out", str(tmp_path)]
    assert _run(*arguments).exit_code == 0
    with sqlite3.connect(tmp_path / "results.sqlite") as results:
        results.execute("UPDATE folds SET status = 'diverged' WHERE fold = 1")
        results.execute("UPDATE datasets SET classes = 1")
    results.close()
    result = CliRunner().invoke(app, ["report", str(tmp_path), "--format", "html,md,tex,csv"])
    assert result.exit_code == 0, result.output
    assert "(one class, 2 of 3 folds)\t" in result.stdout
    for ending in ("html", "md", "tex"):
        assert "(one class, 2 of 3 folds)" in (tmp_path / f"report.{ending}").read_text()
    rows = list(csv.DictReader((tmp_path / "report.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == ["done", "diverged", "done"]
    assert {(row["num_folds"], row["classes"]) for row in rows} == {("3", "1")}


def test_a_finished_cell_says_how_many_folds_its_mean_is_over() -> None:
    from gnn_vpa.cli._progress import _came_out

    two, three = (Cell("MUTAG", Task("gin", "vpa"), folds=folds) for folds in (2, 3))
    assert _came_out([0.8, 0.9], two) == "85.0 ± 7.1 %"
    assert _came_out([0.8, 0.9], three) == "85.0 ± 7.1 % (2 of 3 folds)"
    assert _came_out([0.812, 0.915], replace(two, metric="mae")) == "MAE 0.864 ± 0.0728"


# Settings, models and targets of one's own ------------------------------------------------------

_MODEL = """
from torch import nn
from torch_geometric.nn import GIN, global_add_pool

class Net(nn.Module):
    def __init__(self, inputs, outputs, hidden):
        super().__init__()
        self.body, self.head = GIN(inputs, hidden, 2), nn.Linear(hidden, outputs)

    def forward(self, x, edge_index, batch):
        return self.head(global_add_pool(self.body(x, edge_index), batch))

def make(in_channels, out_channels, hidden=4):
    return Net(in_channels, out_channels, hidden)
"""
_DATA = """
import torch
from torch_geometric.data import Data

def graphs():
    found = []
    for number in range(24):
        nodes = 3 + number % 5
        first = torch.arange(nodes - 1)
        edges = torch.stack([torch.cat([first, first + 1]), torch.cat([first + 1, first])])
        homo = float("nan") if number == 5 else nodes / 2
        size = torch.tensor([[float(nodes)]])
        more = {"homo": homo, "batch_of": number // 3}
        found.append(Data(edge_index=edges, num_nodes=nodes, y=size, **more))
    return found
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and data of one's own."""
    (tmp_path / "run_nets.py").write_text(_MODEL)
    (tmp_path / "run_data.py").write_text(_DATA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_model_and_numbers_of_ones_own_with_a_choice(mine: Path) -> None:
    arguments = ["run_data:graphs", "--target", "homo", "--model", "gin,run_nets:make", *QUICK]
    arguments += ["--aggr", "vpa", "--lr", "0.01,0.001", "--set", "hidden=4,8"]
    arguments += ["--select", "--final-runs", "1", "--out", "results"]
    result = _run(*arguments)
    assert result.exit_code == 0, result.output
    assert "1 of 24 targets is missing" in result.stderr
    assert "chosen in" in result.stdout
    folds = Results(mine / "results").folds
    assert set(folds["model"]) == {"GIN", "run_nets:make"}
    assert set(folds["metric"]) == {"mae"}
    assert set(folds["dataset"]) == {"run_data:graphs:homo"}
    chosen = [json.loads(text) for text in folds["chosen"]]
    assert {frozenset(choice) for choice in chosen} == {frozenset({"learning_rate", "hidden"})}
    assert len(Results(mine / "results").candidates) == 2 * 4 * 3
    assert "0 cells to run, 10 finished before" in _run(*arguments).stderr


def test_without_a_choice_each_setting_is_a_row_and_a_warning_says_so(tmp_path: Path) -> None:
    result = _run("MUTAG", "--model", "sgc", "--aggr", "vpa", "--lr", "0.01,0.001", *QUICK,
                  "--out", str(tmp_path))  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "2 settings of a method are rows of their own" in result.stderr
    assert set(Results(tmp_path).folds["protocol"]) == {"learning rate 0.01", ""}


def test_groups_and_repeats(mine: Path) -> None:
    arguments = ["--groups", "batch_of", "--repeats", "2", "--model", "sgc", "--aggr", "vpa"]
    result = _run("run_data:graphs", *arguments, *QUICK, "--out", "results")
    assert result.exit_code == 0, result.output
    folds = Results(mine / "results").folds
    assert sorted(set(folds["repeat"])) == [0, 1]
    assert folds["division"].str.startswith("groups batch_of ").all()


def test_splits_of_ones_own(mine: Path) -> None:
    fold = {"train": list(range(12)), "validation": [12, 13, 14, 15], "test": [16, 17, 18, 19]}
    (mine / "mine.json").write_text(json.dumps([fold]))
    arguments = ["run_data:graphs", "--splits", "mine.json", "--model", "sgc", "--epochs", "1"]
    result = _run(*arguments, "--aggr", "vpa", "--device", "cpu", "--out", "results")
    assert result.exit_code == 0, result.output
    assert len(Results(mine / "results").folds) == 1


def test_a_plan_lists_settings(tmp_path: Path) -> None:
    arguments = ["--model", "sgc", "--aggr", "vpa", "--lr", "0.01,0.001", "--select", "--plan"]
    result = _run("MUTAG", *arguments, *QUICK, "--out", str(tmp_path / "none"))
    assert result.exit_code == 0, result.output
    assert "SGC+vpa (chosen from 2) on MUTAG" in result.stdout
    assert "3 cells would run" in result.stdout
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "cuda:0,cuda:0"], "there is no device cuda:0,cuda:0"),
        (["--device", "cuda,cpu"], "cuda is all GPUs"),
        (["--workers", "0"], "greater than or equal to 1"),
        (["--lr", "fast"], "--lr: expected a number above 0, got 'fast'"),
        (["--optimizer", "admw"], "--optimizer: 'admw' is unknown: did you mean adamw?"),
        (["--metric", "mae"], "'mae' is not for classes"),
        (["--loss", "mse"], "'mse' is not for classes"),
        (["--final-runs", "2"], "final_runs: they are for what select has chosen"),
        (["--splits", "no.json"], "no.json cannot be read"),
        (["--splits", "no.json", "--folds", "3"], "folds and splits: give one of them"),
        (["--splits", "no.json", "--repeats", "3"], "repeats and splits"),
        (["--groups", "scaffold"], "MUTAG has no column 'scaffold'"),
        (["--set", "hiden=3"], "did you mean hidden?"),
        (["--set", "lr=3"], "use --lr"),
        (["--width", "8", "--set", "width=9"], "--width and --set width are the same"),
        (["--model", "nomodule:make"], "nomodule"),
        (["--target", "attributes"], "there is no target 'attributes'"),
    ],
)
def test_a_wrong_setting_is_answered_before_anything_is_trained(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    result = _run("MUTAG", *arguments, "--out", str(tmp_path / "out"))
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_help_is_in_panels() -> None:
    shown = _run("--help").stdout
    panels = ("Data", "Methods", "Training", "Choosing", "Splits", "Run")
    places = [shown.index(f"─ {panel} ") for panel in panels]
    assert places == sorted(places)


def test_curves_for_tensorboard_are_written_and_named(tmp_path: Path) -> None:
    board = tmp_path / "board"
    quick = ["--model", "sgc", "--aggr", "vpa", "--epochs", "2", "--folds", "2", "--device", "cpu"]
    result = CliRunner().invoke(
        app, ["run", "MUTAG", *quick, "--out", str(tmp_path / "run"), "--tensorboard", str(board)]
    )
    assert result.exit_code == 0, result.output
    assert f"tensorboard --logdir {board}" in result.stdout
    assert len(list(board.glob("SGC+vpa on MUTAG */fold */events.out.tfevents.*"))) == 2


def test_tables_of_several_settings_can_be_told_apart_in_a_pipe(tmp_path: Path) -> None:
    arguments = ["--model", "sgc", "--aggr", "vpa", "--width", "8,16", *QUICK]
    result = _run("MUTAG", *arguments, "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    tables = result.stdout.split("data set\tmethod")
    assert len(tables) == 3
    titles = [table.splitlines()[-1] for table in tables[:2]]
    assert [("width=8" in title, "width=16" in title) for title in sorted(titles)] == [
        (False, True),
        (True, False),
    ]
