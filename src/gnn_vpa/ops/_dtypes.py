"""The type in which sums are formed: float32 for half types, else the type itself."""

import torch
from torch import Tensor

_HALF = (torch.float16, torch.bfloat16)


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Return the type in which values of ``dtype`` are summed."""
    return torch.float32 if dtype in _HALF else dtype


def accumulable(t: Tensor) -> Tensor:
    """Return ``t`` in the type in which it is summed."""
    return t.to(accumulator(t.dtype))
