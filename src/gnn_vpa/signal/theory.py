"""What the lemmas predict: the variance that is left after an aggregation.

Every linear aggregation is ``y = s * sum_j w_j z_j``. For messages ``z_j`` of variance ``v`` and
mean pairwise correlation ``rho``,

    Var(y) = v * s^2 * (sum_j w_j^2 + rho * ((sum_j w_j)^2 - sum_j w_j^2)).

With independent messages (``rho = 0``) this is ``N`` for sum, ``1/N`` for mean and 1 for vpa
(Lemma 1), ``sum_j c_j^2`` for attention and 1 for variance-preserving attention (Lemma 3).
"""

import math
from collections.abc import Sequence

from ..aggregations import aggregation
from ..errors import UsageError
from .maximum import variance_of_maximum


def predicted_variance(aggr: str, n: int, *, variance: float = 1.0, rho: float = 0.0) -> float:
    """Predict the variance of an aggregation of ``n`` centred messages.

    Exact for linear aggregations whatever the distribution; for max the messages are normal, and
    any two of them have the same correlation.

    Args:
        aggr: ``"sum"``, ``"mean"``, ``"max"``, ``"vpa"`` or ``"power(p)"``.
        n: The number of neighbours, at least 1.
        variance: The variance of one message.
        rho: The mean correlation of two different messages, at least ``-1 / (n - 1)``.

    Returns:
        The variance of the result.

    Example:
        >>> [predicted_variance(aggr, 100) for aggr in ("sum", "mean", "vpa")]
        [100.0, 0.01, 1.0]
        >>> round(predicted_variance("vpa", 100, rho=0.1), 6)  # 1 + (N - 1) rho
        10.9
        >>> round(predicted_variance("max", 2), 6)  # 1 - 1/pi
        0.68169
    """
    if n < 1:
        raise UsageError(f"n: expected at least 1 neighbour, got {n}.")
    _check_correlation(rho, n)
    exponent = aggregation(aggr, among="operators").exponent
    if exponent is None:
        # Correlation is a part of variance rho that all messages share: every maximum keeps it.
        return variance * (rho + (1.0 - rho) * variance_of_maximum(n))
    return variance * _spread(total=n, squares=n, rho=rho) * math.pow(n, -2 * exponent)


def predicted_attention_variance(
    coefficients: Sequence[float], aggr: str = "vpa", *, variance: float = 1.0, rho: float = 0.0
) -> float:
    """Predict the variance of attention with given coefficients.

    Args:
        coefficients: The attention coefficients ``c_1, ..., c_N`` of one target.
        aggr: ``"sum"`` for plain attention, ``sum_j c_j z_j``; ``"vpa"`` for variance-preserving
            attention, which divides that by ``sqrt(sum_j c_j^2)``.
        variance: The variance of one message.
        rho: The correlation of any two different messages, at least ``-1 / (N - 1)``.

    Returns:
        The variance of the result.

    Example:
        >>> predicted_attention_variance([0.5, 0.5], "sum")
        0.5
        >>> predicted_attention_variance([0.5, 0.5], "vpa")
        1.0
    """
    largest = max(map(abs, coefficients), default=0.0)
    if largest == 0.0:
        raise UsageError("coefficients: expected at least one that is not 0.")
    _check_correlation(rho, len(coefficients))
    if aggr not in ("sum", "vpa"):
        raise UsageError(f"aggr: {aggr!r} is no form of attention, expected sum or vpa.")
    if aggr == "vpa":  # their ratios alone matter, and squares of small ones would be 0
        coefficients = [c / largest for c in coefficients]
    squares = math.fsum(c * c for c in coefficients)
    spread = variance * _spread(math.fsum(coefficients), squares, rho)
    return spread / squares if aggr == "vpa" else spread


def _spread(total: float, squares: float, rho: float) -> float:
    """Compute ``sum_jk w_j w_k corr(z_j, z_k)`` from ``sum_j w_j`` and ``sum_j w_j^2``."""
    return squares + rho * (total**2 - squares)


def _check_correlation(rho: float, n: int) -> None:
    lowest = -1.0 / (n - 1) if n > 1 else -1.0
    if not lowest <= rho <= 1.0:
        raise UsageError(
            f"rho: expected a correlation that {n} variables can have, "
            f"from {lowest:g} to 1, got {rho:g}."
        )
