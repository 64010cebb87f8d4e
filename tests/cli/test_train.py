"""``gnn-vpa train``, ``predict``, ``evaluate`` and ``export`` as a user meets them."""

import csv
import errno
import io
import math
import os
import shutil
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gnn_vpa
from gnn_vpa.cli._app import app
from gnn_vpa.graphs import find_archives, load
from gnn_vpa.trained import TrainedModel

from .conftest import Start

QUICK = ["--epochs", "2"]
SMALL = ["--epochs", "1", "--width", "4", "--depth", "1"]

MODULE = """
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GIN, global_add_pool
from gnn_vpa.graphs import find_archives, load

class Net(torch.nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.gnn, self.lin = GIN(i, 8, 2), torch.nn.Linear(8, o)
    def forward(self, x, edge_index, batch):
        return self.lin(global_add_pool(self.gnn(x, edge_index), batch))

def wider(in_channels, out_channels):
    return Net(in_channels, out_channels + 1)

def make(in_channels, out_channels):
    return Net(in_channels, out_channels)

def graphs():
    for graph in load("MUTAG").to_pyg():
        yield Data(x=graph.x, edge_index=graph.edge_index)

def labelled():
    return load("MUTAG").to_pyg()

def few():
    return labelled()[:10]
"""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "mine", raising=False)

    def run(*arguments: str, exit_code: int = 0) -> Any:
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == exit_code, done.output
        return done

    return run


def rows_of(text: str) -> list[dict[str, str]]:
    """Read CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def test_a_model_is_trained_and_says_what_to_do_next(cli: Any, tmp_path: Path) -> None:
    done = cli("train", "MUTAG", "--model", "gin", "--aggr", "vpa", *QUICK, "--out", "mymodel")
    assert "Accuracy" in done.stdout
    assert "95 % interval" in done.stdout
    assert "19 graphs that chose the epoch" in done.stdout
    assert "Next:  gnn-vpa predict mymodel NEW.zip --out predictions.csv" in done.stdout
    assert "Accuracy" in (tmp_path / "mymodel" / "README.md").read_text()


def test_predictions_are_those_of_the_model(cli: Any, tmp_path: Path) -> None:
    cli("train", "MUTAG", *QUICK, "--out", "mymodel")
    cli("predict", "mymodel", "MUTAG", "--out", "predictions.csv")
    rows = rows_of((tmp_path / "predictions.csv").read_text())
    model, mutag = gnn_vpa.load_model("mymodel"), load("MUTAG")
    assert [int(row["prediction"]) for row in rows] == model.predict(mutag).tolist()
    shares = [[float(row["p_-1"]), float(row["p_1"])] for row in rows]
    np.testing.assert_allclose(shares, model.predict_proba(mutag), atol=1e-6)
    assert [int(row["graph"]) for row in rows] == list(range(188))
    assert rows_of(cli("predict", "mymodel", "MUTAG").stdout) == rows  # to standard output
    assert rows_of(cli("predict", "mymodel", "mine:graphs").stdout) == rows  # an iterator


def test_new_graphs_have_no_labels(cli: Any, tmp_path: Path) -> None:
    cli("train", "MUTAG", *QUICK, "--out", "mymodel")
    known = rows_of(cli("predict", "mymodel", "MUTAG").stdout)
    with zipfile.ZipFile(find_archives()["MUTAG"]) as archive:
        for name in archive.namelist():
            if name.endswith(".txt") and "graph_labels" not in name:
                archive.extract(name, tmp_path / "new")
    assert rows_of(cli("predict", "mymodel", "new/MUTAG").stdout) == known
    refused = cli("run", "new/MUTAG", "--model", "sgc", *QUICK, exit_code=2)
    assert "0 graph(s) with a target are too few" in refused.stderr


def test_a_fault_leaves_no_half_of_a_file(cli: Any, tmp_path: Path) -> None:
    cli("train", "MUTAG", *QUICK, "--out", "mymodel")
    (tmp_path / "mine.py").write_text(
        MODULE + "\ndef wrong():\n    yield from list(graphs())\n    yield 3\n"
    )
    done = cli("predict", "mymodel", "mine:wrong", "--out", "predictions.csv", exit_code=2)
    assert "graph 188" in done.stderr
    assert not (tmp_path / "predictions.csv").exists()
    assert cli("predict", "mymodel", "mine:wrong", exit_code=2).stdout == ""  # no header either


def test_a_model_is_evaluated_by_every_metric(cli: Any) -> None:
    cli("train", "MUTAG", *QUICK, "--out", "mymodel")
    done = cli("evaluate", "mymodel", "MUTAG")
    scores = gnn_vpa.load_model("mymodel").evaluate(load("MUTAG"))
    assert f"Accuracy\t{100 * scores['accuracy']:.1f} %\t" in done.stdout
    assert "Wilson" in done.stdout
    assert "trained on" in done.stderr


def test_a_model_of_ones_own_needs_its_function(cli: Any) -> None:
    cli("train", "MUTAG", "--model", "mine:make", *QUICK, "--out", "mymodel")
    done = cli("predict", "mymodel", "MUTAG", exit_code=2)
    assert "no code is run that a file names" in done.stderr
    assert "--model module:function on the command line" in done.stderr
    done = cli("predict", "mymodel", "MUTAG", "--model", "mine:wider", exit_code=2)
    assert "does not fit the weights" in done.stderr
    rows = rows_of(cli("predict", "mymodel", "MUTAG", "--model", "mine:make").stdout)
    assert len(rows) == 188


def test_export_writes_a_program_and_onnx_says_what_it_lacks(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("train", "MUTAG", *QUICK, "--out", "mymodel")
    cli("export", "mymodel", "--format", "pt2")
    assert (tmp_path / "mymodel.pt2").exists()
    from gnn_vpa.trained import exporting

    monkeypatch.setattr(exporting, "find_spec", lambda name: None)
    done = cli("export", "mymodel", "--format", "onnx", exit_code=2)
    assert "onnx needs onnx" in done.stderr


def test_a_model_is_exported_from_within_its_folder(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither . nor .. has a name of its own: the file has the folder's, and stands beside it."""
    cli("train", "MUTAG", *QUICK, "--out", "mymodel")
    before = {path.name for path in (tmp_path / "mymodel").iterdir()}
    monkeypatch.chdir(tmp_path / "mymodel")
    cli("export", ".")
    assert (tmp_path / "mymodel.pt2").is_file()
    (tmp_path / "mymodel.pt2").unlink()
    (tmp_path / "mymodel" / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "mymodel" / "deeper")
    cli("export", "..")
    assert (tmp_path / "mymodel.pt2").is_file()
    assert {path.name for path in (tmp_path / "mymodel").iterdir()} == before | {"deeper"}


