"""Colours that are refined on the host are those of the device, to the number."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from gnn_vpa.graphs import colour_rounds as host
from gnn_vpa.graphs.colours import _on_device

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40)


def csr(edges: list[tuple[int, int]], nodes: int) -> tuple[Tensor, Tensor]:
    """Return edges by target, in any order of sources."""
    target = torch.tensor([t for _, t in edges], dtype=torch.int64)
    order = target.argsort(stable=True)
    col = torch.tensor([s for s, _ in edges], dtype=torch.int64)[order]
    count = torch.bincount(target, minlength=nodes)
    return torch.cat([torch.zeros(1).long(), count.cumsum(0)]), col


def rounds(rowptr: Tensor, col: Tensor, start: Tensor, ignore_counts: bool) -> list[list[int]]:
    found = host.colour_rounds(rowptr, col, start, ignore_counts=ignore_counts)
    return [colour.tolist() for colour in islice(found, 5)]


@given(EDGES, st.lists(st.integers(-3, 3), min_size=10, max_size=10), st.booleans())
def test_both_ways_give_the_same_colours(
    edges: list[tuple[int, int]], start: list[int], ignore_counts: bool
) -> None:
    rowptr, col = csr(edges, 10)
    first = torch.tensor(start)
    expected = _on_device(rowptr, col, first, 4, ignore_counts)
    assert rounds(rowptr, col, first, ignore_counts) == [colour.tolist() for colour in expected]


class NoSalt:
    """Draws zeros at first, so that all nodes collide."""

    def __init__(self) -> None:
        self.calls = 0
        self._draw = np.random.default_rng(1)

    def integers(self, *args: Any, **kwargs: Any) -> NDArray[np.uint64]:
        self.calls += 1
        salt = self._draw.integers(*args, **kwargs)
        return salt if self.calls % 3 == 0 else np.zeros_like(salt)


def test_a_collision_of_the_hash_is_found_and_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    rowptr, col = csr([(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (5, 4), (4, 5)], 6)
    start = torch.zeros(6, dtype=torch.int64)
    expected, bad = rounds(rowptr, col, start, False), NoSalt()
    monkeypatch.setattr(np.random, "default_rng", lambda seed: bad)
    assert rounds(rowptr, col, start, False) == expected
    assert bad.calls > 3


@given(st.lists(st.integers(0, 5) | st.integers(0, 2**64 - 1), max_size=50), st.booleans())
def test_values_that_meet_in_the_table_are_told_apart(values: list[int], meet: bool) -> None:
    # Times the factor, numbers that differ in their lower half alone go to one place.
    inverse = pow(host._FACTOR, -1, 1 << 64)
    met = [v * inverse % (1 << 64) if meet else v for v in values]
    found = host._first_alike(np.array(met, dtype=np.uint64)).tolist()
    assert found == [met.index(value) for value in met]
