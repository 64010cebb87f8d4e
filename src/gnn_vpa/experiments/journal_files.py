"""The files of journals: where they are, how they are read, and when they go (`journal.py`)."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from .estimate import Kind
from .locks import is_abandoned, try_lock

FOLDER = "live"
"""Where the journals are in the folder of a run."""

FORMAT = 1
LOCK, NEWS, PLAN = ".lock", ".now.json", ".plan.json"
_FRESH_S = 60.0  # news that are younger are believed where no lock can be looked at


class Entry(NamedTuple):
    """The journal of a process.

    Attributes:
        host: Where the process is.
        pid: Its number there.
        is_alive: Whether it still runs.
        updated: When it last had news, in seconds since 1970.
        workers: What it, or each that it speaks for, is at; as `Journal` writes it.
    """

    host: str
    pid: int
    is_alive: bool
    updated: float
    workers: list[dict[str, Any]]


class Planned(NamedTuple):
    """A cell that is to be run: what it is called, what its pace is a matter of, its work."""

    name: str
    kind: Kind
    work: int


class Plan(NamedTuple):
    """What is to be run.

    Attributes:
        began: When, in seconds since 1970.
        device: Where.
        cells: The cells by key.
        is_alive: Whether the process that wrote it still runs.
    """

    began: float
    device: str
    cells: dict[str, Planned]
    is_alive: bool


def journals(out: str | Path) -> list[Entry]:
    """Return the journals of a run, those of processes that are gone among them.

    Example:
        >>> journals("no/such/run")
        []
    """
    return [
        Entry(
            content["host"],
            content["pid"],
            _is_alive(path, content["updated"]),
            content["updated"],
            content["workers"],
        )
        for path, content in _read(out, NEWS)
    ]


def plans(out: str | Path) -> list[Plan]:
    """Return what is to be run, as each process that was started by hand has written it.

    Example:
        >>> plans("no/such/run")
        []
    """
    return [
        Plan(
            content["began"],
            content["device"],
            {key: Planned(name, (*kind,), work) for key, name, *kind, work in content["cells"]},
            _is_alive(path, path.stat().st_mtime),
        )
        for path, content in _read(out, PLAN)
    ]


def _read(out: str | Path, kind: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted((Path(out) / FOLDER).glob(f"*{kind}")):
        with suppress(OSError, ValueError):  # it has just been removed
            stat = path.stat()
            content = _parsed(path, stat.st_mtime_ns, stat.st_size)
            if content.get("format") == FORMAT:
                yield path, content


@lru_cache(maxsize=64)
def _parsed(path: Path, mtime: int, size: int) -> dict[str, Any]:
    """Read a file once for every time that it is written: a plan is large."""
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


def _is_alive(path: Path, updated: float) -> bool:
    """Say whether the process is there that has written a file: it holds a lock beside it."""
    lock = path.with_name(path.name.partition(".")[0] + LOCK)
    try:
        return lock.exists() and not is_abandoned(lock)
    except OSError:  # locks cannot be looked at here
        return time.time() - updated < _FRESH_S


def sweep(folder: Path) -> None:
    """Remove the journals of processes that are gone, and the folder if it is empty then.

    Example:
        >>> sweep(Path("no/such/folder"))
    """
    with suppress(OSError):
        for path in list(folder.glob(f"*{LOCK}")):
            with try_lock(path):  # takes the file away, if nobody holds it
                pass
        held = {path.name.removesuffix(LOCK) for path in folder.glob(f"*{LOCK}")}
        for path in list(folder.glob("*.json")):
            if path.name.partition(".")[0] not in held:
                path.unlink(missing_ok=True)
        folder.rmdir()
