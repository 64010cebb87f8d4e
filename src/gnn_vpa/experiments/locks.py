"""Who works on what, when several processes share a run."""

import fcntl
import os
import platform
import secrets
import subprocess
import sys
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import GnnVpaError

# What another process does that wants the same: it must be refused both. Cells are locked by
# `flock`, SQLite locks by `fcntl`. Exit codes from 10 on say which one it was given.
_RIVAL = """
import fcntl, sys
for code, lock, path in ((10, fcntl.flock, sys.argv[1]), (11, fcntl.lockf, sys.argv[2])):
    with open(path, "r+b") as file:
        try:
            lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            continue
        sys.exit(code)
"""
_PATIENCE_S = 60.0
_LOOKS, _LOOK_S = 10, 0.002  # how often a lock without an owner is asked for again
_KINDS = {10: "flock", 11: "fcntl, which SQLite uses"}
_trusted: set[int] = set()  # file systems whose locks this process has seen to exclude another


def check_locks(folder: Path) -> None:
    """Refuse a folder in which a lock that one process holds is given to another as well.

    There each process would train every cell, and two that write results at once could damage
    them. A second process is started to see, once for each file system. What this cannot see is a
    network file system whose locks hold on each host by itself: `check_still_mine` can.

    Raises:
        GnnVpaError: Locks exclude nobody there, or there are none.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     check_locks(Path(folder))
        ...     list(Path(folder).iterdir())
        []
    """
    system = next(place for place in (folder, *folder.parents) if place.exists()).stat().st_dev
    if system in _trusted:
        return
    name = secrets.token_hex(4)
    # Two files: a network file system may make both kinds of locks one.
    paths = [folder / f"{name}{kind}.lock" for kind in ("a", "b")]
    try:
        handles = [_opened(path) for path in paths]
        try:
            try:
                fcntl.flock(handles[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.lockf(handles[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise GnnVpaError(no_locks(folder, error)) from error
            command = [sys.executable, "-I", "-S", "-c", _RIVAL, *map(str, paths)]
            done = subprocess.run(command, capture_output=True, check=False, timeout=_PATIENCE_S)
        finally:
            for handle in handles:
                os.close(handle)
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
    if done.returncode in _KINDS:
        raise GnnVpaError(not_exclusive(folder, f"by {_KINDS[done.returncode]}"))
    if done.returncode == 0:  # otherwise it could not be tried
        _trusted.add(system)


def check_still_mine(path: Path) -> None:
    """Raise an error if somebody else was given a lock that this process holds.

    Raises:
        GnnVpaError: Locks exclude nobody there; the message says who has it too.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, try_lock(Path(folder, "a")):
        ...     check_still_mine(Path(folder, "a"))
    """
    try:
        owner = path.read_text()
    except FileNotFoundError:
        raise GnnVpaError(not_exclusive(path.parent, "by a process that has ended")) from None
    if owner not in ("", _owner()):  # on a full disk nobody is named
        host, _, pid = owner.strip().partition(" ")
        raise GnnVpaError(not_exclusive(path.parent, f"by process {pid} on {host}"))


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold a file's lock, or learn that another process holds it.

    The operating system holds the lock and takes it back when its owner ends, however that
    happens: no owner is asked for signs of life, and no lock outlives it. The file says who holds
    it, and is gone afterwards.

    Yields:
        Whether the lock is held here now.

    Raises:
        GnnVpaError: The file system has no locks.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with try_lock(Path(folder, "a")) as mine, try_lock(Path(folder, "a")) as again:
        ...         print(mine, again)
        True False
    """
    handle = _lock(path)
    if handle is None:
        yield False
        return
    try:
        with suppress(OSError):  # a full disk: who holds the lock is for people to read
            os.ftruncate(handle, 0)
            os.write(handle, _owner().encode())
        yield True
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def is_abandoned(path: Path) -> bool:
    """Say whether the last owner of a lock was killed while it held it.

    Then the file is still there and says who that was, and nobody holds its lock.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, try_lock(Path(folder, "a")):
        ...     is_abandoned(Path(folder, "a")), is_abandoned(Path(folder, "b"))
        (False, False)
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        there = os.fstat(handle)
        return there.st_nlink > 0 and there.st_size > 0
    except BlockingIOError:
        return False
    finally:
        os.close(handle)


def release_abandoned(folder: Path, names: Container[str] | None = None) -> None:
    """Remove the locks of owners that were killed; of `names` alone, or of all.

    Example:
        >>> release_abandoned(Path("no/such/folder"))
    """
    for path in folder.glob("*.lock"):
        if (names is None or path.stem in names) and is_abandoned(path):
            with try_lock(path):
                pass


def _owner() -> str:
    return f"{platform.node()} {os.getpid()}\n"


def _opened(path: Path) -> int:
    """Open a file of locks; another process may remove its folder, as long as it is empty."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)


def _lock(path: Path) -> int | None:
    looks = 0
    while True:
        handle = _opened(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except BlockingIOError:
            # A file without content has no owner: somebody looks whether it is abandoned.
            if os.fstat(handle).st_size > 0 or looks == _LOOKS:
                os.close(handle)
                return None
            looks += 1
            time.sleep(_LOOK_S)
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(handle)
            raise GnnVpaError(no_locks(path.parent, error)) from error
        except BaseException:
            os.close(handle)
            raise
        # Or the last owner removed the file between our opening and locking it: take the new one.
        os.close(handle)


def no_locks(folder: Path, error: Exception) -> str:
    """Return what to say of a folder in which nothing can be locked.

    Example:
        >>> print(no_locks(Path("/net/runs"), OSError("No locks available")))
        files cannot be locked in /net/runs (No locks available), so that processes ...
    """
    return (
        f"files cannot be locked in {folder} ({error}), so that processes could train the same "
        "cell twice: choose a folder on a local disk with --out, or mount the network file system "
        "with locks"
    )


def not_exclusive(folder: Path, how: str) -> str:
    """Return what to say of a folder in which locks exclude nobody.

    Example:
        >>> print(not_exclusive(Path("/net/runs"), "by process 7 on node3"))
        locks do not exclude other processes in /net/runs: one that is held was taken again by ...
    """
    return (
        f"locks do not exclude other processes in {folder}: one that is held was taken again "
        f"{how}, so that processes could train the same cell twice or damage the results. What is "
        "finished is kept. Choose a folder on a local disk with --out, or mount the network file "
        "system with locks that hold across hosts (docs/slurm.md), or run one process alone"
    )
