import pytest
import torch
from torch import Tensor

from gnn_vpa.signal.probing._edges import Edges
from gnn_vpa.signal.probing._smoothness import Smoothness


def measured(x: Tensor, edge_index: Tensor) -> Smoothness | None:
    edges = Edges(edge_index[0], edge_index[1], (len(x), len(x)))
    assert edges.neighbours is not None
    return edges.neighbours.smoothness(x)


def by_hand(x: Tensor, edge_index: Tensor) -> tuple[float, float]:
    """As the definitions say, edge by edge, self-loops left out."""
    x = x.double().flatten(1)
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    energy = (x[target] - x[source]).square().sum().item() / len(x)
    distances = 1 - torch.cosine_similarity(x[target], x[source], dim=1, eps=1e-300)
    means = [distances[target == node].mean() for node in target.unique()]
    return energy, torch.stack(means).mean().item()


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4], ids=["rough", "smooth", "smoother"])
def test_it_equals_the_definitions(
    spread: float, dtype: torch.dtype, generator: torch.Generator
) -> None:
    edge_index = torch.randint(60, (2, 500), generator=generator)
    edge_index[:, :20] = edge_index[0, :20]  # self-loops
    x = 1 + spread * torch.randn(70, 8, generator=generator).to(dtype)
    found = measured(x, edge_index)
    assert found is not None
    energy, distance = by_hand(x, edge_index)
    assert float(found.dirichlet) == pytest.approx(energy, rel=1e-6)
    assert float(found.distance) == pytest.approx(distance, rel=1e-6, abs=1e-6)


def test_equal_features_have_neither_energy_nor_distance() -> None:
    edge_index = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 0]])
    found = measured(torch.full((3, 4), 0.3), edge_index)
    assert found is not None
    assert float(found.dirichlet) == pytest.approx(0, abs=1e-12)
    assert float(found.distance) == pytest.approx(0, abs=1e-6)


def test_opposite_features_are_as_far_as_can_be() -> None:
    pair = torch.tensor([[0, 1], [1, 0]])
    found = measured(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), pair)
    assert found is not None
    assert float(found.dirichlet) == pytest.approx(4)  # two edges of 4, over two nodes
    assert float(found.distance) == pytest.approx(2)


def test_a_row_of_zeros_is_at_right_angles_to_all() -> None:
    found = measured(torch.tensor([[1.0], [0.0]]), torch.tensor([[0, 1], [1, 0]]))
    assert found is not None
    assert float(found.distance) == 1


def test_without_edges_there_is_nothing_to_measure() -> None:
    assert measured(torch.ones(3, 1), torch.empty(2, 0, dtype=torch.int64)) is None
    assert measured(torch.ones(3, 1), torch.tensor([[1], [1]])) is None