def test_several_models_are_refused_before_anything_is_trained(cli: Any) -> None:
    done = cli("train", "MUTAG", "--lr", "0.1,0.01", "--out", "mymodel", exit_code=2)
    assert "2 models are asked for" in done.stderr
    assert "--select" in done.stderr
    done = cli("train", "MUTAG", "--folds", "3", "--out", "mymodel", exit_code=2)
    assert "--folds is for the cross-validation of --select" in done.stderr


def test_the_share_for_validation_is_called_as_it_was_typed(cli: Any) -> None:
    few = cli("train", "mine:few", *QUICK, "--out", "mymodel", exit_code=2)
    assert "use another --validation-fraction, or more graphs" in few.stderr
    share = ["--validation-fraction", "2", "--out", "mymodel"]
    wrong = cli("train", "mine:absent", *share, exit_code=2)  # before anything is read
    assert "--validation-fraction: expected between 0 and 1, got 2.0" in wrong.stderr


@pytest.mark.parametrize("how", [[], ["--select", "--lr", "0.1,0.01"]])
@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("full", "full is a folder with other things in it: name a new one"),
        ("full/thesis.tex", "thesis.tex is a file: name a folder"),
        ("model", "model holds a model and other things (thesis.tex): name another folder"),
        ("new.zip", "models are saved as folders: leave .zip away, and zip the folder yourself"),
        (".", ". has no name of its own: name a new folder, such as mymodel"),
        ("..", ".. has no name of its own"),
    ],
)
def test_a_place_that_is_taken_is_refused_before_anything_is_read(
    cli: Any, tmp_path: Path, how: list[str], out: str, message: str
) -> None:
    for folder in ("full", "model"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "thesis.tex").touch()
    (tmp_path / "model" / "config.json").touch()
    done = cli("train", "mine:absent", *how, "--out", out, exit_code=2)
    assert message in done.stderr
    assert not list(tmp_path.rglob("*-selection"))


