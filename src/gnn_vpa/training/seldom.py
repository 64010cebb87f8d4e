"""What is done beside the work: seldom, and in a small share of the time."""

import time
from collections.abc import Callable
from typing import Self

Clock = Callable[[], float]
SHARE = 0.01  # of the time that may go into what is done beside training


class Seldom:
    """Says when something is due again: not before a pause, nor in more than a share of the time.

    Args:
        pause: Seconds between the end of one and the start of the next, at least.
        share: Of the time that may go into it.
        clock: Tells the time in seconds.

    Example:
        >>> look = Seldom(pause=60.0)
        >>> look.is_due()
        True
        >>> with look:
        ...     pass
        >>> look.is_due()
        False
    """

    def __init__(self, pause: float, share: float = SHARE, clock: Clock = time.monotonic) -> None:
        self._pause, self._share, self._clock = pause, share, clock
        self._next = self._began = clock()

    def is_due(self) -> bool:
        """Say whether it may be done now."""
        return self._clock() >= self._next

    def wait(self) -> float:
        """Return the seconds until it may be done."""
        return max(0.0, self._next - self._clock())

    def __enter__(self) -> Self:
        self._began = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        now = self._clock()
        self._next = now + max(self._pause, (now - self._began) / self._share)
