"""The scale of a linear aggregation."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_TABLED = 1024  # lengths of rows whose powers are looked up


def power(mass: Tensor, exponent: float) -> Tensor:
    """Return ``m^(-p)``, and 0 where ``m`` is 0; finite derivatives everywhere.

    Example:
        >>> power(torch.tensor([0.0, 4.0]), 0.5)
        tensor([0.0000, 0.5000])
    """
    some = torch.where(mass > 0, mass, 1)
    if exponent == 0.5:
        scale = some.rsqrt()
    elif exponent == 1:
        scale = some.reciprocal()
    else:
        scale = some.pow(-exponent)
    return torch.where(mass > 0, scale, 0)


def power_of_lengths(
    lengths: NDArray[Any], longest: int, exponent: float, dtype: Any, more: int = 0
) -> NDArray[Any]:
    """Return what ``power`` does of the lengths of rows, of which none is above ``longest``.

    To each length ``more`` is added first; none of the sums is negative.

    Example:
        >>> power_of_lengths(np.array([0, 4]), 4, 0.5, np.float32)
        array([0. , 0.5], dtype=float32)
        >>> power_of_lengths(np.array([1, 5]), 5, 0.5, np.float32, more=-1)
        array([0. , 0.5], dtype=float32)
    """
    if longest < _TABLED:
        return _table(exponent, dtype, more).take(lengths)
    return _powers(lengths + more, exponent).astype(dtype)


@lru_cache(maxsize=64)
def _table(exponent: float, dtype: Any, more: int) -> NDArray[Any]:
    return _powers(np.arange(_TABLED) + more, exponent).astype(dtype)


def _powers(lengths: NDArray[Any], exponent: float) -> NDArray[Any]:
    some = np.maximum(lengths, 1, dtype=np.float64)
    scale: NDArray[Any] = 1 / np.sqrt(some) if exponent == 0.5 else some**-exponent
    scale[lengths == 0] = 0
    return scale
