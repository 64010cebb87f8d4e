"""Who works on what, when several processes share a run."""

import fcntl
import os
import platform
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import GnnVpaError


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
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _lock(path)
    if handle is None:
        yield False
        return
    try:
        with suppress(OSError):  # a full disk: who holds the lock is for people to read
            os.ftruncate(handle, 0)
            os.write(handle, f"{platform.node()} {os.getpid()}\n".encode())
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


def _lock(path: Path) -> int | None:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except FileNotFoundError:
            pass
        except OSError as error:
            os.close(handle)
            raise GnnVpaError(no_locks(path.parent, error)) from error
        except BaseException:
            os.close(handle)
            raise
        # The last owner removed the file between our opening and locking it: take the new one.
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
