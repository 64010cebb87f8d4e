"""The scale of a linear aggregation."""

import numpy as np
import torch
from torch import Tensor


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


def power_of_counts(counts: Tensor, exponent: float) -> Tensor:
    """Return what ``power`` does of constants on the CPU, in fewer and cheaper calls.

    Example:
        >>> power_of_counts(torch.tensor([0.0, 4.0]), 0.5)
        tensor([0.0000, 0.5000])
    """
    mass = counts.numpy()
    all_positive = bool(mass.min(initial=1) > 0)
    some = mass if all_positive else np.where(mass > 0, mass, 1)
    scale = 1 / np.sqrt(some) if exponent == 0.5 else some**-exponent
    return torch.from_numpy(scale if all_positive else np.where(mass > 0, scale, 0))
