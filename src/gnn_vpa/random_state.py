"""The global generators of torch, Python and NumPy, which all threads of a process share."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import numpy as np
import torch

_LOCK = RLock()


@contextmanager
def seeded(seed: int | None = None) -> Iterator[None]:
    """Seed the global generators while the block runs, and put their states back afterwards.

    One thread at a time: others that come here wait until the block has ended. The generators of
    GPUs are among them where CUDA is in use; it is not initialised for their sake.

    Args:
        seed: The seed; None: the block goes on from the states that it finds.

    Example:
        >>> with seeded(7):
        ...     first = torch.rand(3)
        >>> with seeded(7):
        ...     torch.equal(torch.rand(3), first)
        True
    """
    with _LOCK:
        python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - models may use it
        is_used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        gpus = torch.cuda.default_generators if is_used else ()
        try:
            with torch.random.fork_rng(range(len(gpus))):
                if seed is not None:
                    # torch.manual_seed would leave seeds for GPUs that are not in use yet.
                    for each in (torch.default_generator, *gpus):
                        each.manual_seed(seed)
                    random.seed(seed)
                    np.random.seed(seed % (1 << 32))  # noqa: NPY002
                yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
