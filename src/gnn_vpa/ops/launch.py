"""What the launchers of all kernels in Triton share; none of it needs Triton."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

FEW_EDGES = 8  # edges a row, on average, up to which rows share a program …
MIN_EDGES_ALONE = 32  # … and edges of a row from which on it is read alone, so many at a time


# Triton's own are made for kernels: called from Python they cost as much as a launch.
def ceil_div(number: int, by: int) -> int:
    """Return ``number / by``, rounded up.

    Example:
        >>> ceil_div(5, 2)
        3
    """
    return -(-number // by)


def power_of_2(number: int) -> int:
    """Return the smallest power of 2 that is not below ``number``.

    Example:
        >>> power_of_2(5)
        8
    """
    return 1 << max(0, number - 1).bit_length()


def on_device_of(x: Tensor) -> AbstractContextManager[object]:
    """Launch where ``x`` lives (the interpreter, which serves the tests, has no such place).

    Example:
        >>> with on_device_of(torch.ones(1)):
        ...     pass
    """
    elsewhere = x.is_cuda and x.get_device() != torch.cuda.current_device()
    return torch.cuda.device(x.device) if elsewhere else nullcontext()