def test_select_chooses_by_cross_validation_and_says_so(cli: Any, tmp_path: Path) -> None:
    settings = ["--width", "4,8", "--folds", "3", "--final-runs", "1"]
    done = cli("train", "MUTAG", *QUICK, *settings, "--select", "--out", "mymodel")
    assert "Chosen: GIN+vpa (width=" in done.stdout
    model = gnn_vpa.load_model("mymodel")
    assert model.record.judged == "cross-validation"
    assert model.record.interval is not None
    low, high = model.record.interval
    assert low <= (model.record.score or 0) <= high
    assert dict(model.task.options)["width"] in (4, 8)
    assert "cross-validation" in (tmp_path / "mymodel" / "README.md").read_text()


def test_a_run_keeps_models_and_they_speak_with_their_mean(cli: Any, tmp_path: Path) -> None:
    grid = ["run", "MUTAG", "--aggr", "vpa,sum", *QUICK, "--folds", "3", "--keep-models"]
    cli(*grid, "--out", "r")
    done = cli("predict", "r", "MUTAG", exit_code=2)
    assert "GIN+sum on MUTAG; GIN+vpa on MUTAG" in done.stderr
    rows = rows_of(cli("predict", "r", "MUTAG", "--method", "gin+vpa").stdout)
    mutag = load("MUTAG")
    folds = [
        gnn_vpa.load_model(fold)
        for method in (tmp_path / "r" / "models").glob("*/method.txt")
        if "vpa" in method.read_text()
        for fold in method.parent.glob("fold-*")
    ]
    assert len(folds) == 3
    mean = np.mean([fold.predict_proba(mutag) for fold in folds], axis=0)
    shares = [[float(row["p_-1"]), float(row["p_1"])] for row in rows]
    np.testing.assert_allclose(shares, mean, atol=1e-5)
    done = cli("predict", "r", "MUTAG", "--method", "gat", exit_code=2)
    assert "no method 'gat'" in done.stderr


def test_folds_are_kept_with_the_score_that_the_run_records(cli: Any, tmp_path: Path) -> None:
    from gnn_vpa.experiments import read_folds

    cli("run", "MUTAG", "--aggr", "vpa", *QUICK, "--folds", "3", "--keep-models", "--out", "r")
    recorded = read_folds("r").set_index("fold")["test_score"]
    for fold in range(3):
        (path,) = (tmp_path / "r" / "models").glob(f"*/fold-{fold}")
        model = gnn_vpa.load_model(path)
        assert model.record.judged == "test"
        assert model.record.score == pytest.approx(recorded[fold])


def test_a_run_without_models_says_how_to_get_them(cli: Any) -> None:
    run = ["run", "MUTAG", "--aggr", "vpa", *QUICK, "--folds", "3", "--out", "r"]
    cli(*run)
    assert "has kept no models" in cli("predict", "r", "MUTAG", exit_code=2).stderr
    done = cli(*run, "--keep-models")
    assert "finished before, without models" in done.stderr


def test_a_run_does_not_hide_a_model(cli: Any, tmp_path: Path) -> None:
    run = ["run", "MUTAG", "--aggr", "vpa", *QUICK, "--folds", "2", "--keep-models"]
    cli("train", "MUTAG", *QUICK, "--out", "m")
    for more in ([], ["--plan"]):
        refused = cli(*run, *more, "--out", "m", exit_code=2)
        assert "m holds a saved model: name another folder" in refused.stderr
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    cli(*run, "--out", "r")
    (tmp_path / "r" / "results.sqlite").rename(tmp_path / "m" / "results.sqlite")
    for command in ("predict", "evaluate"):
        refused = cli(command, "m", "MUTAG", exit_code=2)
        assert "move one of them into a folder of its own" in refused.stderr


