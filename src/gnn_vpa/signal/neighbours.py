"""What the library does: the variance after aggregating ``n`` neighbours, measured.

The theory says what to expect; here the very operators that a network runs are fed with random
messages.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ..errors import UsageError
from ..ops import Graph, aggregate, attend
from .theory import predicted_variance

Operator = Callable[[Tensor, Graph], Tensor]  # x [num_sources, width] -> [num_targets, width]

_WIDTH = 64  # features of a target; they are independent, so each is a trial
_MAX_NUMBERS = 1 << 23  # random numbers drawn at a time: 32 MiB


class Measurement(NamedTuple):
    """A variance, and the standard error that comes with the size of the sample.

    Example:
        >>> Measurement(variance=1.02, standard_error=0.03).variance
        1.02
    """

    variance: float
    standard_error: float


class VariancePoint(NamedTuple):
    """One aggregation over one number of neighbours: measured beside predicted.

    Example:
        >>> VariancePoint("vpa", 100, Measurement(1.02, 0.03), predicted=1.0).predicted
        1.0
    """

    aggr: str
    n: int
    measured: Measurement
    predicted: float


def measure_variance(
    aggr: str, n: int, trials: int = 4096, generator: torch.Generator | None = None
) -> Measurement:
    """Measure the variance of an aggregation of ``n`` independent standard normal messages.

    Every target of the graph has ``n`` sources of its own, so that the results are independent.

    Args:
        aggr: The aggregation, as in ``gnn_vpa.ops.aggregate``.
        n: The number of neighbours of each target, at least 1.
        trials: How many independent results to take the variance of, at least 2.
        generator: The source of random numbers; torch's own by default.

    Returns:
        The unbiased variance ``s^2`` of the ``T`` results and its standard error, which holds for
        any distribution: ``sqrt((m - s^4 (T - 3) / (T - 1)) / T)`` with the fourth central
        moment ``m``.

    Example:
        >>> measured = measure_variance("vpa", 100, generator=torch.Generator().manual_seed(0))
        >>> abs(measured.variance - 1) < 4 * measured.standard_error
        True
    """

    def operator(x: Tensor, graph: Graph) -> Tensor:
        return aggregate(x, graph, aggr)

    return _measure(operator, n, trials, generator)


def measure_attention_variance(
    logits: Tensor,
    aggr: Literal["sum", "vpa"] = "vpa",
    trials: int = 4096,
    generator: torch.Generator | None = None,
) -> Measurement:
    """Measure the variance of attention over independent standard normal messages.

    Args:
        logits: ``[n]``, the attention logits of the ``n`` neighbours that each target has.
        aggr: ``"sum"`` (plain) or ``"vpa"`` (variance-preserving), as in ``gnn_vpa.ops.attend``.
        trials: How many independent results to take the variance of, at least 2.
        generator: The source of random numbers; torch's own by default.

    Returns:
        The variance and its standard error, as ``measure_variance`` does.

    Example:
        >>> logits, generator = torch.linspace(-1, 1, 50), torch.Generator().manual_seed(0)
        >>> measured = measure_attention_variance(logits, generator=generator)
        >>> abs(measured.variance - 1) < 4 * measured.standard_error
        True
    """

    def operator(x: Tensor, graph: Graph) -> Tensor:
        return attend(x, graph, logits.repeat(graph.num_targets), aggr)

    return _measure(operator, len(logits), trials, generator)


def variance_by_neighbours(
    aggrs: Iterable[str], counts: Iterable[int], trials: int = 4096, seed: int = 0
) -> list[VariancePoint]:
    """Measure and predict the variance for each aggregation and each number of neighbours.

    Args:
        aggrs: The aggregations, as in ``gnn_vpa.ops.aggregate``.
        counts: The numbers of neighbours.
        trials: Independent results behind each measurement.
        seed: The seed of the random messages.

    Returns:
        A point for each pair, all counts of the first aggregation first.

    Example:
        >>> points = variance_by_neighbours(["sum", "vpa"], [1, 10], trials=100)
        >>> [(point.aggr, point.n, point.predicted) for point in points]
        [('sum', 1, 1.0), ('sum', 10, 10.0), ('vpa', 1, 1.0), ('vpa', 10, 1.0)]
    """
    generator = torch.Generator().manual_seed(seed)
    counts = list(counts)
    return [
        VariancePoint(
            aggr,
            n,
            measured=measure_variance(aggr, n, trials, generator),
            predicted=predicted_variance(aggr, n),
        )
        for aggr in aggrs
        for n in counts
    ]


def _measure(
    operator: Operator, n: int, trials: int, generator: torch.Generator | None
) -> Measurement:
    if n < 1:
        raise UsageError(f"n: expected at least 1 neighbour, got {n}.")
    if trials < 2:
        raise UsageError(f"trials: expected at least 2, got {trials}: one has no variance.")
    results = torch.cat(list(_results(operator, n, trials, generator))).double()
    deviations = results - results.mean()
    variance = deviations.square().sum().item() / (trials - 1)
    spread = deviations.pow(4).mean().item() - variance**2 * (trials - 3) / (trials - 1)
    return Measurement(variance, math.sqrt(max(spread, 0.0) / trials))


def _results(
    operator: Operator, n: int, trials: int, generator: torch.Generator | None
) -> Iterator[Tensor]:
    """Yield ``trials`` results in all, as many at a time as the memory allows."""
    width = min(_WIDTH, trials, max(1, _MAX_NUMBERS // n))
    most_targets = max(1, _MAX_NUMBERS // (n * width))
    while trials > 0:
        targets = min(most_targets, math.ceil(trials / width))
        graph = Graph.readout(torch.arange(targets).repeat_interleave(n), targets)
        x = torch.randn(targets * n, width, generator=generator)
        yield operator(x, graph).flatten()[:trials]
        trials -= targets * width
