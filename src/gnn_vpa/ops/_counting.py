"""Edges grouped on the CPU by counting: linear in their number, and in few calls.

A batch of small graphs is used once, so that grouping its edges counts as much as summing over
them; NumPy's calls cost a third of PyTorch's. The loop is SciPy's transpose of a CSR matrix, called
without the class around it, whose checks take longer than the loop.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse._sparsetools import csr_tocsc

Ints = NDArray[Any]


def ascends(index: Ints) -> bool:
    """Say whether an index never falls.

    Example:
        >>> ascends(np.array([0, 0, 2])), ascends(np.array([1, 0]))
        (True, False)
    """
    return bool((index[1:] >= index[:-1]).all())


def pointers(row: Ints, num_rows: int, dtype: type[np.integer[Any]]) -> Ints:
    """Return where each row of an ascending index begins, and its end: ``[num_rows + 1]``.

    Example:
        >>> pointers(np.array([0, 0, 2]), 3, np.int32).tolist()
        [0, 2, 2, 3]
    """
    rowptr = np.zeros(num_rows + 1, dtype)
    np.cumsum(np.bincount(row, minlength=num_rows), out=rowptr[1:])
    return rowptr


def by_row(row: Ints, num_rows: int) -> tuple[Ints, Ints]:
    """Return ``rowptr`` and the edges by row, in each row in their order.

    Example:
        >>> by_row(np.array([2, 0, 2], np.int32), 3)
        (array([0, 1, 1, 3], dtype=int32), array([1, 0, 2], dtype=int32))
    """
    ends = np.arange(len(row) + 1, dtype=row.dtype)  # a matrix with one 1 in the row of each edge
    rowptr, edge, _ = transposed(ends, row, np.empty(len(row), np.int8), num_rows)
    return rowptr, edge


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
