from itertools import pairwise

import pytest
import torch
from torch_geometric.data import Data

from gnn_vpa.auditing._variance import expected_variances
from gnn_vpa.graphs import GraphSet
from gnn_vpa.signal import predicted_variance


def regular(degree: int, x: torch.Tensor) -> GraphSet:
    """A circle in which every node hears from the next `degree` ones."""
    nodes = len(x)
    target = torch.arange(nodes).repeat_interleave(degree)
    source = (target + torch.arange(1, degree + 1).repeat(nodes)) % nodes
    return GraphSet.from_pyg([Data(x=x, edge_index=torch.stack([source, target]), y=0)])


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_independent_features_follow_the_lemmas_in_the_first_layer(scale: float) -> None:
    # One-hot features of their own for all nodes: their messages are uncorrelated.
    found = expected_variances(regular(4, scale * torch.eye(60)), "auto", layers=1)
    for aggr in ("sum", "mean", "vpa"):
        (first,) = found[aggr]
        assert first.rho == pytest.approx(0, abs=1e-9)
        # Weights are drawn: a row of 60 has a sum of squares that varies by some percent.
        assert first.correlated == pytest.approx(predicted_variance(aggr, 4), rel=0.15)


def test_equal_features_keep_the_variance_with_mean_and_multiply_it_with_vpa() -> None:
    found = expected_variances(regular(4, torch.ones(60, 8)), "auto", layers=3)
    ratios = {
        aggr: [after.correlated / before.correlated for before, after in pairwise(layers)]
        for aggr, layers in found.items()
    }
    assert all(layer.rho == pytest.approx(1) for layer in found["vpa"])
    for aggr in ("sum", "mean", "vpa"):
        expected = predicted_variance(aggr, 4, rho=1.0)
        assert ratios[aggr] == pytest.approx([expected] * 2, rel=0.5)


def test_what_is_expected_is_near_what_is_measured() -> None:
    from gnn_vpa.graphs import load

    for layers in expected_variances(load("MUTAG"), "auto", layers=3).values():
        for layer in layers:
            assert 1 / 3 < layer.correlated / layer.second_moment < 3


def test_nothing_to_pass_on_has_no_variance() -> None:
    assert expected_variances(regular(2, torch.zeros(9, 1)), "auto", layers=2) == {}
    assert expected_variances(regular(2, torch.ones(9, 1)), "auto", layers=0) == {}


def test_the_random_numbers_of_others_stay_as_they_are() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    expected_variances(regular(2, torch.ones(9, 1)), "auto", layers=1)
    assert torch.equal(torch.rand(2), expected)
