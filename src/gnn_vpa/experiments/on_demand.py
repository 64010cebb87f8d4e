"""Data of cells that another process has identified, each loaded when it is needed first."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..graphs import GraphSet
from .cell import Cell
from .identity import identify


class OnDemand(Mapping[str, GraphSet]):
    """The data sets of identified cells, by content.

    Args:
        cells: From `identify`.
        data_dir: A folder to look for data in first.

    Raises:
        GnnVpaError: When a data set is asked for: it cannot be loaded, or is not what it was when
            the cells were identified.

    Example:
        >>> from gnn_vpa.training import Task
        >>> cells = identify([Cell("MUTAG", Task("gin", "vpa"))]).cells
        >>> OnDemand(cells)[cells[0].content].num_graphs
        188
    """

    def __init__(self, cells: Iterable[Cell], data_dir: str | Path | None = None) -> None:
        self._cells: dict[str, Cell] = {}
        for cell in cells:
            self._cells.setdefault(cell.content, cell)
        self._data_dir = data_dir
        self._loaded: dict[str, GraphSet] = {}

    def __getitem__(self, content: str) -> GraphSet:
        if content not in self._loaded:
            found = identify([self._cells[content]], self._data_dir)
            if content in found.absent:
                raise found.absent[content]
            self._loaded[content] = found.data[content]
        return self._loaded[content]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)
