"""How a process of ours is started, interrupted and ended: all that do so come here.

Processes are started as programs and not forked: a fork of a process whose threads or GPU are in
use may hang, and this way nothing of the caller's script runs twice.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, Self

# glibc gives large blocks back as soon as they are free, and a step that asks for them again meets
# empty pages: a hundred at each step of a training. So memory that was needed once is kept.
_KEPT = {"MALLOC_TRIM_THRESHOLD_": str(1 << 28), "MALLOC_MMAP_THRESHOLD_": str(1 << 25)}


def start(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None, **streams: Any
) -> subprocess.Popen[bytes]:
    r"""Start Python with these arguments, and with this process' import path.

    The current folder comes last in that path, if it is in it, and Python does not add it in front
    (``-P``): a `json.py` there would be imported instead of the standard library's.

    Ctrl-C is for the process that was started by hand, which then asks the others to leave.
    Variables in ``environment`` are added to those of this process, which go before our own.

    Example:
        >>> process = start(["-c", "print('here')"], stdout=subprocess.PIPE)
        >>> process.communicate()[0]
        b'here\n'
    """
    path = os.pathsep.join([*filter(None, sys.path), *["."] * ("" in sys.path)])
    return subprocess.Popen(
        [sys.executable, "-P", *arguments],
        env={**_KEPT, **os.environ, **(environment or {}), "PYTHONPATH": path},
        start_new_session=True,
        **streams,
    )


def calling(module: str, function: str, argument: object = None) -> list[str]:
    r"""Return arguments of Python, so that it imports a function of a module and calls it.

    No garbage is looked for during the import: there is none, and that would take a fifth of it.

    Args:
        module: Its full name.
        function: What of it is called.
        argument: A number, text, or a tuple of them, that it is called with, if any.

    Example:
        >>> process = start(calling("pprint", "pprint", 4), stdout=subprocess.PIPE)
        >>> process.communicate()[0]
        b'4\n'
    """
    imports = f"import gc; gc.disable(); from {module} import {function}; gc.freeze(); gc.enable()"
    return ["-c", f"{imports}; {function}({'' if argument is None else repr(argument)})"]


class Termination:
    """Signal handler that interrupts a process as Ctrl-C does, on the first signal only.

    What comes again does nothing: batch systems and ``timeout`` send SIGTERM to a process and to
    its group, and a process that ends for its parent's sake is asked by the parent too.

    Attributes:
        number: The signal that came; None: none.

    Example:
        >>> before, end = signal.getsignal(signal.SIGTERM), Termination()
        >>> _ = signal.signal(signal.SIGTERM, end)
        >>> try:
        ...     signal.raise_signal(signal.SIGTERM)
        ... except KeyboardInterrupt:
        ...     signal.raise_signal(signal.SIGTERM)
        >>> _ = signal.signal(signal.SIGTERM, before)
        >>> end.number
        <Signals.SIGTERM: 15>
    """

    number: signal.Signals | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt."""
        if self.number is None:
            self.number = signal.Signals(number)
            raise KeyboardInterrupt

    @classmethod
    def of_worker(cls) -> Self:
        """Install a handler of SIGINT and SIGTERM in a worker process and return the handler."""
        end = cls()
        for number in (signal.SIGINT, signal.SIGTERM):  # a shell may let the first be ignored
            signal.signal(number, end)
        return end

    def die(self) -> None:
        """End this process by the signal that came, so that whoever waits for it can tell."""
        number = self.number or signal.SIGINT
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


def interrupt(processes: Iterable[subprocess.Popen[bytes]], seconds: float) -> None:
    """Ask processes to write the states of what they train and to leave; wait for so long.

    Example:
        >>> interrupt([], seconds=1.0)
    """
    processes = list(processes)
    for process in processes:
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + seconds
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, if it has not ended by itself.

    Example:
        >>> process = start(["-c", "import time; time.sleep(60)"])
        >>> end(process)
        >>> process.returncode
        -9
    """
    process.kill()
    process.wait()
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


def how_ended(code: int, during: str = "", last: str = "") -> str:
    """Return a phrase that says how a process ended.

    Args:
        code: What ``Popen.wait`` returned.
        during: What the process was at.
        last: The last line that it wrote on standard error.

    Example:
        >>> how_ended(-9, " while it trained")
        'was ended by SIGKILL while it trained, most likely because memory ran out'
        >>> how_ended(1, " before it was ready", "ImportError: no torch")
        "ended with exit code 1 before it was ready ('ImportError: no torch')"
    """
    if code >= 0:
        return f"ended with exit code {code}{during}" + (f" ({last!r})" if last else "")
    why = ", most likely because memory ran out" if code == -signal.SIGKILL else ""
    return f"was ended by {signal.Signals(-code).name}{during}{why}"
