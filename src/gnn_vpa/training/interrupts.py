"""Ctrl-C and SIGTERM at a good moment: between two epochs, when there is a state to go on from."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ..processes import Termination

Handler = Callable[[int, FrameType | None], object]
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

    So does SIGTERM where Python's handler of Ctrl-C takes it, or `Termination`, as in commands and
    in processes that others start. Elsewhere than in the main thread, and where a program handles
    them in its own way, nothing changes.

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
    own: dict[int, Handler] = {}
    if threading.current_thread() is threading.main_thread():
        for asked in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(asked)
            if handler is signal.default_int_handler or isinstance(handler, Termination):
                own[asked] = handler
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        if came and number == signal.SIGINT and not isinstance(own[number], Termination):
            raise Impatience
        came.append(number)

    for number in own:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in own.items():
            signal.signal(number, handler)
        if came and not isinstance(sys.exception(), Impatience):
            own[came[0]](came[0], None)
