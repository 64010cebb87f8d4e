import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.graphs import GraphSet, read_cached, read_tu
from gnn_vpa.paper import archive_content, published_statistics

SMALL = ("MUTAG", "PTC_FM", "PTC_MR", "PROTEINS", "NCI1", "IMDB-BINARY", "IMDB-MULTI")
LARGE = ("COLLAB", "REDDIT-BINARY", "REDDIT-MULTI-5K")


def read_with_pyg(folder: Path, root: Path) -> TUDataset:
    """Read an unpacked archive with PyG, which wants it in <root>/<name>/raw."""
    raw = root / folder.name / "raw"
    raw.mkdir(parents=True)
    for path in folder.glob("*.txt"):
        (raw / path.name).symlink_to(path.absolute())
    return TUDataset(str(root), folder.name, use_node_attr=True, use_edge_attr=True)


def assert_same(ours: GraphSet, theirs: TUDataset) -> None:
    assert ours.num_graphs == len(theirs)
    for index in range(ours.num_graphs):
        one, other = ours.graph(index), theirs[index]
        assert one.num_nodes == other.num_nodes
        assert set(one.keys()) == set(other.keys())
        for key in ("edge_index", "x", "edge_attr", "y"):
            assert (one[key] is None) == (other[key] is None) if key in one else True
            if key in one:
                assert torch.equal(one[key], other[key]), (index, key)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyG's own way of loading what it saved
@pytest.mark.parametrize("name", SMALL)
def test_the_same_graphs_as_pyg(name: str, tu_dir: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tu_dir / f"{name}.zip") as archive:
        archive.extractall(tmp_path)
    ours = read_tu(tu_dir / f"{name}.zip")
    assert_same(ours, read_with_pyg(tmp_path / name, tmp_path / "pyg"))
    assert read_tu(tmp_path / name).checksum() == ours.checksum()


def first_graphs(archive: Path, name: str, count: int, folder: Path) -> None:
    """Write the first graphs of an archive as an archive of their own."""
    folder.mkdir()
    with zipfile.ZipFile(archive) as source:

        def lines(part: str) -> list[str]:
            return source.read(f"{name}/{name}_{part}.txt").decode().splitlines()

        indicator = [line for line in lines("graph_indicator") if int(line) <= count]
        edges = []
        with source.open(f"{name}/{name}_A.txt") as stream:
            for line in stream:
                first, second = line.decode().split(",")
                if int(first) > len(indicator) and int(second) > len(indicator):
                    break  # graphs stand one after another
                edges.append(line.decode().rstrip())
        parts = {
            "A": edges,
            "graph_indicator": indicator,
            "graph_labels": lines("graph_labels")[:count],
        }
    for part, text in parts.items():
        (folder / f"{name}_{part}.txt").write_text("\n".join(text) + "\n")


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", LARGE)
def test_the_first_graphs_of_the_large_sets_as_in_pyg(
    name: str, tu_dir: Path, tmp_path: Path
) -> None:
    first_graphs(tu_dir / f"{name}.zip", name, 40, tmp_path / name)
    theirs = read_with_pyg(tmp_path / name, tmp_path / "pyg")
    assert_same(read_tu(tmp_path / name), theirs)


@pytest.mark.parametrize("name", [*SMALL, "REDDIT-BINARY"])
def test_statistics_as_published(name: str, tu_dir: Path) -> None:
    published = published_statistics(name)
    assert published is not None
    graphs = read_tu(tu_dir / f"{name}.zip")
    assert graphs.statistics().differences(published) == []
    assert graphs.checksum() == archive_content(name)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_odd_things_as_in_pyg(write_tu: Callable[..., Path], tmp_path: Path) -> None:
    # Directed, unsorted, a self-loop, a duplicate (its labels are added), labels with a gap and
    # from -3, two columns of labels, attributes for nodes and edges, a last node without edges.
    folder = write_tu(
        A="3, 1\n1, 2\n2, 2\n1, 2\n5, 4\n4, 5\n",
        graph_indicator="1\n1\n1\n2\n2\n2\n",
        graph_labels="7\n-2\n",
        node_labels="0, -3\n2, -1\n0, -3\n5, -1\n0, -1\n2, -3\n",
        node_attributes="0.5, 1\n1.25, 2\n-3e-1, 3\n0, 4\n1, 5\n2, 6\n",
        edge_labels="4\n6\n4\n4\n6\n6\n",
        edge_attributes="1.5\n2.5\n3.5\n4.5\n5.5\n6.5\n",
    )
    ours = read_tu(folder)
    assert_same(ours, read_with_pyg(folder, tmp_path / "pyg"))
    assert ours.num_edges == 4
    assert ours.statistics().node_labels == 6 + 3