def test_a_terminal_and_a_pipe_get_the_same_lines(cli: Any, start: Start, tmp_path: Path) -> None:
    cli("train", "MUTAG", *QUICK, "--out", "mymodel")
    predict = ("predict", "mymodel", "MUTAG")
    piped, told = tmp_path / "piped.csv", tmp_path / "told"
    with piped.open("w") as stdout, told.open("w") as stderr:
        assert start(*predict, stdout=stdout.fileno(), stderr=stderr.fileno()).wait() == 0
    main, end = os.openpty()
    terminal = {**os.environ, "TERM": "xterm"}
    with (tmp_path / "drawn.csv").open("w") as drawn:
        assert start(*predict, stdout=drawn.fileno(), stderr=end, env=terminal).wait() == 0
    os.close(end)
    shown = b""
    with suppress(OSError):  # that is how a terminal ends
        while part := os.read(main, 1 << 16):
            shown += part
    os.close(main)
    assert (tmp_path / "drawn.csv").read_text() == piped.read_text()
    assert told.read_text() == "Predicting …\n"
    assert "188 graphs" in shown.decode()


def test_the_curves_of_a_model_are_written_for_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model, board = str(tmp_path / "model"), str(tmp_path / "board")
    command = ["train", "MUTAG", "--model", "sgc", *QUICK, "--out", model, "--tensorboard", board]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    (path,) = (tmp_path / "board").glob("SGC+vpa on MUTAG */model/events.out.tfevents.*")
    events = EventAccumulator(str(path)).Reload()
    assert [event.step for event in events.Scalars("train/loss")] == [0, 1]
    assert "test/accuracy" not in events.scalars.Keys()  # it has no test graphs


def test_a_selection_speaks_of_its_own_folds_alone(cli: Any, tmp_path: Path) -> None:
    """The folder of the selection may hold other data, and other grids, from before."""

    def trained(data: str, rates: str, out: str) -> tuple[object, object]:
        few = ["--folds", "3", "--final-runs", "1", "--model", "sgc", "--lr", rates]
        cli("train", data, *QUICK, *few, "--select", "--out", out)
        record = gnn_vpa.load_model(out).record
        shutil.rmtree(out)
        return record.scores, record.interval

    alone = trained("MUTAG", "0.1,0.03", "alone")
    (tmp_path / "half").mkdir()
    with zipfile.ZipFile("half.zip", "w") as packed:
        _write_half(packed)
    trained("half.zip", "0.1,0.03", "m")
    trained("MUTAG", "0.01,0.001", "m")
    assert trained("MUTAG", "0.1,0.03", "m") == alone


