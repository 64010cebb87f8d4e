"""Colour refinement on the host, round by round; `colours.py` says what it is.

NumPy's calls cost less than PyTorch's, and nothing is sorted by comparisons: a round takes a time
that grows with the edges.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ..ops.internal import transposed

Ints = NDArray[np.int64]

_FACTOR = 0x9E3779B97F4A7C15  # odd, without a pattern in its bits: it spreads numbers over a table


def colour_rounds(
    rowptr: Tensor, col: Tensor, start: Tensor, *, ignore_counts: bool = False
) -> Iterator[Ints]:
    """Yield the colours before the first round and after each, without end, see `refinements`.

    Example:
        >>> import torch
        >>> rowptr, col = torch.tensor([0, 1, 3, 5, 6]), torch.tensor([1, 0, 2, 1, 3, 2])
        >>> found = colour_rounds(rowptr, col, torch.zeros(4, dtype=torch.int64))
        >>> [next(found).tolist() for _ in range(3)]
        [[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0]]
    """
    ptr, sources = rowptr.numpy().astype(np.int64, copy=False), col.numpy()
    colour, known = _numbered(start.numpy().astype(np.int64, copy=False))
    draw = np.random.default_rng(0)
    yield colour
    while True:
        begin, around = ptr, _sorted_rows(ptr, colour.take(sources), known)
        if ignore_counts:
            begin, around = _without_repetition(ptr, around)
        leader = _leaders(colour, begin, around, known, draw)
        refined, count = _by_leader(leader)
        if count == known:  # stable: no further round tells more apart
            while True:
                yield colour
        colour, known = refined, count
        yield colour


def _sorted_rows(rowptr: Ints, values: Ints, known: int) -> Ints:
    """Sort the values, from 0 to below ``known``, within each row."""
    # To group by value and then by row again is to sort, in a time that grows with the edges.
    kind = np.int32 if max(len(values), known, len(rowptr)) < 1 << 31 else np.int64
    begin, col = rowptr.astype(kind, copy=False), values.astype(kind, copy=False)
    marks = np.empty(len(values), dtype=np.int8)  # which do not matter
    return transposed(*transposed(begin, col, marks, known), len(rowptr) - 1)[1]


def _without_repetition(rowptr: Ints, around: Ints) -> tuple[Ints, Ints]:
    """Leave one of each value in every row of sorted values."""
    is_new = np.ones(len(around), dtype=np.bool_)
    is_new[1:] = around[1:] != around[:-1]
    is_new[rowptr[:-1][np.diff(rowptr) > 0]] = True
    return np.append(0, is_new.cumsum())[rowptr], around[is_new]


def _leaders(
    colour: Ints, rowptr: Ints, around: Ints, known: int, draw: np.random.Generator
) -> Ints:
    """Return the first node of each node's colour and neighbours' colours.

    A hash groups, and a comparison with the first of each group decides.
    """
    degree = np.diff(rowptr)
    while True:
        salt = draw.integers(0, 1 << 64, (2, known), dtype=np.uint64)
        sums = np.zeros(len(around) + 1, dtype=np.uint64)  # they wrap around, which a hash may
        np.cumsum(salt[0].take(around), out=sums[1:])
        digest = np.diff(sums.take(rowptr)) + salt[1].take(colour)
        leader = _first_alike(digest)
        same = colour.take(leader) == colour
        same &= degree.take(leader) == degree
        if same.all() and _same_rows(rowptr, degree, around, leader):
            return leader


def _same_rows(rowptr: Ints, degree: Ints, around: Ints, leader: Ints) -> bool:
    """Say whether each row equals its leader's; the lengths do already."""
    position = np.repeat(rowptr.take(leader) - rowptr[:-1], degree)
    position += np.arange(len(around))
    return np.array_equal(around, around.take(position))


def _numbered(values: Ints) -> tuple[Ints, int]:
    """Number equal values alike, in order of appearance, and count the different ones."""
    return _by_leader(_first_alike(values.view(np.uint64)))


def _by_leader(leader: Ints) -> tuple[Ints, int]:
    number = np.cumsum(leader == np.arange(len(leader)))
    number -= 1
    return number.take(leader), int(number[-1]) + 1 if len(number) else 0


def _first_alike(values: NDArray[np.uint64]) -> Ints:
    """Return the place of the first value that equals each.

    Values mark a table where a hash sends them; those that meet another one there try again, with
    another hash.
    """
    bits = len(values).bit_length() + 1
    table = np.empty(1 << bits, dtype=np.int64)
    number = np.arange(len(values))
    place = _places(values, _FACTOR, bits)
    table[place[::-1]] = number[::-1]  # of several that are assigned to a place the last one stays
    leader = table.take(place)
    left, factor = np.flatnonzero(values.take(leader) != values), _FACTOR
    while len(left) > 0:
        factor = (factor * _FACTOR + 2) % (1 << 64)  # odd again
        own = values.take(left)
        place = _places(own, factor, bits)
        table[place[::-1]] = left[::-1]
        found = table.take(place)
        leader[left] = found
        left = left[values.take(found) != own]
    return leader


def _places(values: NDArray[np.uint64], factor: int, bits: int) -> Ints:
    places: Ints = ((values * np.uint64(factor)) >> np.uint64(64 - bits)).view(np.int64)
    return places
