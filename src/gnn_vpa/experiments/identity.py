"""Which data set is which: by its content, whatever it is called and wherever it comes from."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import GnnVpaError
from ..graphs import AbsentError, GraphSet, load
from ..paper import archive_content, archive_names, archive_with, paper_name
from .cell import Cell

_SHORTEST = 4  # digits of a content's SHA-256 that are shown
_LONGEST = 64


@dataclass(frozen=True)
class Identified:
    """Cells whose data are known.

    Attributes:
        cells: Each once, its data set called as in the results (`labels`).
        data: The data sets that are here, by content.
        names: What they are called by themselves, by content.
        absent: Benchmark data sets that are not here, by content: what loading them raised.
        notes: In words, which of them are called otherwise than they were asked for.

    Example:
        >>> Identified([], {}, {}, {}, []).cells
        []
    """

    cells: list[Cell]
    data: dict[str, GraphSet]
    names: dict[str, str]
    absent: dict[str, AbsentError]
    notes: list[str]


def identify(
    cells: Sequence[Cell],
    data_dir: str | Path | None = None,
    known: Mapping[str, str] | None = None,
) -> Identified:
    """Load the data of cells, and say of each cell which content it belongs to.

    A benchmark data set that is not on this machine is known all the same: its content is that of
    the archive that everybody gets.

    Args:
        cells: From `expand` or `preset`.
        data_dir: A folder to look for data in first.
        known: Names by content of data sets that the cells' are to be told apart from.

    Raises:
        GnnVpaError: Data cannot be loaded, or are not those that a cell was identified with.

    Example:
        >>> from gnn_vpa.training import Task
        >>> (cell,) = identify([Cell("MUTAG", Task("gin", "vpa"))]).cells
        >>> cell.content[:8], cell.dataset
        ('5b996644', 'MUTAG')
    """
    data: dict[str, GraphSet] = {}
    absent: dict[str, AbsentError] = {}
    names = dict(known or {})
    contents: dict[str | GraphSet, str] = {}
    for cell in cells:
        source = cell.source or cell.dataset
        if source not in contents:
            contents[source] = _load(source, data_dir, data, absent)
        content = contents[source]
        if cell.content not in ("", content):
            raise GnnVpaError(
                f"{cell.dataset} is not what it was when the run began: start the run again"
            )
        names[content] = min(cell.dataset, names.get(content, cell.dataset))
    called = labels(names)
    found, notes = [], []
    for cell in cells:
        source = cell.source or cell.dataset
        content = contents[source]
        if called[content] != cell.dataset:
            shown = source if isinstance(source, str) else source.name
            notes.append(f"{shown} is called {called[content]} in the results, after its content.")
        if isinstance(source, str) and ":" in source and content in data:
            source = data[content]  # what a function returns is asked for once
        found.append(replace(cell, dataset=called[content], source=source, content=content))
    used = set(contents.values())
    return Identified(
        list(dict.fromkeys(found)),
        data,
        {content: name for content, name in names.items() if content in used},
        {content: error for content, error in absent.items() if content not in data},
        list(dict.fromkeys(notes)),
    )


def labels(names: Mapping[str, str]) -> dict[str, str]:
    """Return what data sets are called beside each other: a name of its own for each content.

    That is its name. Where several have the same one, or it is that of a benchmark data set and
    this is another, the content's first digits follow it. The order does not matter.

    Args:
        names: What each data set is called by itself, by content.

    Example:
        >>> labels({"3f2a77": "X", "9c1b00": "Y"})
        {'3f2a77': 'X', '9c1b00': 'Y'}
        >>> labels({"3f2a77": "X", "9c1b00": "X", "00aa11": "MUTAG"})
        {'3f2a77': 'X@3f2a', '9c1b00': 'X@9c1b', '00aa11': 'MUTAG@00aa'}
    """
    names = {content: _benchmark(content) or name for content, name in names.items()}
    shared = Counter(names.values())
    reserved = {_benchmark(archive_content(archive) or "") for archive in archive_names()}

    def label(content: str, digits: int) -> str:
        name = names[content]
        is_alone = shared[name] == 1 and name not in reserved
        return name if _benchmark(content) or is_alone else f"{name}@{content[:digits]}"

    for digits in range(_SHORTEST, _LONGEST + 1):
        called = {content: label(content, digits) for content in names}
        if _are_distinct(called.values()):
            return called
    raise GnnVpaError(f"data sets cannot be told apart by name: {', '.join(called.values())}")


def _load(
    source: str | GraphSet,
    data_dir: str | Path | None,
    data: dict[str, GraphSet],
    absent: dict[str, AbsentError],
) -> str:
    """Load a data set into `data`, or note that it is absent, and return its content."""
    try:
        graphs = load(source, data_dir)
    except AbsentError as error:
        content = archive_content(error.archive)
        if content is None:
            raise
        absent[content] = error
        return content
    content = graphs.checksum()
    archive = archive_with(content)
    if archive is not None and archive != graphs.name:  # a benchmark by another name
        graphs = replace(graphs, name=archive)
    data.setdefault(content, graphs)
    return content


def _benchmark(content: str) -> str | None:
    """Return what a benchmark data set is called in the results; None where it is none."""
    archive = archive_with(content)
    return None if archive is None else paper_name(archive) or archive


def _are_distinct(names: Iterable[str]) -> bool:
    listed = list(names)
    return len(set(listed)) == len(listed)
