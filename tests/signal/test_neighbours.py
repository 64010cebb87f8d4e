import math
from statistics import fmean, stdev

import pytest
import torch

from gnn_vpa import UsageError
from gnn_vpa.signal import (
    measure_attention_variance,
    measure_variance,
    neighbours,
    predicted_variance,
    variance_by_neighbours,
)


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
def test_max_has_the_predicted_variance(n: int, generator: torch.Generator) -> None:
    measured = measure_variance("max", n, 8192, generator)
    assert abs(measured.variance - predicted_variance("max", n)) < 5 * measured.standard_error


def test_the_standard_error_of_normal_results_is_that_of_chi_square(
    generator: torch.Generator,
) -> None:
    trials = 8192
    measured = measure_variance("vpa", 10, trials, generator)
    expected = measured.variance * math.sqrt(2 / (trials - 1))
    assert measured.standard_error == pytest.approx(expected, rel=0.1)


def test_the_standard_error_is_the_spread_of_repeated_measurements(
    generator: torch.Generator,
) -> None:
    """Also for max, whose results are not normal."""
    repeated = [measure_variance("max", 50, 500, generator) for _ in range(200)]
    spread = stdev(measured.variance for measured in repeated)
    claimed = fmean(measured.standard_error for measured in repeated)
    assert claimed == pytest.approx(spread, rel=5 / math.sqrt(2 * 199))


@pytest.mark.parametrize("trials", [2, 63, 64, 65, 1000])
def test_chunks_yield_as_many_results_as_asked_for(
    trials: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "_MAX_NUMBERS", 1024)
    drawn = list(neighbours._results(lambda x, graph: x[::7], 7, trials, None))
    assert sum(len(chunk) for chunk in drawn) == trials


def test_no_chunk_draws_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_MAX_NUMBERS", 1024)
    sizes = []

    def operator(x: torch.Tensor, graph: object) -> torch.Tensor:
        sizes.append(x.numel())
        return x[::100]

    list(neighbours._results(operator, 100, 500, None))
    assert max(sizes) <= 1024


def test_the_same_seed_gives_the_same_numbers() -> None:
    first, second, other = (
        variance_by_neighbours(["vpa"], [1, 5], trials=50, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_wrong_use_is_named() -> None:
    with pytest.raises(UsageError, match="n: expected at least 1"):
        measure_variance("vpa", 0)
    with pytest.raises(UsageError, match="n: expected at least 1"):
        measure_attention_variance(torch.empty(0))
    with pytest.raises(UsageError, match="trials: expected at least 2"):
        measure_variance("vpa", 3, trials=1)
    with pytest.raises(UsageError, match="aggr"):
        measure_variance("median", 3)
