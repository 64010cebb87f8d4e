import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.graphs import GraphSet


def toy() -> list[Data]:
    """Pairs and paths of three: told apart by their degrees alone."""
    pair, path = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return [Data(edge_index=e, num_nodes=3, y=i) for i, e in enumerate((pair, path))] * 20


@pytest.fixture
def graphs() -> GraphSet:
    return GraphSet.from_pyg(toy(), name="toy")
