import csv
import json
import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from gnn_vpa.cli import expressivity
from gnn_vpa.cli._app import app

QUICK = ["--depth", "2", "--seeds", "2", "--graphs", "20", "--width", "8"]


def test_a_pipe_gets_one_line_for_each_depth_and_precision() -> None:
    result = CliRunner().invoke(app, ["expressivity", "MUTAG", *QUICK])
    assert result.exit_code == 0
    header, *rows = (line.split("\t") for line in result.stdout.splitlines())
    assert header == ["data set", "layers", "precision", "1-WL", "sum", "mean", "max", "vpa"]
    places = [(row[1], row[2]) for row in rows if len(row) == len(header)]
    precisions = ["float64", "float32", "bfloat16"]
    assert places == [(depth, name) for depth in "12" for name in precisions]
    assert "Comparing 20 graphs of MUTAG" in result.stderr


def test_several_data_sets_show_the_deepest() -> None:
    result = CliRunner().invoke(
        app, ["expressivity", "Atlas", "MUTAG", "--precision", "float32", "--aggr", "mean", *QUICK]
    )
    assert result.exit_code == 0
    rows = [line.split("\t") for line in result.stdout.splitlines()[1:]]
    assert [row[:3] for row in rows] == [["atlas", "2", "float32"], ["MUTAG", "2", "float32"]]
    assert "(2 of 2)" in result.stderr


def test_by_default_all_that_is_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "NCI1.zip").touch()
    (tmp_path / "OTHER.zip").touch()
    names = expressivity._names(None, tmp_path)
    assert names[0] == "atlas"
    assert "NCI1" in names
    assert "OTHER" not in names


def test_a_terminal_gets_a_drawn_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, ["expressivity", "MUTAG", *QUICK])
    assert result.exit_code == 0
    assert "───" in result.stdout
    assert re.search(r"bfloat16 .*\d\.\d{3}", result.stdout), "80 columns hold every number"
    assert "\t" not in result.stdout


def test_a_folder_gets_the_table_both_pictures_and_how_they_were_made(tmp_path: Path) -> None:
    out = tmp_path / "new" / "one"
    arguments = ["--aggr", "vpa", "--precision", "float32", "--out", str(out), *QUICK]
    result = CliRunner().invoke(app, ["expressivity", "MUTAG", *arguments])
    assert result.exit_code == 0
    written = [f"expressivity.{ending}" for ending in ("csv", "png", "svg")]
    assert sorted(path.name for path in out.iterdir()) == [*written, "provenance.json"]
    made = json.loads((out / "provenance.json").read_text())
    assert made["options"]["depths"] == [1, 2]
    assert made["torch"] == torch.__version__
    with (out / "expressivity.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["depth"], row["seed"]) for row in rows] == [
        (depth, seed) for depth in "12" for seed in ("0", "1", "any")
    ]
    for row in rows:
        assert float(row["share"]) == pytest.approx(int(row["told_apart"]) / int(row["pairs"]))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["atlas", "MUTAGG"], "MUTAGG"),
        (["atlas", "--aggr", "median"], "median"),
        (["atlas", "--precision", "float16"], "float16"),
        (["atlas", "--aggr", ""], "aggrs"),
        (["atlas", "--depth", "0"], "--depth"),
        (["MUTAG", "--data-dir", "nowhere"], "nowhere"),
    ],
)
def test_wrong_use_is_named_without_a_traceback(arguments: list[str], named: str) -> None:
    result = CliRunner().invoke(app, ["expressivity", *arguments])
    assert result.exit_code == 2
    assert named in result.stderr
    assert result.stdout == ""


def test_a_file_in_the_place_of_the_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    result = CliRunner().invoke(app, ["expressivity", "atlas", "--out", str(tmp_path / "file")])
    assert result.exit_code == 2
    assert str(tmp_path / "file") in result.stderr
    assert "Comparing" not in result.stderr


@pytest.mark.parametrize(
    ("share", "text"), [(1.0, "100"), (0.9999999, "99.999"), (0.25, "25.000"), (0.0, "0.000")]
)
def test_only_all_reads_100(share: float, text: str) -> None:
    assert expressivity._percent(share) == text
