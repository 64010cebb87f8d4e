"""The global generators of torch, Python and NumPy, which all threads of a process share."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import numpy as np
import torch

_LOCK = RLock()


class RandomState:
    """The states of the global generators; those of GPUs only where CUDA is in use."""

    def __init__(self) -> None:
        self._python, self._numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - models may use it
        self._torch = [(each, each.get_state()) for each in _generators()]

    def restore(self) -> None:
        """Restore the generators to these states."""
        random.setstate(self._python)
        np.random.set_state(self._numpy)  # noqa: NPY002
        for generator, state in self._torch:
            generator.set_state(state)


@contextmanager
def seeded(seed: "int | RandomState | None" = None) -> Iterator[None]:
    """Seed the global generators while the block runs, and restore their states afterwards.

    Only one thread at a time runs such a block; the others wait. CUDA is not initialised by it.

    Args:
        seed: The seed, or the states that the block starts from; None: the current ones.

    Example:
        >>> with seeded(7):
        ...     first = torch.rand(3)
        >>> with seeded(7):
        ...     torch.equal(torch.rand(3), first)
        True
    """
    with _LOCK:
        before = RandomState()
        try:
            if isinstance(seed, RandomState):
                seed.restore()
            elif seed is not None:
                # torch.manual_seed would leave seeds for GPUs that are not in use yet.
                for generator in _generators():
                    generator.manual_seed(seed)
                random.seed(seed)
                np.random.seed(seed % (1 << 32))  # noqa: NPY002
            yield
        finally:
            before.restore()


def _generators() -> list[torch.Generator]:
    is_used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    gpus = torch.cuda.default_generators if is_used else ()
    return [torch.default_generator, *gpus]
