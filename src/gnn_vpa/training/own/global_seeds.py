"""The generators that a user's model may draw from without being asked."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(own: int, device: torch.device) -> Iterator[None]:
    """Let all that draws from a global generator draw the same, whatever ran before.

    Example:
        >>> with seeded(7, torch.device("cpu")):
        ...     first = torch.rand(3)
        >>> with seeded(7, torch.device("cpu")):
        ...     torch.equal(torch.rand(3), first)
        True
    """
    devices = [device] if device.type == "cuda" else []
    mine, theirs = random.getstate(), np.random.get_state()  # noqa: NPY002 - models may use it
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(own)
        random.seed(own)
        np.random.seed(own % (1 << 32))  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(mine)
            np.random.set_state(theirs)  # noqa: NPY002
