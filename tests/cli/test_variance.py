import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gnn_vpa.cli import variance
from gnn_vpa.cli._app import app

QUICK = ["--max-neighbours", "20", "--trials", "50"]


def test_a_pipe_gets_one_line_for_each_number_of_neighbours() -> None:
    result = CliRunner().invoke(app, ["variance", *QUICK])
    assert result.exit_code == 0
    header, *rows, summary = result.stdout.splitlines()
    assert header.split("\t") == ["N", "sum", "mean", "max", "vpa"]
    assert [row.split("\t")[0] for row in rows] == ["1", "3", "10", "20"]
    predicted = [cell.split()[1] for cell in rows[-1].split("\t")[1:]]
    assert predicted == ["(20.0)", "(0.0500)", "(0.276)", "(1.00)"]
    assert summary.startswith("Over 20 neighbours")


def test_a_terminal_gets_a_drawn_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, ["variance", "--trials", "50"])
    assert result.exit_code == 0
    assert "───" in result.stdout
    assert re.search(r"\d \(0\.000100\)", result.stdout), "80 columns hold every number"
    assert "\t" not in result.stdout


def test_the_same_seed_prints_the_same_numbers() -> None:
    first, second, other = (
        CliRunner().invoke(app, ["variance", *QUICK, "--seed", seed]).stdout for seed in "112"
    )
    assert first == second
    assert first != other


def test_a_folder_gets_both_pictures(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["variance", *QUICK, "--out", str(tmp_path / "new" / "one")])
    assert result.exit_code == 0
    pictures = sorted(path.name for path in (tmp_path / "new" / "one").iterdir())
    assert pictures == ["variance.png", "variance.svg"]


def test_a_file_gets_that_picture(tmp_path: Path) -> None:
    picture = tmp_path / "curve.pdf"
    result = CliRunner().invoke(app, ["variance", *QUICK, "--out", str(picture)])
    assert result.exit_code == 0
    assert picture.read_bytes().startswith(b"%PDF")


def test_an_unknown_kind_of_picture_is_refused_before_any_work(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["variance", "--out", str(tmp_path / "curve.bmp")])
    assert result.exit_code == 2
    assert "curve.bmp" in result.stderr
    assert ".png, .svg, .pdf" in result.stderr
    assert "Measuring" not in result.stderr


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    out = tmp_path / "file" / "folder"
    result = CliRunner().invoke(app, ["variance", *QUICK, "--out", str(out)])
    assert result.exit_code == 2
    assert str(out) in result.stderr


@pytest.mark.parametrize("option", ["--max-neighbours", "--trials", "--seed"])
def test_a_number_out_of_range_is_wrong_use(option: str) -> None:
    result = CliRunner().invoke(app, ["variance", option, "-1"])
    assert result.exit_code == 2
    assert option in result.stderr


@pytest.mark.parametrize(
    ("value", "text"),
    [(10_014, "10,014"), (99.96, "100"), (0.99999, "1.00"), (0.0000998, "0.0000998")],
)
def test_numbers_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert variance._number(value) == text
