"""Run an operation again and again, on a disk that fails one moment later each time.

To be run with `shim.c` preloaded. Every attempt is a fork, so that a kill ends nothing else, and
nothing is imported twice.
"""

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from enum import IntEnum
from itertools import count
from pathlib import Path

from gnn_vpa.errors import GnnVpaError


class Fault(IntEnum):
    """What happens at the n-th operation; the numbers are those of `shim.c`."""

    FULL_ONCE = 0
    FULL_FROM_THEN_ON = 1
    FAILING_ONCE = 2
    KILLED_BEFORE = 3
    KILLED_AFTER = 4


class End(IntEnum):
    """How an attempt ended: exit codes."""

    PASSED = 0
    EXPLAINED = 1
    TRACEBACK = 2
    UNHARMED = 3  # it passed, and the fault was never reached
    KILLED = -signal.SIGKILL


def at_every_moment(
    folder: Path,
    prepare: Callable[[Path], object],
    operate: Callable[[Path], object],
    check: Callable[[Path, End], object],
    kinds: Iterable[Fault] = Fault,
) -> int:
    """Let `operate` meet faults at every moment, and `check` what is left each time.

    With GNN_VPA_EVERY set, every kind at every moment; else a kind meets every fifth moment, and
    the next kinds those between: with all five kinds every moment is met.

    Returns:
        The number of faults.
    """
    faults = 0
    step = 1 if "GNN_VPA_EVERY" in os.environ else 5
    for place, fault in enumerate(kinds):
        for number in count(1 + place % step, step):
            path = folder / f"{fault.name}-{number}"
            prepare(path)
            end = _attempt(path, fault, number, operate)
            if end is End.TRACEBACK:
                sys.exit(f"{operate.__name__}: {fault.name} at {number} is not explained")
            try:
                check(path, end)
            except BaseException:
                print(f"{operate.__name__}, {fault.name} at {number}, {end.name}:", file=sys.stderr)
                raise
            if end is End.UNHARMED:
                break
            faults += 1
    return faults


def _attempt(path: Path, fault: Fault, number: int, operate: Callable[[Path], object]) -> End:
    pid = os.fork()
    if pid:
        return End(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    disk, end = ctypes.CDLL(None), End.TRACEBACK
    try:
        disk.fault_arm(os.fsencode(path), number, fault)
        operate(path)
        end = End.PASSED
    except GnnVpaError:
        end = End.EXPLAINED
    except OSError as error:
        # The command line explains a full disk, and everything that names a file.
        end = End.EXPLAINED if error.filename else End.TRACEBACK
    finally:
        reached = disk.fault_reached()
        disk.fault_arm(b"", 0, 0)
        if end is End.TRACEBACK:
            traceback.print_exc()
        os._exit(end if reached or end is not End.PASSED else End.UNHARMED)
    raise AssertionError
