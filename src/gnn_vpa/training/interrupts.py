"""Ctrl-C at a good moment: between two epochs, when there is a state to go on from."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

GRACE_S = 5.0
"""Seconds that processes get to hand over their states after Ctrl-C; they need one or two."""


class Impatience(KeyboardInterrupt):
    """A second Ctrl-C: leave at once, and keep no more.

    Example:
        >>> issubclass(Impatience, KeyboardInterrupt)
        True
    """


@contextmanager
def deferred() -> Iterator[None]:
    """Let Ctrl-C wait for the end of a block; a second one does not wait.

    Elsewhere than in the main thread, and where a program handles it in its own way, nothing
    changes.

    Example:
        >>> try:
        ...     with deferred():
        ...         signal.raise_signal(signal.SIGINT)
        ...         print("this is still done")
        ... except KeyboardInterrupt:
        ...     print("and then it is interrupted")
        this is still done
        and then it is interrupted
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came = False

    def note(_signal: int, _frame: FrameType | None) -> None:
        nonlocal came
        if came:
            raise Impatience
        came = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if came and not isinstance(sys.exception(), Impatience):
            raise KeyboardInterrupt
