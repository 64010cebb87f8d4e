"""A small data set, and the plain loop."""

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from gnn_vpa.graphs import GraphSet, TargetKind
from gnn_vpa.graphs.targets import KINDS
from gnn_vpa.training import captured, trainer


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    path = Path(__file__).parent / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random_graph(draw: torch.Generator, label: int, num_labels: int) -> Data:
    """A tree with some more edges, denser for one class; its leaves look alike."""
    size = int(torch.randint(1, 14, (1,), generator=draw))
    parent = [int(torch.randint(0, i, (1,), generator=draw)) for i in range(1, size)]
    more = torch.randint(size, (2, label * size // 2), generator=draw)
    edges = torch.cat([torch.tensor([parent, list(range(1, size))], dtype=torch.long), more], 1)
    edges = edges[:, edges[0] != edges[1]]
    edges = torch.cat([edges, edges.flip(0)], 1).unique(dim=1)
    kinds = torch.randint(num_labels, (size,), generator=draw)
    return Data(edge_index=edges, x=torch.eye(num_labels)[kinds], num_nodes=size, y=label)


@pytest.fixture(scope="session")
def toy() -> GraphSet:
    """Ninety graphs of two classes, some of a single node."""
    draw = torch.Generator().manual_seed(0)
    return GraphSet.from_pyg([random_graph(draw, i % 2, 3) for i in range(90)], name="toy")


@pytest.fixture(scope="session")
def uneven() -> GraphSet:
    """Forty graphs: most of one or two nodes, and one of a thousand with a hub."""
    draw = torch.Generator().manual_seed(1)
    tiny = [random_graph(draw, i % 2, 3) for i in range(20)]
    none = torch.empty(2, 0, dtype=torch.long)
    points = [
        Data(edge_index=none, x=torch.eye(3)[[i % 3]], num_nodes=1, y=i % 2) for i in range(19)
    ]
    hub = torch.stack([torch.arange(1, 1000), torch.zeros(999, dtype=torch.long)])
    more = torch.randint(1000, (2, 3000), generator=draw)
    edges = torch.cat([hub, hub.flip(0), more, more.flip(0)], 1).unique(dim=1)
    edges = edges[:, edges[0] != edges[1]]
    kinds = torch.randint(3, (1000,), generator=draw)
    giant = Data(edge_index=edges, x=torch.eye(3)[kinds], num_nodes=1000, y=0)
    return GraphSet.from_pyg([*tiny, *points, giant], name="uneven")


@pytest.fixture(scope="session")
def hollow() -> GraphSet:
    """Sixty graphs, of which a third has no nodes: the first, the last and several in a row."""
    draw = torch.Generator().manual_seed(2)
    none = torch.empty(2, 0, dtype=torch.long)
    graphs = [random_graph(draw, i % 2, 3) for i in range(60)]
    for i in (*range(18), 30, 59):
        graphs[i] = Data(edge_index=none, x=torch.empty(0, 3), num_nodes=0, y=i % 2)
    return GraphSet.from_pyg(graphs, name="hollow")


def targets(kind: TargetKind, count: int, missing: bool) -> Tensor:
    """Targets of so many graphs, a fifth of them missing if asked."""
    draw = torch.Generator().manual_seed(3)
    gone = torch.rand(count, 2, generator=draw) < (0.2 if missing else 0)
    if kind == "classes":
        y = torch.randint(3, (count,), generator=draw)
        return torch.where(gone[:, 0], -1, y)
    if kind == "labels":
        shares = torch.tensor([0.5, 0.2])
        y = (torch.rand(count, 2, generator=draw) < shares).to(torch.int8)
        return torch.where(gone, torch.tensor(-1, dtype=torch.int8), y)
    y = torch.randn(count, 2, generator=draw) * torch.tensor([3.0, 0.01]) + torch.tensor([50, 0.2])
    return torch.where(gone, torch.nan, y)


@pytest.fixture(scope="session")
def toys(toy: GraphSet) -> dict[tuple[TargetKind, bool], GraphSet]:
    """The toy with targets of each kind, all of them there or some missing."""
    return {
        (kind, missing): replace(toy, name=f"{kind}", y=targets(kind, toy.num_graphs, missing))
        for kind in KINDS
        for missing in (False, True)
    }


class Uncaptured:
    """Does again what a CUDA graph would replay."""

    def __init__(self, work: Callable[[], object], pool: object) -> None:
        self.replay = work
        for _ in range(2):  # as a capture warms up
            work()


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``fit`` run planned steps on the CPU."""
    monkeypatch.setattr(captured, "_capture", Uncaptured)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(trainer, "_shares_steps", lambda device: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1 << 34, 1 << 34))
