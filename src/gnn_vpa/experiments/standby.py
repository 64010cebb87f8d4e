"""Processes that are started before it is known what they are to do: starting takes seconds."""

import subprocess
from collections.abc import Mapping
from typing import Self

from .. import processes


def start(environment: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
    """Start a process that imports what a training needs, and then waits for its order.

    The order comes by its standard input, whose end is the end of the process.

    Args:
        environment: Variables that it has beside those of this process, from its first moment on:
            processes that got those of the multi-process service later, when torch was imported,
            took turns on a GPU.
    """
    return processes.start(
        processes.calling(f"{__package__}.workers", "_assist"),
        environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # where it is told why it ends
    )


class Standby:
    """Processes that wait for orders, as a context: whoever has none at its end is ended.

    Example:
        >>> with Standby() as standby:
        ...     standby.dismiss()
    """

    def __init__(self) -> None:
        self._waiting: list[subprocess.Popen[bytes]] = []
        self._environment: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.dismiss()

    def fill(self, count: int, environment: Mapping[str, str]) -> None:
        """Start so many processes, with these variables."""
        self._environment = dict(environment)
        for _ in range(count):
            self._waiting.append(start(environment))

    def take(self, environment: Mapping[str, str] | None = None) -> "subprocess.Popen[bytes]":
        """Return a process with such variables for an order: one that waits, or a new one."""
        while self._waiting and self._environment == dict(environment or {}):
            process = self._waiting.pop()
            if process.poll() is None:
                return process
            _end(process)  # killed while it waited
        return start(environment)

    def dismiss(self) -> None:
        """End the processes that wait: there are no more orders for now."""
        while self._waiting:
            _end(self._waiting.pop())


def _end(process: "subprocess.Popen[bytes]") -> None:
    processes.end(process)
    assert process.stdout is not None
    process.stdout.close()  # nobody reads it