def test_edges_point_from_the_first_to_the_second_column(write_tu: Callable[..., Path]) -> None:
    graphs = read_tu(write_tu(A="1, 2\n3, 2\n4, 5\n"))
    assert graphs.degree().tolist() == [0, 2, 0, 0, 1]
    assert graphs.col.tolist() == [0, 2, 3]


def test_windows_line_endings_change_nothing(write_tu: Callable[..., Path]) -> None:
    plain = read_tu(write_tu("TINY")).checksum()
    edges = b"1, 2\r\n2, 1\r\n2, 3\r\n3, 2\r\n4, 5\r\n5, 4\r\n\r\n"
    assert read_tu(write_tu("WINDOWS", A=edges)).checksum() == plain


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA]
)
def test_zips_of_all_kinds(
    compression: int, write_tu: Callable[..., Path], zip_folder: Callable[..., Path]
) -> None:
    folder = write_tu()
    zipped = read_tu(zip_folder(folder, compression))
    assert zipped.name == "TINY"
    assert zipped.checksum() == read_tu(folder).checksum()


def test_a_zip_made_on_a_mac(
    write_tu: Callable[..., Path], zip_folder: Callable[..., Path]
) -> None:
    folder = write_tu()
    (folder / "._TINY_A.txt").write_bytes(b"\x00\x05\x16\x07")
    assert read_tu(zip_folder(folder)).name == "TINY"


def test_edge_labels_without_edges(write_tu: Callable[..., Path]) -> None:
    assert read_tu(write_tu(A="", edge_labels="")).num_edges == 0


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"A": "1, 2\n2, 6\n"}, "TINY_A.txt, line 2: node 6 does not exist: .* 1 to 5"),
        ({"A": "0, 2\n2, 1\n"}, "TINY_A.txt, line 1: node 0 does not exist"),
        ({"A": "1, 2\n3, 4\n"}, "TINY_A.txt, line 2: an edge between .* graph 1 and graph 2"),
        ({"A": "1, 2\n3; 4\n"}, "TINY_A.txt, line 2: 2 number"),
        ({"A": "1, 2\n3, four\n"}, "TINY_A.txt, line 2, column 2: 'four' is not a whole number"),
        ({"graph_indicator": "1\n2\n1\n2\n2\n"}, "graph_indicator.txt, line 3: graph 1 where"),
        ({"graph_indicator": "1\n1\n1\n3\n3\n"}, "ends with graph 3.*has 2"),
        ({"graph_indicator": "0\n1\n1\n2\n2\n"}, "graph_indicator.txt, line 1: graph 0 where"),
        ({"graph_indicator": "1\n1\n1\n1\n1\n"}, "ends with graph 1.*has 2"),
        ({"graph_indicator": ""}, "TINY_graph_indicator.txt is empty"),
        ({"graph_labels": "1\n-1\n1\n"}, "ends with graph 2.*has 3"),
        ({"graph_labels": None, "graph_attributes": "1\n"}, "ends with graph 2.*attributes.*has 1"),
        (
            {"graph_labels": None, "graph_attributes": "100000000.5\n100000001\n"},
            "TINY_graph_attributes.txt: numbers around 1e.08 .* are rounded by",
        ),
        ({"node_labels": "1\n2\n3\n4\n"}, "TINY_node_labels.txt has 4 lines, 5 were expected"),
        (
            {"node_attributes": "1\n2\n?\n4\n5\n"},
            "node_attributes.txt, line 3: '.' is not a number",
        ),
        ({"edge_labels": "1\n2\n"}, "TINY_edge_labels.txt has 2 lines, 6 were expected"),
        (
            {"edge_labels": "1\n2\n1\n1000000\n2\n1\n"},
            "edge_labels.txt has labels from 1 to 1000000, .* 1,000,000 one-hot columns",
        ),
        (
            {"node_labels": f"{-(2**63)}\n1\n1\n1\n{2**63 - 1}\n"},
            "node_labels.txt has labels from -9223372036854775808 to 9223372036854775807",
        ),
        ({"node_attributes": "1\n2\nnan\n4\n5\n"}, "line 3: 'nan' is not a finite number"),
        (
            {"node_attributes": "1\n2\n3\n4\n1e39\n"},
            "node_attributes of graph 1, node 1, column 0 .* is inf",
        ),
        (
            {"edge_attributes": "1\n2\n3\n4\n5\n-1e39\n"},
            "edge_attributes of graph 1, node 0, its edge from node 1, column 0 .* is -inf",
        ),
        ({"node_lables": "1\n2\n1\n1\n2\n"}, "TINY_node_lables.txt would be left out: call it"),
        ({"Node_Labels": "1\n2\n1\n1\n2\n"}, "TINY_Node_Labels.txt would be left out: call it"),
    ],
)
def test_a_damaged_archive_is_named_with_its_line(
    parts: dict[str, str | None], message: str, write_tu: Callable[..., Path]
) -> None:
    with pytest.raises(GnnVpaError, match=message):
        read_tu(write_tu(**parts))


