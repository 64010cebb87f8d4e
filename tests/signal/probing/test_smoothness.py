import math

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


@pytest.mark.parametrize("mean", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("power", [-40, -30, -24, -19, -10, 0, 10, 19, 30, 35])
def test_it_knows_no_scale(power: int, mean: float, generator: torch.Generator) -> None:
    """Products of such numbers are beyond float32, and of smaller ones not even its quotients."""
    edge_index = torch.randint(60, (2, 500), generator=generator)
    x = (mean + torch.randn(70, 8, generator=generator).double()) * 10.0**power
    x = x.float()
    before = x.clone()
    found = measured(x, edge_index)
    assert found is not None
    assert torch.equal(x, before)
    energy, distance = by_hand(x, edge_index)
    assert float(found.dirichlet) == pytest.approx(energy, rel=1e-6, abs=0)
    assert float(found.distance) == pytest.approx(distance, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("power", [-200, 200, 307])
def test_squares_beyond_float64_leave_the_distance(power: int) -> None:
    pair = torch.tensor([[0, 1], [1, 0]])
    found = measured(
        torch.tensor([[3.0, 4.0], [4.0, 3.0]], dtype=torch.float64) * 10.0**power, pair
    )
    assert found is not None
    assert float(found.distance) == pytest.approx(1 - 24 / 25)
    assert float(found.dirichlet) == (0 if power < 0 else math.inf)  # 1e-400 is 0


def test_nodes_of_very_different_scale_all_have_a_direction() -> None:
    found = measured(torch.tensor([[1e30, 0.0], [0.0, 1e-40]]), torch.tensor([[0, 1], [1, 0]]))
    assert found is not None
    assert float(found.distance) == pytest.approx(1)
    assert float(found.dirichlet) == pytest.approx(1e60)


def test_features_of_no_width_have_no_energy() -> None:
    found = measured(torch.ones(2, 0), torch.tensor([[0, 1], [1, 0]]))
    assert found is not None
    assert float(found.dirichlet) == 0


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
