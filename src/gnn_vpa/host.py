"""What this machine lets a run use: cores and free memory, as a container limits both.

Linux says it in files. A container is a control group (cgroup), whose limits are files too, in
the first or second version of their form; a group's parents limit it as well. Elsewhere there are
no such files, and the memory is not known.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# Of all processes the kernel ends the one with the most memory; so many thousandths of the
# machine's memory are added to that of a process that offers itself.
_OFFER = 500


class Host(NamedTuple):
    """What a run may use.

    Attributes:
        cores: Number of cores, at least 1.
        memory: Free bytes; None where nobody says.

    Example:
        >>> Host.here().cores >= 1
        True
    """

    cores: int
    memory: int | None

    @classmethod
    def here(cls, root: Path = Path("/")) -> "Host":
        """Look at this machine.

        Args:
            root: Folder that holds `proc` and `sys`.
        """
        groups = list(_groups(root))
        quotas = [quota for group in groups if (quota := _quota(group)) is not None]
        free = [_available(root), *(_free(group) for group in groups)]
        known = [bytes_ for bytes_ in free if bytes_ is not None]
        return cls(max(1, min([_cores(), *map(int, quotas)])), min(known) if known else None)


def offer_to_be_killed() -> None:
    """Let the kernel end this process before the one that started it, where memory runs out.

    Example:
        >>> from inspect import signature
        >>> str(signature(offer_to_be_killed))
        '() -> None'
    """
    score = Path("/proc/self/oom_score_adj")
    with suppress(OSError):
        if int(score.read_text()) < _OFFER:
            score.write_text(str(_OFFER))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _available(root: Path) -> int | None:
    """Return the bytes that the kernel could give away without swapping."""
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _groups(root: Path) -> Iterator[Path]:
    """Yield the folders of the control groups that this process is in, and of their parents.

    Inside a container the names of groups may be those outside of it, where no such folder is:
    the container's own limits are then at the top.
    """
    top = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, name = line.split(":", 2)
        tops = [top / controllers, *(top / each for each in controllers.split(","))]
        for folder in dict.fromkeys(tops if controllers else [top, top / "unified"]):
            here = Path(name.lstrip("/"))
            yield from (folder / part for part in (here, *here.parents) if str(part) != ".")
            yield folder


def _quota(group: Path) -> float | None:
    """Return how many cores a group may keep busy; None where there is no limit."""
    if words := _words(group / "cpu.max"):
        return None if words[0] == "max" else int(words[0]) / int(words[1])
    quota, period = (_words(group / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
    return int(quota[0]) / int(period[0]) if quota and period and int(quota[0]) > 0 else None


def _free(group: Path) -> int | None:
    """Return how many bytes a group may still take; None where there is no limit."""
    for limit, usage, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most, used = _words(group / limit), _words(group / usage)
        if most and used and most[0] != "max":
            # Files that were read and are not in use any more are given up when memory is needed.
            kept = dict(line.split() for line in _lines(group / "memory.stat"))
            return max(0, int(most[0]) - int(used[0]) + int(kept.get(cache, 0)))
    return None


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
