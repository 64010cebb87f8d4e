import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.graphs import AbsentError, load


@pytest.fixture
def data_dir(write_tu: Callable[..., Path]) -> Path:
    write_tu("IMDB-BINARY")
    return write_tu("MINE").parent


def test_by_the_name_of_the_paper_or_of_the_archive(data_dir: Path) -> None:
    assert load("imdb-b", data_dir).name == "IMDB-BINARY"
    assert load("IMDB-BINARY", data_dir).name == "IMDB-BINARY"
    assert load("mine", data_dir).name == "MINE"


def test_by_path(data_dir: Path, zip_folder: Callable[..., Path]) -> None:
    assert load(data_dir / "MINE").name == "MINE"
    assert load(str(zip_folder(data_dir / "MINE"))).name == "MINE"


def test_a_folder_right_here(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data_dir)
    assert load("MINE").name == "MINE"


def test_a_folder_here_that_only_has_the_name(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere" / "MINE").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load("MINE", data_dir).num_graphs == 2


ALONE = """
import socket, sys
def refuse(*_):
    raise AssertionError("the network was asked")
socket.socket.connect = refuse
sys.modules["grakel"] = None  # as if it were not installed
import gnn_vpa.graphs
graphs = gnn_vpa.graphs.load("mutag")
assert graphs.checksum() == gnn_vpa.graphs._contents.CONTENTS["MUTAG"], graphs
"""


def test_mutag_with_an_empty_home_and_no_network(tmp_path: Path) -> None:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    home = tmp_path / "home"
    home.mkdir()
    command = [sys.executable, "-W", "ignore", "-c", ALONE]
    subprocess.run(command, check=True, cwd=home, env=kept | {"HOME": str(home)})


def test_a_name_that_nobody_knows(data_dir: Path) -> None:
    with pytest.raises(UsageError, match=r"'MINEE': did you mean MINE"):
        load("MINEE", data_dir)


def test_a_known_set_that_is_not_here(data_dir: Path) -> None:
    with pytest.raises(UsageError, match=r"COLLAB is not on .* IMDB-BINARY.* data get COLLAB"):
        load("collab", data_dir)


def test_a_path_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"nowhere/X does not exist"):
        load("nowhere/X")


@pytest.mark.parametrize("name", ["mine.pt", "./mine.PT", "absent.csv", "graphs.tar.gz"])
def test_a_file_of_another_kind_is_told_by_its_kind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What torch saves is a zip, too, and was taken for an archive that lacks a file."""
    monkeypatch.chdir(tmp_path)
    torch.save([1], tmp_path / "mine.pt")
    with pytest.raises(UsageError) as told:
        load(name)
    message = str(told.value)
    assert message.startswith(f"{name}: a {Path(name).suffix} file is not read as a data set.")
    assert "TU archive (.zip) or its folder, or module:function" in message


def test_an_archive_may_be_called_as_one_likes(
    data_dir: Path, zip_folder: Callable[..., Path]
) -> None:
    other = zip_folder(data_dir / "MINE").rename(data_dir / "mine.archive")
    assert load(other).num_graphs == 2
    (data_dir / "MINE").rename(data_dir / "mine.txt")  # a folder
    assert load(data_dir / "mine.txt").num_graphs == 2
    assert load("mine.txt", data_dir).num_graphs == 2


MODULE = """
import torch
from torch_geometric.data import Data
def graphs():
    return [Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, y=y) for y in (0, 1)]
def generator():
    yield from graphs()
def fails():
    raise RuntimeError("no luck")
def wrong():
    return [1, 2]
number = 3
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_graphs.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_graphs", raising=False)
    return "own_graphs"


@pytest.mark.parametrize("function", ["graphs", "generator"])
def test_by_function(own_module: str, function: str) -> None:
    before = list(sys.path)
    graphs = load(f"{own_module}:{function}")
    assert (graphs.num_graphs, graphs.name) == (2, f"{own_module}:{function}")
    assert sys.path == before


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_such_module:graphs", "must name a module and its function: No module named"),
        ("own_graphs:absent", "must name a module and its function: .*'absent'"),
        ("own_graphs:number", "failed with TypeError"),
        ("own_graphs:fails", "failed with RuntimeError: no luck"),
        ("own_graphs:wrong", "graph 0: expected a torch_geometric.data.Data, got int"),
        (":graphs", "must name a module"),
    ],
)
def test_a_function_that_cannot_be_used(own_module: str, reference: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load(reference)


def test_graphs_without_edges(
    write_tu: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="gnn_vpa"):
        assert load(write_tu("SOME", A="1, 2\n2, 1\n")).num_graphs == 2
    assert [record.getMessage() for record in caplog.records] == ["SOME: 1 graph(s) have no edge"]
    with pytest.raises(UsageError, match=r"BARE: none of its graphs has an edge"):
        load(write_tu("BARE", A=""))


def test_odd_things_are_said_each_time(
    write_tu: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_tu("ODD", graph_indicator="1\n1\n1\n3\n3\n", graph_labels="7\n7\n7\n")
    for _ in range(2):  # from the archive, then from its copy
        caplog.clear()
        assert load(folder).num_classes == 1
        assert [record.getMessage() for record in caplog.records] == [
            "ODD: all 3 graphs are of one class, so that any model is right about all of them",
            "ODD: 1 graph(s) have no node",
            "ODD: 1 graph(s) have no edge",
        ]


def test_a_function_with_a_number_that_is_not_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_numbers.py").write_text(
        MODULE + "made = graphs()\n"
        "for graph, last in zip(made, (2.0, float('nan'))):\n"
        "    graph.x = torch.tensor([[0.0, 1.0], [1.0, last]])\n"
        "def numbers():\n    return made\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"node_attributes of graph 1, node 1, column 1 .* is nan"):
        load("own_numbers:numbers")


def test_a_damaged_archive_is_no_usage_error(write_tu: Callable[..., Path]) -> None:
    with pytest.raises(GnnVpaError, match=r"line 1") as caught:
        load(write_tu(A="x, y\n"))
    assert not isinstance(caught.value, UsageError)


def test_graphs_in_memory_are_taken_as_they_are(data_dir: Path) -> None:
    graphs = load("mine", data_dir)
    again, listed = load(graphs), load(graphs.to_pyg())
    assert again is not graphs
    assert again.checksum() == listed.checksum() == graphs.checksum()
    assert (again.name, listed.name) == ("MINE", "custom")


def test_what_a_data_set_has_worked_out_is_of_its_present_values(data_dir: Path) -> None:
    graphs = load("mine", data_dir)
    assert graphs.num_classes == 2
    graphs.y.zero_()
    assert load(graphs).num_classes == 1


def test_what_is_no_data_set() -> None:
    with pytest.raises(UsageError, match=r"a data set is a name, .* not int"):
        load(5)  # type: ignore[arg-type]


def test_a_known_set_that_is_not_here_is_named(data_dir: Path) -> None:
    with pytest.raises(AbsentError) as caught:
        load("collab", data_dir)
    assert caught.value.archive == "COLLAB"