def test_a_truncated_zip(write_tu: Callable[..., Path], zip_folder: Callable[..., Path]) -> None:
    archive = zip_folder(write_tu())
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(GnnVpaError, match=r"TINY\.zip is not a whole zip archive"):
        read_tu(archive)


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA]
)
def test_a_zip_damaged_inside(
    compression: int, write_tu: Callable[..., Path], zip_folder: Callable[..., Path]
) -> None:
    archive = zip_folder(write_tu(), compression)
    content = bytearray(archive.read_bytes())
    start = content.index(b"TINY_A.txt") + len("TINY_A.txt")
    content[start + 10] ^= 0x10
    archive.write_bytes(content)
    with pytest.raises(GnnVpaError, match=r"TINY_A\.txt"):
        read_tu(archive)


@pytest.mark.parametrize(
    "name", ["node_labels.txt", "TINE_node_labels.txt", "sub/TINY_node_labels.txt"]
)
def test_a_member_that_would_be_left_out(
    name: str, write_tu: Callable[..., Path], zip_folder: Callable[..., Path]
) -> None:
    archive = zip_folder(write_tu())
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(f"TINY/{name}", "1\n2\n1\n1\n2\n")
    if name == "node_labels.txt":
        assert read_tu(archive).node_labels is None  # nobody would take it for one of TINY's
        return
    with pytest.raises(GnnVpaError, match=r"would be left out: call it TINY/TINY_node_labels.txt"):
        read_tu(archive)


def test_a_file_that_the_layout_does_not_know_is_named(
    write_tu: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    read_tu(write_tu(coordinates="1, 2\n", label_readme="text"))
    (record,) = caplog.records
    assert "TINY_coordinates.txt is not read" in record.message


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_graph_without_nodes_as_in_pyg(write_tu: Callable[..., Path], tmp_path: Path) -> None:
    folder = write_tu(
        graph_indicator="2\n2\n2\n4\n4\n",
        graph_labels="1\n0\n1\n0\n",
        node_labels="1\n2\n1\n1\n2\n",
        edge_labels="1\n2\n1\n1\n2\n1\n",
    )
    ours = read_tu(folder)
    assert ours.node_ptr.diff().tolist() == [0, 3, 0, 2]
    assert_same(ours, read_with_pyg(folder, tmp_path / "pyg"))


def test_labels_that_differ_beyond_64_bits_are_not_taken_for_one(
    write_tu: Callable[..., Path],
) -> None:
    with pytest.raises(GnnVpaError, match=r"graph_labels.txt, line 1: .* 64 bits"):
        read_tu(write_tu(graph_labels=f"{2**63}\n{2**64}\n"))


def test_many_edge_labels_are_one_hot(write_tu: Callable[..., Path]) -> None:
    attributes = read_tu(write_tu(edge_labels="0\n60000\n1\n1\n2\n1\n")).edge_attributes
    assert attributes is not None
    assert attributes.shape == (6, 60001)
    assert attributes.argmax(1).tolist() == [60000, 0, 1, 1, 1, 2]
    assert attributes.sum(1).tolist() == [1.0] * 6


def test_a_pipe_or_a_device_is_refused_at_once(
    write_tu: Callable[..., Path], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe.zip")
    for path in (tmp_path / "pipe.zip", Path("/dev/zero")):
        for read in (read_tu, read_cached):
            with pytest.raises(UsageError, match=r"is neither a file nor a folder"):
                read(path)
    folder = write_tu()
    (folder / "TINY_node_labels.txt").symlink_to("/dev/zero")
    for read in (read_tu, read_cached):
        with pytest.raises(UsageError, match=r"TINY_node_labels.txt is no regular file"):
            read(folder)


def test_more_text_than_memory_is_refused(write_tu: Callable[..., Path]) -> None:
    folder = write_tu()
    os.truncate(folder / "TINY_A.txt", 5 << 30)  # a file of nothing that takes no room
    with pytest.raises(GnnVpaError, match=r"holds 5,368,\d+,\d+ bytes of text"):
        read_tu(folder)


def test_what_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent does not exist"):
        read_tu(tmp_path / "absent")
    with pytest.raises(UsageError, match=r"must hold one file <NAME>_A.txt, but has none"):
        read_tu(tmp_path)
    for name in ("ONE", "TWO"):
        (tmp_path / f"{name}_A.txt").touch()
    with pytest.raises(UsageError, match=r"2 of them: ONE_A.txt, TWO_A.txt"):
        read_tu(tmp_path)


def test_the_folder_that_pyg_leaves_is_read_too(
    write_tu: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "root" / "TINY").mkdir(parents=True)
    (tmp_path / "root" / "TINY" / "README.txt").touch()
    write_tu().rename(tmp_path / "root" / "TINY" / "raw")
    assert isinstance(read_tu(tmp_path / "root" / "TINY").graph(0), Data)
