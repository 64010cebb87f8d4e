"""Lemma 1 and Lemma 3: aggregation and attention that keep mean and variance.

Sampled tests go up to 10,000 neighbours with a tolerance that follows from the sample size;
exact tests go through every outcome of a few random signs and leave no room but rounding.
"""

import math
from itertools import product
from typing import Literal

import pytest
import torch
from torch import Tensor

from gnn_vpa.ops import Graph, aggregate, attend
from gnn_vpa.signal import (
    measure_attention_variance,
    measure_variance,
    predicted_attention_variance,
    predicted_variance,
)

COUNTS = [1, 2, 3, 10, 100, 1000, 10_000]
TRIALS = 8192
# A sum of normal messages is normal, so its sample variance is chi-square with a relative
# standard error of sqrt(2 / (T - 1)). Five of them: one false alarm in two million tests.
FIVE_SIGMA = 5 * math.sqrt(2 / (TRIALS - 1))

Linear = Literal["sum", "mean", "vpa"]
Attention = Literal["sum", "vpa"]
LINEAR: list[Linear] = ["sum", "mean", "vpa"]
ATTENTION: list[Attention] = ["sum", "vpa"]


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("aggr", LINEAR)
def test_lemma_1_sampled(aggr: Linear, n: int, generator: torch.Generator) -> None:
    measured = measure_variance(aggr, n, TRIALS, generator).variance
    assert measured == pytest.approx(predicted_variance(aggr, n), rel=FIVE_SIGMA)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("aggr", ATTENTION)
def test_lemma_3_sampled(aggr: Attention, n: int, generator: torch.Generator) -> None:
    logits = 2 * torch.randn(n, generator=generator)
    coefficients = logits.double().softmax(0).tolist()
    measured = measure_attention_variance(logits, aggr, TRIALS, generator).variance
    assert measured == pytest.approx(
        predicted_attention_variance(coefficients, aggr), rel=FIVE_SIGMA
    )


def _all_signs(n: int) -> Tensor:
    """Every outcome of n random signs, ``[n, 2^n]``: messages of mean 0 and variance 1."""
    return torch.tensor(list(product([-1.0, 1.0], repeat=n)), dtype=torch.float64).T


def _one_target(n: int) -> Graph:
    return Graph.readout(torch.zeros(n, dtype=torch.long), 1)


def _mean_and_variance(outcomes: Tensor) -> tuple[float, float]:
    return outcomes.mean().item(), outcomes.var(correction=0).item()


@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("aggr", LINEAR)
def test_lemma_1_exactly(aggr: Linear, n: int) -> None:
    mean, variance = _mean_and_variance(aggregate(_all_signs(n), _one_target(n), aggr))
    assert mean == pytest.approx(0, abs=1e-12)
    assert variance == pytest.approx(predicted_variance(aggr, n), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_lemma_1_exactly_with_weights(n: int, generator: torch.Generator) -> None:
    weight = torch.randn(n, dtype=torch.float64, generator=generator)
    mean, variance = _mean_and_variance(aggregate(_all_signs(n), _one_target(n), "vpa", weight))
    assert mean == pytest.approx(0, abs=1e-12)
    assert variance == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("aggr", ATTENTION)
def test_lemma_3_exactly(aggr: Attention, n: int, generator: torch.Generator) -> None:
    logits = 2 * torch.randn(n, dtype=torch.float64, generator=generator)
    outcomes = attend(_all_signs(n), _one_target(n), logits, aggr)
    mean, variance = _mean_and_variance(outcomes)
    expected = predicted_attention_variance(logits.softmax(0).tolist(), aggr)
    assert mean == pytest.approx(0, abs=1e-12)
    assert variance == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rho", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("aggr", LINEAR)
def test_correlated_messages_exactly(aggr: Linear, rho: float) -> None:
    """One sign is shared by all messages: any two of them have the correlation rho."""
    shared, own = _all_signs(9).split([1, 8])
    messages = math.sqrt(rho) * shared + math.sqrt(1 - rho) * own
    _, variance = _mean_and_variance(aggregate(messages, _one_target(8), aggr))
    assert variance == pytest.approx(predicted_variance(aggr, 8, rho=rho), rel=1e-12)
