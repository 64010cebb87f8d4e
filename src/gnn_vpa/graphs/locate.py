"""Where data sets are found on this machine."""

import os
from pathlib import Path

from ..errors import UsageError
from ._archive import has_archive
from .cache import cache_dir

_CARRIED = Path(__file__).parent / "data"  # part of the package: MUTAG, for the demo


def download_dir() -> Path:
    """Return the folder that downloaded archives are kept in.

    Example:
        >>> download_dir().name
        'tu'
    """
    return cache_dir() / "tu"


def find_archives(data_dir: str | os.PathLike[str] | None = None) -> dict[str, Path]:
    """Return the archives that are there, by name.

    Looked for in `data_dir`, then in the folder that `GNN_VPA_DATA` names, then among the
    downloads, and last in the package itself, which carries MUTAG. The first one found counts.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Path(folder, "ENZYMES.zip").touch()
        ...     find_archives(folder)["ENZYMES"].name
        'ENZYMES.zip'
    """
    found: dict[str, Path] = {}
    for folder in _folders(data_dir):
        for path in sorted(folder.iterdir()):
            if path.suffix == ".zip":
                found.setdefault(path.stem, path)
            elif path.is_dir() and has_archive(path):
                found.setdefault(path.name, path)
    return found


def _folders(data_dir: str | os.PathLike[str] | None) -> list[Path]:
    named = [Path(folder) for folder in (data_dir, os.environ.get("GNN_VPA_DATA")) if folder]
    for folder in named:
        if not folder.is_dir():
            raise UsageError(
                f"the data folder {folder} does not exist: check --data-dir and GNN_VPA_DATA"
            )
    return [*named, *(folder for folder in (download_dir(), _CARRIED) if folder.is_dir())]
