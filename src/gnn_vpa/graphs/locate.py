"""Where data sets are found on this machine."""

import importlib.util
import os
from pathlib import Path

from ..errors import UsageError
from ._archive import has_archive
from .cache import cache_dir


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
    downloads, and last in the package grakel, which carries MUTAG. The first one found counts.

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
    if "MUTAG" not in found and (carried := _mutag_of_grakel()) is not None:
        found["MUTAG"] = carried
    return found


def _folders(data_dir: str | os.PathLike[str] | None) -> list[Path]:
    named = [Path(folder) for folder in (data_dir, os.environ.get("GNN_VPA_DATA")) if folder]
    for folder in named:
        if not folder.is_dir():
            raise UsageError(
                f"the data folder {folder} does not exist: check --data-dir and GNN_VPA_DATA"
            )
    return [*named, download_dir()] if download_dir().is_dir() else named


def _mutag_of_grakel() -> Path | None:
    # Found, not imported: grakel is heavy, and only its data are needed.
    spec = importlib.util.find_spec("grakel")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "tests" / "data" / "MUTAG"
    return folder if has_archive(folder) else None
