from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner
from typer.testing import Result as Output

from gnn_vpa import run
from gnn_vpa.cli._app import app
from gnn_vpa.experiments import Cell, Result, Store
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Outcome, Protocol, Task


def _report(*arguments: str) -> Output:
    return CliRunner().invoke(app, ["report", *arguments])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    run("MUTAG", "sgc", epochs=2, folds=3, device="cpu", out=out)
    return out


def test_every_format(finished: Path) -> None:
    result = _report(str(finished), "--format", "html,md,tex,csv")
    assert result.exit_code == 0, result.output
    written = [line.removeprefix("Wrote ") for line in result.stdout.splitlines()[-4:]]
    assert written == [str(finished / f"report.{end}") for end in ("html", "md", "tex", "csv")]
    assert (finished / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert r"\begin{tabular}" in (finished / "report.tex").read_text()
    assert len((finished / "report.csv").read_text().splitlines()) == 1 + 2 * 3


def test_a_file_elsewhere_says_by_its_ending_what_it_is(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "docs" / "reproduction.md"
    assert _report(str(finished / "results.sqlite"), "--out", str(out)).exit_code == 0
    text = out.read_text()
    assert "| MUTAG | SGC+vpa |" in text
    figures = [line for line in text.splitlines() if line.startswith("![")]
    assert len(figures) == 2  # the answer and the learning curves
    for figure in figures:
        picture = out.parent / figure.split("(")[1].rstrip(")")
        assert picture.read_text().startswith("<svg")


def _record(folder: Path, settings: int) -> None:
    """Record a run of so many learning rates, the later the better by validation."""
    pair = torch.tensor([[0, 1], [1, 0]])
    toy = GraphSet.from_pyg([Data(edge_index=pair, num_nodes=2, y=n % 2) for n in range(40)])
    results = []
    for number in range(settings):
        scores = np.full(1, (number + 1) / (settings + 1), np.float32)
        outcomes = [Outcome.of(fold, 0, 1 - scores, scores, scores / 2) for fold in range(2)]
        for aggr in ("sum", "vpa"):
            protocol = Protocol(epochs=1, learning_rate=(number + 1) / 1000)
            cell = Cell("toy", Task("gin", aggr), protocol, folds=2, content=toy.checksum())
            results.append(Result(cell, outcomes))
    with Store(folder) as store:
        store.register("toy", toy)
        store.record(results, session=store.begin("cpu", {}), seconds=1.0, device="cpu")


def test_of_very_many_settings_the_best_are_shown_and_the_csv_has_all(tmp_path: Path) -> None:
    _record(tmp_path, 300)
    result = _report(str(tmp_path), "--format", "html,md,tex,csv")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) < 400
    said = "280 of 300 settings are left out here."
    assert said in result.stdout
    assert "gnn-vpa report RUN --format csv" in result.stdout
    for ending, size in (("html", 500_000), ("md", 100_000), ("tex", 50_000)):
        text = (tmp_path / f"report.{ending}").read_text()
        assert len(text) < size
        assert said in text.replace("\n", " ")
        assert "learning rate 0.3," in text  # the best by validation
        assert "learning rate 0.281," in text
        assert "learning rate 0.28," not in text
    assert "1200 trainings under 300 settings" in (tmp_path / "report.html").read_text()
    assert len((tmp_path / "report.csv").read_text().splitlines()) == 1 + 300 * 2 * 2


def test_as_many_settings_as_there_is_room_for_are_all_shown(tmp_path: Path) -> None:
    _record(tmp_path, 20)
    result = _report(str(tmp_path))
    assert "left out" not in result.stdout
    assert result.stdout.count("Test accuracy in percent:") == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no/such/run"], "there are no results in no/such/run"),
        ([__file__], f"{__file__} is no run: name the folder"),
        ([".", "--format", "docx"], "--format: 'docx' is unknown: use html, md, tex, csv"),
    ],
)
def test_mistakes(arguments: list[str], message: str) -> None:
    result = _report(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_an_ending_that_cannot_be_written(finished: Path, tmp_path: Path) -> None:
    result = _report(str(finished), "--out", str(tmp_path / "report.pdf"))
    assert result.exit_code == 2
    assert "a report cannot be written as '.pdf'" in result.stderr


def test_the_record_of_a_reproduction(finished: Path, tmp_path: Path) -> None:
    result = _report(str(finished), "--record", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith(f"Wrote {tmp_path / 'docs' / 'reproduction.md'}\n")
    assert len((tmp_path / "results/paper/folds.csv").read_text().splitlines()) == 1 + 2 * 3
    assert (tmp_path / "results/paper/provenance.json").exists()
