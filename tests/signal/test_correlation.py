import math

import pytest
import torch

from gnn_vpa import UsageError
from gnn_vpa.signal import message_correlation


def _complete(n: int) -> torch.Tensor:
    return torch.cartesian_prod(torch.arange(n), torch.arange(n)).T


def test_it_is_the_mean_cosine_of_all_pairs(generator: torch.Generator) -> None:
    x = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 1], [0, 0, 0, 1, 1, 2, 3, 3]])
    alike = most = 0.0
    for target in range(7):
        senders = x[edges[0][edges[1] == target]]
        for j in range(len(senders)):
            for k in range(len(senders)):
                if j != k:
                    alike += float(senders[j] @ senders[k])
                    most += float(senders[j].norm() * senders[k].norm())
    assert message_correlation(x, edges) == pytest.approx(alike / most)


def test_rectified_normals_that_are_independent_have_one_over_pi(
    generator: torch.Generator,
) -> None:
    x = torch.randn(100, 4000, generator=generator).relu()
    assert message_correlation(x, _complete(100)) == pytest.approx(1 / math.pi, rel=0.02)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_it_does_not_depend_on_the_scale(scale: float) -> None:
    x = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.5, -2.0]]) * scale
    expected = message_correlation(x / scale, _complete(3))
    assert message_correlation(x, _complete(3)) == pytest.approx(expected, rel=1e-5)


def test_opposite_messages_have_minus_one() -> None:
    x, pair = torch.tensor([[1.0], [-2.0], [0.0]]), torch.tensor([[0, 1], [2, 2]])
    assert message_correlation(x, pair) == pytest.approx(-1)


@pytest.mark.parametrize("x", [torch.randn(4, 2), torch.zeros(4, 2)])
def test_without_pairs_it_is_zero(x: torch.Tensor) -> None:
    ring = torch.stack([torch.arange(4), (torch.arange(4) + 1) % 4])
    assert message_correlation(x, ring) == 0


def test_features_must_have_two_dimensions() -> None:
    with pytest.raises(UsageError, match="x: expected shape"):
        message_correlation(torch.ones(3), _complete(3))


def test_features_that_are_not_finite_have_no_correlation() -> None:
    star = torch.tensor([[1, 2, 3], [0, 0, 0]])
    for wrong in (torch.nan, torch.inf):
        x = torch.ones(4, 2)
        x[2] = wrong
        assert math.isnan(message_correlation(x, star))
