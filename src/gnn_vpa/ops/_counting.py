"""Edges grouped on the CPU by counting: linear in their number, and in few calls.

A batch of small graphs is used once, so that grouping its edges counts as much as summing over
them; NumPy's calls cost a third of PyTorch's. The loops are SciPy's, which compress and transpose
sparse matrices, called without the classes around them, whose checks take longer than the loops.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse._sparsetools import coo_tocsr, csr_tocsc

Ints = NDArray[Any]

_FEW = 16


def by_row(
    row: Ints, col: Ints, num_rows: int, value: Ints | None = None
) -> tuple[Ints, Ints, Ints]:
    """Return ``rowptr``, columns and values by row, in each row in the order of the edges.

    Values are by default the numbers of the edges. Rows and columns are of one type, and every row
    is below ``num_rows``.

    Example:
        >>> row, col = np.array([2, 0, 2]), np.array([7, 8, 9])
        >>> by_row(row, col, 3)
        (array([0, 1, 1, 3]), array([8, 7, 9]), array([1, 0, 2]))
    """
    pointer = np.empty(num_rows + 1, row.dtype)
    if value is None:
        value = np.arange(len(row), dtype=row.dtype)
    moved, ordered = np.empty_like(row), np.empty_like(value)
    coo_tocsr(num_rows, 0, len(row), row, col, value, pointer, moved, ordered)
    return pointer, moved, ordered


def pointers(row: Ints, num_rows: int) -> Ints:
    """Return ``rowptr`` of rows that ascend, each below ``num_rows``.

    Example:
        >>> pointers(np.array([0, 2, 2], np.int32), 3)
        array([0, 1, 1, 3], dtype=int32)
    """
    if len(row) > _FEW * num_rows:  # edges of a row: to look for its end is less than to count
        return row.searchsorted(np.arange(num_rows + 1, dtype=row.dtype)).astype(row.dtype)
    pointer = np.zeros(num_rows + 1, row.dtype)
    np.bincount(row, minlength=num_rows).cumsum(out=pointer[1:])
    return pointer


def is_ascending(row: Ints) -> bool:
    """Say whether no number is below the one before: at a few places first, as most are not.

    Example:
        >>> is_ascending(np.array([0, 2, 2])), is_ascending(np.array([0, 2, 1]))
        (True, False)
    """
    count = len(row)
    half = count // 2
    if count > 0 and not row.item(half // 2) <= row.item(half) <= row.item(-1):
        return False
    # A byte is 0 where a number falls: to look for it goes without NumPy's machinery.
    return b"\0" not in (row[1:] >= row[:-1]).tobytes()


def largest(values: Ints) -> int:
    """Return the largest of some numbers.

    In a loop that uses NumPy here alone, its ``max`` takes three times as long to begin.

    Example:
        >>> largest(np.array([3, 5, 2]))
        5
    """
    place: int = values.argmax()  # type: ignore[assignment]
    return int(values.item(place))


def is_in_order(edge: Ints) -> bool:
    """Say whether each edge stands where it was given: at a few places first, as most are not.

    Example:
        >>> is_in_order(np.array([0, 1, 2])), is_in_order(np.array([0, 2, 1]))
        (True, False)
    """
    count = len(edge)
    half = count // 2
    if count > 0 and (edge.item(half) != half or edge.item(half // 2) != half // 2):
        return False
    # Bytes are compared without NumPy's machinery for loops over elements.
    return edge.tobytes() == np.arange(count, dtype=edge.dtype).tobytes()


def transposed(rowptr: Ints, col: Ints, value: Ints, num_cols: int) -> tuple[Ints, Ints, Ints]:
    """Return the same edges by column: pointers, rows and values, in each column in their order.

    Example:
        >>> ends, col = np.array([0, 2, 3], np.int32), np.array([0, 1, 0], np.int32)
        >>> transposed(ends, col, np.array([7, 8, 9]), 2)
        (array([0, 2, 3], dtype=int32), array([0, 1, 0], dtype=int32), array([7, 9, 8]))
    """
    pointer, row = np.empty(num_cols + 1, col.dtype), np.empty_like(col)
    moved = np.empty_like(value)
    csr_tocsc(len(rowptr) - 1, num_cols, rowptr, col, value, pointer, row, moved)
    return pointer, row, moved
