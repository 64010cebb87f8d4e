"""The files of a TU archive, whether zipped or unpacked."""

import difflib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import GnnVpaError, UsageError
from ._text import read_blocks
from ._zip import check_text_size, explained, open_zip

PARTS = (
    "A",
    "graph_indicator",
    "graph_labels",
    "node_labels",
    "node_attributes",
    "edge_labels",
    "edge_attributes",
    "graph_attributes",
)
"""The files `<NAME>_<part>.txt` of the TU layout; the last holds targets that are no classes."""

_ALIKE = 0.8  # of 1: a name like this is a known one with a slip in it
_log = logging.getLogger("gnn_vpa")


class Archive:
    """The files `<name>_<part>.txt` of one data set.

    Attributes:
        source: The zip or folder.
        name: The data set's name: what stands before `_A.txt`.
    """

    def __init__(self, source: Path) -> None:
        check_source(source)
        self.source = source
        self._zip = None if source.is_dir() else open_zip(source)
        try:
            files = list_files(source) if self._zip is None else self._zip.namelist()
            edges = [file for file in files if _is_edges(file)]
            if len(edges) != 1:
                found = f"{len(edges)} of them: {', '.join(sorted(edges))}" if edges else "none"
                raise UsageError(f"{source} must hold one file <NAME>_A.txt, but has {found}")
            self._prefix = edges[0].removesuffix("A.txt")
            self.name = _base(self._prefix).removesuffix("_")
            self._files = {part: f"{self._prefix}{part}.txt" for part in PARTS}
            self._files = {part: file for part, file in self._files.items() if file in files}
            for file in sorted(set(files) - set(self._files.values())):
                self._check_other(file)
            if self._zip is None:
                self._check_folder()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        if self._zip is not None:
            self._zip.close()

    def has(self, part: str) -> bool:
        """Whether there is a file of this part."""
        return part in self._files

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
        path = self._files[part]
        with (
            explained(f"{self.file(part)} cannot be read"),
            self._zip.open(path) if self._zip else (self.source / path).open("rb") as stream,
        ):
            yield stream

    def _check_folder(self) -> None:
        paths = [self.source / file for file in self._files.values()]
        for path in paths:
            if not path.is_file():
                raise UsageError(f"{path} is no regular file: put the file itself there")
        check_text_size(sum(path.stat().st_size for path in paths), self.source)

    def _check_other(self, file: str) -> None:
        """Refuse a file that is one of the layout's but for a slip in its name."""
        base = _base(file)
        if base.startswith(".") or "readme" in base.casefold():
            return
        absent = [part for part in PARTS if part not in self._files]
        mine = base.startswith(f"{self.name}_")
        part = base.removeprefix(f"{self.name}_").removesuffix(".txt")
        meant = [part for part in absent if base.endswith(f"_{part}.txt")]
        if mine:
            meant += difflib.get_close_matches(part.casefold(), absent, n=1, cutoff=_ALIKE)
        if meant:
            raise GnnVpaError(
                f"{self.source}: {file} would be left out: call it {self._prefix}{meant[0]}.txt "
                "if it is that, or remove it"
            )
        if mine:
            _log.warning("%s: %s is not read: the TU layout has no such file", self.source, file)


def check_source(source: Path) -> None:
    """Refuse what is neither a file nor a folder: a pipe blocks, and a device never ends."""
    if not source.exists():
        raise UsageError(f"{source} does not exist: give a TU archive (zip) or its folder")
    if not source.is_file() and not source.is_dir():
        raise UsageError(
            f"{source} is neither a file nor a folder: give a TU archive (zip) or its folder"
        )


def has_archive(folder: Path) -> bool:
    """Whether a folder is an unpacked archive."""
    return any(_is_edges(file) for file in list_files(folder))


def list_files(folder: Path) -> list[str]:
    """List what is in a folder, and in its `raw`, where PyG keeps the files."""
    paths = [*folder.glob("*"), *folder.glob("raw/*")]
    return [path.relative_to(folder).as_posix() for path in paths if not path.is_dir()]


def _base(file: str) -> str:
    return re.split(r"[/\\]", file)[-1]


def _is_edges(file: str) -> bool:
    # A Mac puts a hidden twin of each file into the zips that it makes.
    return file.endswith("_A.txt") and not _base(file).startswith(".")
