import zipfile
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gnn_vpa.cli._errors import ExplainingGroup
from gnn_vpa.cli.data import app
from gnn_vpa.graphs import download_dir

root = typer.Typer(cls=ExplainingGroup)
root.add_typer(app, name="data")


@pytest.fixture(autouse=True)
def nothing_but_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNN_VPA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GNN_VPA_DATA", raising=False)


def data(*arguments: str | Path) -> tuple[int, str, str]:
    result = CliRunner().invoke(root, ["data", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def write_zip(folder: Path, name: str, edges: str) -> None:
    parts = {"A": edges, "graph_indicator": "1\n1\n", "graph_labels": "1\n"}
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
        for part, text in parts.items():
            archive.writestr(f"{name}/{name}_{part}.txt", text)


def test_list_says_where_each_set_is_or_how_to_get_it(tmp_path: Path) -> None:
    write_zip(tmp_path / "tu", "PTC_FM", "1, 2\n")
    write_zip(tmp_path / "tu", "MINE", "1, 2\n")
    code, out, _ = data("list", "--data-dir", tmp_path / "tu")
    assert code == 0
    assert f"PTC_FM\tPTC\t{tmp_path / 'tu' / 'PTC_FM.zip'}" in out.splitlines()
    assert f"MINE\t-\t{tmp_path / 'tu' / 'MINE.zip'}" in out.splitlines()
    assert "NCI1\tNCI1\tnot here: gnn-vpa data get NCI1" in out.splitlines()


def test_check_agrees_on_the_real_data(tu_dir: Path) -> None:
    code, out, _ = data("check", "mutag", "PTC", "proteins", "NCI1", "--data-dir", tu_dir)
    assert code == 0
    header, measured, published, *_ = out.splitlines()
    assert header == "archive\tgraphs\tclasses\tnodes\tedges\tlabels\tattr."
    assert measured == "MUTAG\t188\t2\t17.931\t19.793\t7\t0"
    assert published == "  published\t188\t2\t17.931\t19.793\t7\t0"
    assert "Measured and published agree" in out


def test_check_fails_where_the_data_differ(tmp_path: Path) -> None:
    write_zip(tmp_path / "tu", "MUTAG", "1, 2\n2, 1\n")
    code, out, err = data("check", "--data-dir", tmp_path / "tu")
    assert code == 1
    assert "published\t188" in out
    assert "agree" not in out
    assert "MUTAG is not as published: see graphs, classes, nodes, edges, node_labels" in err


def test_check_goes_on_after_a_damaged_archive(tmp_path: Path) -> None:
    write_zip(tmp_path / "tu", "MUTAG", "1, x\n")
    write_zip(tmp_path / "tu", "MINE", "1, 2\n2, 1\n")
    code, out, err = data("check", "MUTAG", "MINE", "--data-dir", tmp_path / "tu")
    assert code == 1
    assert "MINE\t1\t1\t2.000\t1.000\t0\t0" in out.splitlines()
    assert "MINE: nothing is published" in out
    assert "MUTAG_A.txt, line 1, column 2: 'x' is not a whole number" in err
    assert "Traceback" not in err


def test_check_of_what_is_not_here_is_wrong_use() -> None:
    code, _, err = data("check", "MUTAGG")
    assert code == 2
    assert "did you mean MUTAG?" in err


def test_get_fetches_into_the_folder_that_list_looks_in(tmp_path: Path) -> None:
    write_zip(tmp_path / "site", "MINE", "1, 2\n")
    code, out, err = data("get", "MINE", "--url", (tmp_path / "site").as_uri())
    assert (code, out) == (0, f"MINE\t{download_dir() / 'MINE.zip'}\n")
    assert "Getting MINE" in err
    assert str(download_dir() / "MINE.zip") in data("list")[1]


def test_get_refuses_what_only_has_the_name_of_a_set_of_the_paper(tmp_path: Path) -> None:
    write_zip(tmp_path / "site", "PTC_FM", "1, 2\n")
    code, _, err = data("get", "ptc", "--url", (tmp_path / "site").as_uri())
    assert code == 1
    assert "has other graphs than the data set of the paper" in err
    assert list(download_dir().iterdir()) == []


def test_mutag_comes_with_the_package() -> None:
    code, out, _ = data("check")
    assert code == 0
    assert "MUTAG\t188\t2\t17.931\t19.793\t7\t0" in out.splitlines()


def test_get_of_an_impossible_name_is_wrong_use() -> None:
    code, _, err = data("get", "../MUTAG")
    assert code == 2
    assert "no data set is called '../MUTAG'" in err


def test_every_command_has_help_with_examples() -> None:
    for command in ("list", "check", "get"):
        code, out, _ = data(command, "--help")
        assert code == 0
        assert f"gnn-vpa data {command}" in out
