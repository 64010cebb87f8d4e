"""Small data sets of which everything is known."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from gnn_vpa.experiments import forest

Make = Callable[..., list[Data]]

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
TRIANGLE = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])


@pytest.fixture(autouse=True)
def small_forests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let forests have five trees, which suffice for toys."""
    monkeypatch.setattr(forest, "_TREES", 5)


@pytest.fixture(scope="session")
def toys() -> Make:
    """Paths and triangles of 3 nodes in turn, of class 0 and 1: `toys(pairs)`."""

    def make(pairs: int = 20, **fields: Tensor | int | None) -> list[Data]:
        shapes = [(PATH, 0), (TRIANGLE, 1)] * pairs
        graphs = [Data(edge_index=edges, num_nodes=3, y=y) for edges, y in shapes]
        for graph in graphs:
            for key, value in fields.items():
                graph[key] = value
        return graphs

    return make
