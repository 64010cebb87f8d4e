from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gnn_vpa import run
from gnn_vpa.cli._app import app


def _report(*arguments: str) -> Result:
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