def test_a_model_outlives_a_full_disk(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    save, tried = TrainedModel.save, []

    def full(self: TrainedModel, path: Path) -> None:
        tried.append(path)
        if len(tried) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(self, path)

    monkeypatch.setattr(TrainedModel, "save", full)
    done = cli("train", "MUTAG", *SMALL, "--out", "m", exit_code=1)
    assert "m cannot be written (No space left on device). The model is not lost" in done.stderr
    assert gnn_vpa.load_model(tried[1]).record.data.name == "MUTAG"
    shutil.rmtree(tried[1].parent)


def test_a_model_of_other_data_is_not_replaced(cli: Any) -> None:
    cli("train", "MUTAG", *QUICK, "--out", "m")
    cli("train", "MUTAG", "--epochs", "1", "--out", "m")
    done = cli("train", "MUTAG", *QUICK, "--model", "gcn", "--out", "m", exit_code=2)
    assert "m holds another model (gin, vpa, auto features, MUTAG)" in done.stderr
    assert "name another folder, or remove it" in done.stderr
    done = cli("train", "mine:labelled", *QUICK, "--out", "m", exit_code=2)
    assert "m holds another model" in done.stderr
    for other in (["--aggr", "sum"], ["--features", "degree"]):
        done = cli("train", "MUTAG", *QUICK, *other, "--out", "m", exit_code=2)
        assert "m holds another model" in done.stderr
    assert gnn_vpa.load_model("m").task.aggr == "vpa"


def test_a_selection_replaces_what_it_chooses_from_and_nothing_else(
    cli: Any, tmp_path: Path
) -> None:
    select = ["train", "MUTAG", *SMALL, "--select", "--folds", "2", "--final-runs", "1"]
    cli(*select, "--model", "gcn,gin", "--out", "two")
    cli(*select, "--model", "gcn,gin", "--out", "two")
    before = (tmp_path / "two" / "config.json").read_bytes()
    shutil.rmtree(tmp_path / "two-selection")
    done = cli(*select, "--model", "gcn,gin", "--aggr", "sum", "--out", "two", exit_code=2)
    assert "two holds another model" in done.stderr
    assert (tmp_path / "two" / "config.json").read_bytes() == before
    assert not (tmp_path / "two-selection").exists()  # nothing was trained first


@pytest.mark.parametrize("there", [[], ["config.json"]])
def test_a_folder_without_a_model_is_a_place_for_one(
    cli: Any, tmp_path: Path, there: list[str]
) -> None:
    (tmp_path / "m").mkdir()
    for name in there:
        (tmp_path / "m" / name).touch()
    cli("train", "MUTAG", *SMALL, "--out", "m")
    assert gnn_vpa.load_model("m").task.model == "gin"


def test_scores_of_a_selection_say_what_was_lost_and_stay_shares(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gnn_vpa.experiments import chosen

    choose = chosen.choose_setting
    folds: list[float] = []
    monkeypatch.setattr(
        chosen, "choose_setting", lambda *asked: choose(*asked)._replace(folds=folds)
    )
    select = ["train", "MUTAG", *SMALL, "--select", "--folds", "2", "--final-runs", "1"]
    folds[:] = [1.0, 0.9, math.nan, 0.95]
    done = cli(*select, "--out", "m")
    assert "1 of 4 folds diverged" in done.stderr
    assert "may flatter it" in done.stderr
    low, high = gnn_vpa.load_model("m").record.interval or (math.nan, math.nan)
    assert 0 < low < 0.95
    assert high == 1
    folds[:] = [0.0, 0.1, 0.05, 0.0]
    done = cli(*select, "--out", "m")
    assert "diverged" not in done.stderr
    low, high = gnn_vpa.load_model("m").record.interval or (math.nan, math.nan)
    assert low == 0
    assert 0.0375 < high < 1


def test_models_of_several_runs_do_not_speak_as_one(cli: Any, tmp_path: Path) -> None:
    run = ["run", "MUTAG", "--aggr", "vpa", "--folds", "3", "--keep-models", "--out", "r"]
    for epochs in ("1", "2"):
        cli(*run, "--epochs", epochs)
    done = cli("predict", "r", "MUTAG", exit_code=2)
    assert "models of several runs under one name" in done.stderr
    assert "epochs (" in done.stderr


def test_a_fold_that_is_lost_is_missed(cli: Any, tmp_path: Path) -> None:
    cli("run", "MUTAG", "--aggr", "vpa", *QUICK, "--folds", "3", "--keep-models", "--out", "r")
    (fold,) = (tmp_path / "r" / "models").glob("*/fold-1")
    shutil.rmtree(fold)
    done = cli("predict", "r", "MUTAG", exit_code=2)
    assert "has no fold-1, the model of a fold that the run has finished" in done.stderr


def _write_half(packed: zipfile.ZipFile) -> None:
    """Write an archive of 40 graphs that are pairs or single nodes with a loop."""
    edges: list[tuple[int, int]] = []
    indicator: list[int] = []
    for graph in range(40):
        first = len(indicator) + 1
        indicator += [graph + 1] * 2
        edges += [(first, first + 1), (first + 1, first)] if graph % 2 else [(first, first)]
    packed.writestr("half/half_A.txt", "".join(f"{a}, {b}\n" for a, b in edges))
    packed.writestr("half/half_graph_indicator.txt", "".join(f"{g}\n" for g in indicator))
    packed.writestr("half/half_graph_labels.txt", "".join(f"{g % 2}\n" for g in range(40)))
