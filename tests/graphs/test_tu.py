import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset

from gnn_vpa.errors import GnnVpaError, UsageError
from gnn_vpa.graphs import GraphSet, read_tu
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
        ({"A": "1, 2\n3, four\n"}, "TINY_A.txt, line 2: 'four' is not a whole number"),
        ({"graph_indicator": "1\n2\n1\n2\n2\n"}, "graph_indicator.txt, line 3: graph 1 where"),
        ({"graph_indicator": "1\n1\n1\n3\n3\n"}, "graph_indicator.txt, line 4: graph 3 where"),
        ({"graph_indicator": "2\n2\n2\n2\n2\n"}, "graph_indicator.txt, line 1: graph 2 where"),
        ({"graph_indicator": "0\n1\n1\n2\n2\n"}, "graph_indicator.txt, line 1: graph 0 where"),
        ({"graph_indicator": "1\n1\n1\n1\n1\n"}, "names 1 graph.*has 2"),
        ({"graph_indicator": ""}, "names 0 graph.*has 2"),
        ({"graph_labels": "1\n-1\n1\n"}, "names 2 graph.*has 3"),
        ({"graph_labels": None}, "TINY_graph_labels.txt is missing"),
        ({"node_labels": "1\n2\n3\n4\n"}, "TINY_node_labels.txt has 4 lines, 5 were expected"),
        (
            {"node_attributes": "1\n2\n?\n4\n5\n"},
            "node_attributes.txt, line 3: '.' is not a number",
        ),
        ({"edge_labels": "1\n2\n"}, "TINY_edge_labels.txt has 2 lines, 6 were expected"),
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
