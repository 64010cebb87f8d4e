"""What a result was made with."""

import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import gnn_vpa

from ..versions import versions

__all__ = ["Where", "commit", "device_name", "versions"]


def commit() -> str | None:
    """Return the commit of the package's sources, with a + where they were changed since.

    None where they are not under version control; the variable GNN_VPA_COMMIT can name it then.

    Example:
        >>> commit() is None or len(commit().rstrip("+")) == 40
        True
    """
    sources = Path(gnn_vpa.__file__).parent
    try:
        # An environment may lie within somebody else's repository: ask for our own file.
        _git(sources, "ls-files", "--error-unmatch", "__init__.py")
        changed = _git(sources, "status", "--porcelain", "--", ".")
        return _git(sources, "rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return os.environ.get("GNN_VPA_COMMIT") or None


class Where(NamedTuple):
    """A machine, and what it has that numbers may depend on.

    Attributes:
        host: What the machine is called.
        commit: Commit of the package's sources.
        versions: Of the libraries.

    Example:
        >>> Where.here().host == platform.node()
        True
    """

    host: str
    commit: str | None
    versions: Mapping[str, str]

    @classmethod
    def here(cls) -> "Where":
        """Look at this machine."""
        return cls(platform.node(), commit(), versions())


def device_name(device: str) -> str:
    """Return a device in words.

    Example:
        >>> device_name("cpu").startswith("cpu")
        True
    """
    import torch

    if device == "cpu":
        return f"cpu ({platform.machine()}, {torch.get_num_threads()} threads)"
    return f"{device} ({torch.cuda.get_device_name(device)})"


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=10,
    )
    return done.stdout.strip()
