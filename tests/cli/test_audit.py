import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gnn_vpa.cli._app import app


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_sentences_come_before_tables() -> None:
    result = _run("MUTAG", "--no-baselines")
    assert result.exit_code == 0, result.output
    assert "Auditing MUTAG" in result.stderr
    first, second, *_ = result.stdout.splitlines()
    assert first == "MUTAG: 188 graphs"
    assert second.startswith("* 11.2 % of the test graphs have a twin in training or validation")
    assert "Without any graph network" not in result.stdout


def test_json_alone_on_standard_output() -> None:
    result = _run("MUTAG", "--no-baselines", "--json", "-", "--rounds", "2", "--folds", "5")
    (found,) = json.loads(result.stdout)
    assert (found["name"], found["folds"], len(found["rounds"])) == ("MUTAG", 5, 3)


def test_files_are_written(tmp_path: Path) -> None:
    page, numbers = tmp_path / "new" / "audit.html", tmp_path / "new" / "audit.json"
    result = _run("MUTAG", "--no-baselines", "--html", page, "--json", numbers)
    assert result.stdout.endswith(f"Wrote {page}\nWrote {numbers}\n")
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert json.loads(numbers.read_text("utf-8"))[0]["graphs"] == 188


def test_several_data_sets_end_in_one_table(tu_dir: Path) -> None:
    result = _run("MUTAG", "PTC", "--no-baselines", "--data-dir", tu_dir)
    table = result.stdout.splitlines()
    header = next(n for n, line in enumerate(table) if line.startswith("data set"))
    assert [line.split()[:3] for line in table[header + 1 : header + 3]] == [
        ["MUTAG", "188", "175"],
        ["PTC_FM", "349", "331"],
    ]


def test_what_was_found_before_an_error_is_written(tmp_path: Path) -> None:
    numbers = tmp_path / "audit.json"
    result = _run("MUTAG", "MUTAGG", "--no-baselines", "--json", numbers)
    assert result.exit_code == 2
    assert "did you mean MUTAG?" in result.stderr
    assert [one["name"] for one in json.loads(numbers.read_text("utf-8"))] == ["MUTAG"]


def test_features_may_be_chosen() -> None:
    result = _run("MUTAG", "--no-baselines", "--features", "ones", "--json", "-")
    (found,) = json.loads(result.stdout)
    assert found["columns"]["width"] == 1
    assert found["rounds"][5]["distinct"] < 175


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MUTAGG"], "did you mean MUTAG?"),
        (["mine.pt"], "mine.pt: a .pt file is not read as a data set. Give a name"),
        (["MUTAG", "--features", "colour"], "--features"),
        (["MUTAG", "--folds", "1"], "--folds"),
        ([], "DATA"),
        (["MUTAG", "--html", "/dev/null/audit.html"], "/dev/null is a file"),
    ],
)
def test_wrong_use_ends_with_a_message(arguments: list[str], message: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_the_task_says_what_minus_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import torch\nfrom torch_geometric.data import Data\n"
    code += "def graphs():\n    e = torch.tensor([[0, 1], [1, 0]])\n"
    code += "    return [Data(edge_index=e, num_nodes=2, y=n % 3 - 1) for n in range(6)]\n"
    (tmp_path / "some_missing.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    refused = _run("some_missing:graphs")
    assert refused.exit_code == 2
    assert "--task classes or --task regression" in refused.stderr
    result = _run("some_missing:graphs", "--task", "classes", "--json", "-")
    assert json.loads(result.stdout)[0]["classes"] == [2, 2, 2]


def test_folds_that_a_class_is_too_small_for_are_told_and_the_rest_too() -> None:
    result = _run("MUTAG", "--folds", "64")
    assert result.exit_code == 0
    assert "class -1 has 63 member(s), too few for 64 folds" in " ".join(result.stdout.split())
    assert "What networks can know" in result.stdout
