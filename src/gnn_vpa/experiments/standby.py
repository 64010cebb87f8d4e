"""Processes that are started before it is known what they are to do: starting takes seconds."""

import subprocess
from typing import Self

from .. import processes


def start() -> "subprocess.Popen[bytes]":
    """Start a process that imports what a training needs, and then waits for its order.

    The order comes by its standard input, whose end is the end of the process.
    """
    return processes.start(
        ["-m", f"{__package__}.workers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


class Standby:
    """Processes that wait for orders, as a context: whoever has none at its end is ended.

    Args:
        count: How many to start.

    Example:
        >>> with Standby() as standby:
        ...     standby.dismiss()
    """

    def __init__(self, count: int = 0) -> None:
        self._count = count
        self._waiting: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        try:
            for _ in range(self._count):
                self._waiting.append(start())
        except BaseException:
            self.dismiss()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.dismiss()

    def take(self) -> "subprocess.Popen[bytes]":
        """Return a process to be given an order: one that waits, or else a new one."""
        while self._waiting:
            process = self._waiting.pop()
            if process.poll() is None:
                return process
            _end(process)  # killed while it waited
        return start()

    def dismiss(self) -> None:
        """End the processes that wait: there are no more orders for now."""
        while self._waiting:
            _end(self._waiting.pop())


def _end(process: "subprocess.Popen[bytes]") -> None:
    processes.end(process)
    assert process.stdout is not None
    process.stdout.close()  # nobody reads it
