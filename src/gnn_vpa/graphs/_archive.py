"""The files of a TU archive, whether zipped or unpacked."""

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import GnnVpaError, UsageError
from ._text import read_blocks

# What `zipfile` raises for an archive that cannot be read: the last for one that is encrypted, or
# compressed in a way that it does not know.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)


class Archive:
    """The files `<name>_<part>.txt` of one data set.

    Attributes:
        source: The zip or folder.
        name: The data set's name: what stands before `_A.txt`.
    """

    def __init__(self, source: Path) -> None:
        if not source.exists():
            raise UsageError(f"{source} does not exist: give a TU archive (zip) or its folder")
        self.source = source
        self._zip = None if source.is_dir() else _open_zip(source)
        files = _tree(source) if self._zip is None else self._zip.namelist()
        edges = [file for file in files if _is_edges(file)]
        if len(edges) != 1:
            found = f"{len(edges)} of them: {', '.join(sorted(edges))}" if edges else "none"
            raise UsageError(f"{source} must hold one file <NAME>_A.txt, but has {found}")
        self._prefix = edges[0].removesuffix("A.txt")
        self._files = set(files)
        self.name = self._prefix.rsplit("/")[-1].removesuffix("_")

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        if self._zip is not None:
            self._zip.close()

    def has(self, part: str) -> bool:
        """Whether there is a file of this part."""
        return f"{self._prefix}{part}.txt" in self._files

    def file(self, part: str) -> str:
        """What to call the file of a part in messages."""
        return f"{self.source}: {self.name}_{part}.txt"

    def blocks(
        self, part: str, dtype: type[int] | type[float] = int, columns: int | None = None
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the numbers of a part, see `read_blocks`."""
        if not self.has(part):
            raise GnnVpaError(f"{self.file(part)} is missing: get the archive again")
        with self._open(part) as stream:
            yield from read_blocks(stream, self.file(part), dtype, columns)

    def table(
        self, part: str, dtype: type[int] | type[float] = int, columns: int | None = None
    ) -> NDArray[Any]:
        """Return all numbers of a part as an array [lines, columns]."""
        blocks = [values for _, values in self.blocks(part, dtype, columns)]
        return np.concatenate(blocks) if blocks else np.empty((0, columns or 1), dtype)

    @contextmanager
    def _open(self, part: str) -> Iterator[IO[bytes]]:
        path = f"{self._prefix}{part}.txt"
        try:
            with self._zip.open(path) if self._zip else (self.source / path).open("rb") as stream:
                yield stream
        except (*ZIP_ERRORS, OSError) as error:
            raise GnnVpaError(
                f"{self.file(part)} cannot be read ({error or 'it ends early'}): "
                "get the archive again"
            ) from error


def has_archive(folder: Path) -> bool:
    """Whether a folder is an unpacked archive."""
    return any(_is_edges(file) for file in _tree(folder))


def _is_edges(file: str) -> bool:
    # A Mac puts a hidden twin of each file into the zips that it makes.
    return file.endswith("_A.txt") and not file.rsplit("/")[-1].startswith(".")


def _open_zip(source: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(source)
    except (*ZIP_ERRORS, OSError) as error:
        raise GnnVpaError(f"{source} is not a whole zip archive ({error}): get it again") from error


def _tree(folder: Path) -> list[str]:
    """List the text files in a folder, and in its `raw`, where PyG keeps them."""
    paths = [*folder.glob("*.txt"), *folder.glob("raw/*.txt")]
    return [path.relative_to(folder).as_posix() for path in paths]
