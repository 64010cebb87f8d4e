import math

import numpy as np
import pytest
from scipy import integrate, special

from gnn_vpa import UsageError
from gnn_vpa.signal import predicted_attention_variance, predicted_variance


@pytest.mark.parametrize("n", [1, 2, 7, 100, 10_000])
def test_independent_messages(n: int) -> None:
    assert predicted_variance("sum", n) == n
    assert predicted_variance("mean", n) == pytest.approx(1 / n)
    assert predicted_variance("vpa", n) == 1


@pytest.mark.parametrize(
    ("n", "exact"),
    [(1, 1), (2, 1 - 1 / math.pi), (3, 1 + (math.sqrt(3) / 2 - 9 / 4) / math.pi)],
)
def test_the_maximum_of_few_normals_has_a_closed_form(n: int, exact: float) -> None:
    assert predicted_variance("max", n) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("n", [10, 1000, 1_000_000])
def test_the_maximum_of_many_normals_agrees_with_its_quantile_function(n: int) -> None:
    """The k-th moment is the integral of q(u)^k, where q(u) is the u^(1/n) quantile."""

    def moment(k: int) -> float:
        value, _ = integrate.quad(
            lambda u: special.ndtri_exp(math.log(u) / n) ** k, 0, 1, limit=500, epsabs=1e-11
        )
        return float(value)

    assert predicted_variance("max", n) == pytest.approx(moment(2) - moment(1) ** 2, rel=1e-6)


@pytest.mark.parametrize("aggr", ["sum", "mean", "vpa", "max"])
def test_variance_scales_the_prediction(aggr: str) -> None:
    expected = 3 * predicted_variance(aggr, 5, rho=0.2)
    assert predicted_variance(aggr, 5, variance=3, rho=0.2) == pytest.approx(expected)


@pytest.mark.parametrize("rho", [-0.1, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("aggr", ["sum", "mean", "vpa"])
def test_correlation_multiplies_by_one_plus_n_minus_one_rho(aggr: str, rho: float) -> None:
    expected = predicted_variance(aggr, 11) * (1 + 10 * rho)
    assert predicted_variance(aggr, 11, rho=rho) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("aggr", ["mean", "max"])
def test_identical_messages_keep_their_variance_in_mean_and_max(aggr: str) -> None:
    assert predicted_variance(aggr, 9, rho=1.0) == pytest.approx(1)


@pytest.mark.parametrize("rho", [-0.5, 0.5])
def test_the_maximum_of_two_correlated_normals_has_a_closed_form(rho: float) -> None:
    """With max(a, b) = (a + b)/2 + |a - b|/2 the variance is 1 - (1 - rho)/pi."""
    assert predicted_variance("max", 2, rho=rho) == pytest.approx(1 - (1 - rho) / math.pi)


@pytest.mark.parametrize("rho", [-0.2, 0.0, 0.7])
def test_attention_is_the_quadratic_form_of_the_correlation_matrix(rho: float) -> None:
    c = np.array([0.5, 0.3, 0.15, 0.05])
    correlation = np.full((4, 4), rho) + (1 - rho) * np.eye(4)
    plain = c @ correlation @ c
    assert predicted_attention_variance(c.tolist(), "sum", rho=rho) == pytest.approx(plain)
    preserving = predicted_attention_variance(c.tolist(), "vpa", rho=rho, variance=2)
    assert preserving == pytest.approx(2 * plain / (c @ c))


@pytest.mark.parametrize("n", [1, 4, 9])
def test_uniform_attention_is_mean_and_with_vpa_it_is_vpa(n: int) -> None:
    uniform = [1 / n] * n
    for form, aggr in (("sum", "mean"), ("vpa", "vpa")):
        expected = predicted_variance(aggr, n, rho=0.1)
        assert predicted_attention_variance(uniform, form, rho=0.1) == pytest.approx(expected)


def test_vpa_depends_on_the_ratios_of_coefficients_alone() -> None:
    expected = predicted_attention_variance([3.0, 4.0], "vpa", rho=0.5)
    for size in (1e-200, 1e200):
        found = predicted_attention_variance([3 * size, 4 * size], "vpa", rho=0.5)
        assert found == pytest.approx(expected)


def test_wrong_use_is_named() -> None:
    with pytest.raises(UsageError, match="aggr: 'median'"):
        predicted_variance("median", 3)
    with pytest.raises(UsageError, match="n: expected at least 1"):
        predicted_variance("sum", 0)
    with pytest.raises(UsageError, match=r"rho: .* from -0\.5 to 1"):
        predicted_variance("sum", 3, rho=-0.6)
    with pytest.raises(UsageError, match="aggr: 'mean'"):
        predicted_attention_variance([1.0], "mean")
    with pytest.raises(UsageError, match="coefficients"):
        predicted_attention_variance([0.0, 0.0])
