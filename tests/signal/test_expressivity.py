"""Lemma 2: which multisets an aggregation can tell apart.

All 210 multisets of up to six elements out of four, each element a one-hot vector, are the
neighbourhoods of one graph. Two multisets collide where their aggregates are equal. The aggregates
are small rational numbers or square roots of them, so in float64 two that differ do so by far more
than rounding.
"""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Literal

import pytest
import torch

from gnn_vpa.ops import Graph, aggregate

ELEMENTS, LARGEST = 4, 6
Multiset = tuple[int, ...]
MULTISETS: list[Multiset] = [
    multiset
    for size in range(LARGEST + 1)
    for multiset in combinations_with_replacement(range(ELEMENTS), size)
]


def _collisions(aggr: Literal["sum", "mean", "max", "vpa"]) -> set[tuple[Multiset, Multiset]]:
    """The pairs of multisets that the library's own operator maps to the same vector."""
    source = [element for multiset in MULTISETS for element in multiset]
    target = [place for place, multiset in enumerate(MULTISETS) for _ in multiset]
    graph = Graph(torch.tensor([source, target]), (ELEMENTS, len(MULTISETS)))
    out = aggregate(torch.eye(ELEMENTS, dtype=torch.float64), graph, aggr)
    distance = torch.cdist(out, out, p=torch.inf)
    return _pairs(lambda i, j: distance[i, j].item() < 1e-9)


def _pairs(equal: Callable[[int, int], bool]) -> set[tuple[Multiset, Multiset]]:
    return {
        (MULTISETS[i], MULTISETS[j])
        for i, j in combinations(range(len(MULTISETS)), 2)
        if equal(i, j)
    }


def _proportions(multiset: Multiset) -> dict[int, Fraction]:
    return {element: Fraction(n, len(multiset)) for element, n in Counter(multiset).items()}


def test_there_are_210_multisets() -> None:
    assert len(MULTISETS) == len(set(MULTISETS)) == 210


@pytest.mark.parametrize("aggr", ["sum", "vpa"])
def test_sum_and_vpa_tell_every_two_apart(aggr: Literal["sum", "vpa"]) -> None:
    assert _collisions(aggr) == set()


def test_mean_fails_exactly_where_the_proportions_agree() -> None:
    proportions = [_proportions(multiset) for multiset in MULTISETS]
    expected = _pairs(lambda i, j: proportions[i] == proportions[j])
    assert ((0, 1), (0, 0, 1, 1)) in expected  # the paper's example
    assert _collisions("mean") == expected


def test_max_fails_exactly_where_the_same_elements_occur() -> None:
    supports = [set(multiset) for multiset in MULTISETS]
    expected = _pairs(lambda i, j: supports[i] == supports[j])
    assert ((0, 1), (0, 0, 1)) in expected
    assert _collisions("max") == expected
