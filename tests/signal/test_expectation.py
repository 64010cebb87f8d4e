import pytest
import torch
from torch import Tensor

from gnn_vpa import Graph
from gnn_vpa.signal import predicted_variance
from gnn_vpa.signal.expectation import aggregated, unmixed, weighted_sum
from gnn_vpa.signal.maximum import second_moment_of_maximum

EDGES = torch.tensor([[0, 1, 2, 3, 0, 2], [3, 3, 3, 0, 1, 1]])


@pytest.mark.parametrize("own", [False, True])
def test_a_weighted_sum_is_the_quadratic_form_of_its_covariance(own: bool) -> None:
    """Features of one column: the covariance of messages j and k is x_j x_k, exactly."""
    x = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    scale = torch.tensor([[0.5], [2.0], [1.0], [0.25]])
    mixing = weighted_sum(Graph(EDGES, 4), scale, own=own)
    expected = (torch.eye(4) if own else torch.zeros(4, 4)).double()
    for source, target in EDGES.T.tolist():
        expected[target, source] += scale[target].item()
    variances, rho = mixing(x.double().square(), x, True)
    assert rho == pytest.approx(1)
    assert torch.allclose(variances, (expected @ x.double()).square())


def test_independent_messages_add_their_variances() -> None:
    v = torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64)
    mixed = weighted_sum(Graph(EDGES, 4), torch.ones(4, 1))(v, torch.ones(4, 1), False)
    assert mixed.rho == 0
    assert mixed.variances.flatten().tolist() == [4, 4, 0, 6]


def test_the_maximum_is_expected_in_double_precision() -> None:
    star = Graph(torch.stack([torch.arange(1, 12), torch.zeros(11, dtype=torch.int64)]), 12)
    v = torch.ones(12, 1, dtype=torch.float64)
    variances, _ = aggregated(star, "max", rectified=False)(v, v, False)
    assert variances[0].item() == pytest.approx(second_moment_of_maximum(11), rel=1e-12)


@pytest.mark.parametrize("aggr", ["sum", "mean", "vpa"])
def test_equal_variances_give_the_lemmas(aggr: str) -> None:
    star = Graph(torch.stack([torch.arange(1, 8), torch.zeros(7, dtype=torch.int64)]), 8)
    mixing = aggregated(star, aggr, rectified=False)
    variances, _ = mixing(torch.full((8, 1), 2.0).double(), torch.ones(8, 1), False)
    assert variances[0].item() == pytest.approx(predicted_variance(aggr, 7, variance=2))


@pytest.mark.parametrize("own", [0, 1])
def test_the_maximum_of_one_neighbour_is_that_neighbour(own: int) -> None:
    ring = Graph(torch.stack([torch.arange(5), (torch.arange(5) + 1) % 5]), 5)
    v = torch.full((5, 1), 3.0).double()
    for rectified in (False, True):
        mixing = aggregated(ring, "max", rectified=rectified, own=bool(own))
        variances = mixing(v, torch.ones(5, 1), False).variances
        assert torch.allclose(variances, v * (1 + own), rtol=1e-4)


def test_what_is_not_mixed_stays() -> None:
    v: Tensor = torch.ones(3, 1)
    assert unmixed(v, torch.ones(3, 2), True).variances is v
