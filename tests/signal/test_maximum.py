import math

import pytest
import torch

from gnn_vpa.signal.maximum import second_moment_of_maximum, variance_of_maximum


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n", [1, 2])
def test_the_larger_of_two_normals_has_second_moment_one(n: int, rho: float) -> None:
    """``max(a, b)^2 + min(a, b)^2 = a^2 + b^2``, and by symmetry both have the same mean."""
    assert second_moment_of_maximum(n, rho) == pytest.approx(1)


def test_rectified_it_has_a_closed_form() -> None:
    assert second_moment_of_maximum(1, rectified=True) == pytest.approx(1 / 2, abs=1e-5)
    # Without the quarter where both are negative, and the one nearer to 0 has 1 - 2/pi.
    expected = 1 - (1 - 2 / math.pi) / 4
    assert second_moment_of_maximum(2, rectified=True) == pytest.approx(expected, abs=1e-5)


def test_equal_variables_are_their_own_maximum() -> None:
    assert second_moment_of_maximum(50, 1.0) == pytest.approx(1)
    assert second_moment_of_maximum(50, 1.0, rectified=True) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("rectified", [False, True])
def test_it_agrees_with_a_simulation(rectified: bool, generator: torch.Generator) -> None:
    shared, own = (torch.randn(200_000, n, generator=generator) for n in (1, 5))
    z = math.sqrt(0.4) * shared + math.sqrt(0.6) * own
    largest = z.amax(1)
    largest = largest.relu() if rectified else largest
    expected = second_moment_of_maximum(5, 0.4, rectified)
    assert largest.square().mean().item() == pytest.approx(expected, rel=0.02)


def test_the_variance_is_the_second_moment_less_the_squared_mean() -> None:
    mean_of_three = 3 / (2 * math.sqrt(math.pi))
    expected = second_moment_of_maximum(3) - mean_of_three**2
    assert variance_of_maximum(3) == pytest.approx(expected)
