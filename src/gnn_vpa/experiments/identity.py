"""Which data set is which: by its content, whatever it is called and wherever it comes from."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import GnnVpaError, UsageError
from ..graphs import AbsentError, Division, GraphSet, kind_of, load
from ..paper import archive_content, archive_names, archive_with, paper_name
from ..training import Protocol, default_metric, metric_for
from .cell import Cell, Target

_Asked = tuple[str | GraphSet, Target]

_AT_ONCE = 4  # archives that are read beside each other: most of that does without Python's lock
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
    contents: dict[_Asked, str] = {}
    divisions: dict[tuple[Division, str], Division] = {}
    loadings = _load_all(map(_asked, cells), data_dir)
    for cell in cells:
        asked = _asked(cell)
        if asked not in contents:
            contents[asked] = _add(asked, loadings, data, absent)
        content = contents[asked]
        if (cell.division, content) not in divisions:
            divisions[cell.division, content] = _divide(cell, content, data, absent)
        if cell.content not in ("", content):
            raise GnnVpaError(
                f"{cell.dataset} is not what it was when the run began: start the run again"
            )
        names[content] = min(cell.dataset, names.get(content, cell.dataset))
    called = labels(names)
    found, notes = [], []
    for cell in cells:
        source, target = asked = _asked(cell)
        content = contents[asked]
        if called[content] != cell.dataset:
            shown = source if isinstance(source, str) else source.name
            notes.append(f"{shown} is called {called[content]} in the results, after its content.")
        if isinstance(source, str) and ":" in source and content in data:
            source, target = data[content], Target()  # what a function returns is asked for once
        division = divisions[cell.division, content]
        cell = replace(
            cell,
            dataset=called[content],
            source=source,
            content=content,
            target=target,
            division=division,
            folds=division.folds or cell.folds,
        )
        # What cannot be learned from data that are not here is said when they are.
        found.append(_judged(cell, data[content]) if content in data else cell)
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


def _asked(cell: Cell) -> _Asked:
    return cell.source or cell.dataset, cell.target


def _divide(
    cell: Cell, content: str, data: Mapping[str, GraphSet], absent: Mapping[str, AbsentError]
) -> Division:
    """Return the division of a cell's data."""
    if content in data:
        return cell.division.of(data[content])
    if cell.division != Division():
        raise absent[content]
    return cell.division


def _judged(cell: Cell, graphs: GraphSet) -> Cell:
    """Return a cell with the metric that it is judged by.

    What is the usual choice for such targets is written as such, whether or not it was asked for,
    so that the same numbers have the same key.
    """
    kind = kind_of(graphs.y)
    asked = cell.metric if cell.protocol is None else cell.protocol.metric
    try:
        metric = metric_for(asked, kind)
    except UsageError as error:
        raise UsageError(f"{cell.dataset}: {error}") from None
    return replace(cell, metric=metric.name, **_with_usual_metric(cell, default_metric(kind).name))


def _with_usual_metric(cell: Cell, usual: str) -> dict[str, Any]:
    def plain(protocol: Protocol) -> Protocol:
        return replace(protocol, metric="auto") if protocol.metric == usual else protocol

    if cell.protocol is None:
        return {}
    changed: dict[str, Any] = {"protocol": plain(cell.protocol)}
    if (selection := cell.selection) is not None:
        settings = tuple(s._replace(protocol=plain(s.protocol)) for s in selection.settings)
        changed["selection"] = replace(selection, settings=tuple(dict.fromkeys(settings)))
    return changed


_Loading = Callable[[], GraphSet]


def _load_all(asked: Iterable[_Asked], data_dir: str | Path | None) -> dict[_Asked, _Loading]:
    """Read archives beside each other, and return how each data set is had, or its error raised."""

    def loading(source: str | GraphSet, target: Target) -> _Loading:
        return lambda: load(source, data_dir, target.column, target.kind)

    loadings = {each: loading(*each) for each in asked}
    # What a user's function does, and may not do beside another, we do not know.
    archives = [each for each in loadings if isinstance(each[0], str) and ":" not in each[0]]
    if len(archives) > 1:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            begun = {each: pool.submit(loadings[each]) for each in archives}
        loadings |= {each: future.result for each, future in begun.items()}
    return loadings


def _add(
    asked: _Asked,
    loadings: Mapping[_Asked, _Loading],
    data: dict[str, GraphSet],
    absent: dict[str, AbsentError],
) -> str:
    """Put a data set into `data`, or note that it is absent, and return its content."""
    _, target = asked
    try:
        graphs = loadings[asked]()
    except AbsentError as error:
        content = archive_content(error.archive)
        if content is None or target != Target():
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
