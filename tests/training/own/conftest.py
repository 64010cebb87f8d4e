"""Models of a user's, and data with features on edges."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.graphs import GraphSet

HERE = Path(__file__).parent


@pytest.fixture(scope="session", autouse=True)
def mynets() -> Iterator[ModuleType]:
    """The module ``mynets`` beside this file, where Python finds it, in other processes too."""
    sys.path.insert(0, str(HERE))
    yield importlib.import_module("mynets")
    sys.path.remove(str(HERE))


@pytest.fixture
def write_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], None]]:
    """Write modules into this folder; they are forgotten afterwards, and when written again."""
    monkeypatch.chdir(tmp_path)
    written: set[str] = set()

    def write(name: str, text: str) -> None:
        path = tmp_path / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for cached in tmp_path.rglob("__pycache__/*.pyc"):
            cached.unlink()  # of the same second
        written.add(name.partition(".")[0])
        forget()

    def forget() -> None:
        for name in list(sys.modules):
            if name.partition(".")[0] in written:
                del sys.modules[name]

    monkeypatch.syspath_prepend(tmp_path)
    yield write
    forget()


def graph_with_bonds(draw: torch.Generator, label: int) -> Data:
    """A tree with chords, denser for one class, without self-loops; edges have two features."""
    size = int(torch.randint(2, 14, (1,), generator=draw))
    parent = [int(torch.randint(0, i, (1,), generator=draw)) for i in range(1, size)]
    more = torch.randint(size, (2, label * size // 2), generator=draw)
    edges = torch.cat([torch.tensor([parent, list(range(1, size))]), more], 1)
    edges = edges[:, edges[0] != edges[1]]
    edges = torch.cat([edges, edges.flip(0)], 1).unique(dim=1)
    kinds = torch.randint(3, (size,), generator=draw)
    bonds = torch.randn(edges.shape[1], 2, generator=draw)
    return Data(edge_index=edges, x=torch.eye(3)[kinds], edge_attr=bonds, num_nodes=size, y=label)


@pytest.fixture(scope="session")
def bonds() -> GraphSet:
    """Ninety graphs of two classes, with features on nodes and edges."""
    draw = torch.Generator().manual_seed(3)
    return GraphSet.from_pyg([graph_with_bonds(draw, i % 2) for i in range(90)], name="bonds")
