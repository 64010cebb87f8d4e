"""The command line as a process of its own, without the seconds that imports take."""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import NamedTuple

import pytest
import torch

from gnn_vpa.cli import main


class Command(NamedTuple):
    """A command that is running."""

    process: int

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.kill(self.process, signal.SIGINT)

    def wait(self) -> int:
        """Return its exit code."""
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


Start = Callable[..., Command]


@pytest.fixture
def start() -> Start:
    """Start a command as a copy of this process: `start(*arguments, stdout=3, stderr=4, env={})`.

    It has its own streams, environment, signals and end. What the start of Python and the end of
    its interpreter do, warnings included, `python -m gnn_vpa` must show.
    """

    def start(
        *arguments: str, stdout: int, stderr: int, env: Mapping[str, str] = os.environ
    ) -> Command:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads of ours only wait
            process = os.fork()
        if process == 0:
            _run(arguments, (stdout, stderr), dict(env))
        return Command(process)

    return start


def _run(arguments: tuple[str, ...], streams: tuple[int, int], environment: dict[str, str]) -> None:
    """Be the command; never return."""
    code: object = 1
    try:
        for number, stream in enumerate(streams, start=1):
            os.dup2(stream, number)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["gnn-vpa", *arguments]
        torch.set_num_threads(1)  # threads that this process had are not in its copy: none waits
        with ExitStack() as stack:
            sys.stdout, sys.stderr = (
                stack.enter_context(open(number, "w", buffering=1, closefd=False))
                for number in (1, 2)
            )
            try:
                main()
                code = 0
            except SystemExit as end:
                code = end.code or 0
            except BaseException:
                traceback.print_exc()
    finally:
        os._exit(code if isinstance(code, int) else 1)
