"""Which cells are trained in one go: on a GPU those that can share every step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..graphs import GraphSet, splits
from ..training import Lane, Protocol, Task
from ..training.lanes import families
from .cell import Cell

_FEW = 10  # numbers that are shown one by one


@dataclass(frozen=True)
class Group:
    """Cells that are trained in one go: tasks of one family, each with the same seeds.

    Attributes:
        cells: Task after task, and of each task seed after seed.

    Example:
        >>> cells = [Cell("NCI1", Task("gin", aggr)) for aggr in ("sum", "mean", "vpa")]
        >>> str(Group(tuple(cells)))
        'GIN sum, mean, vpa on NCI1'
    """

    cells: tuple[Cell, ...]

    def __str__(self) -> str:
        first = self.cells[0]
        if len(self.cells) == 1:
            return str(first)
        aggrs = ", ".join(task.aggr for task in self.tasks)
        seeds = ", ".join(map(str, shortened(self.seeds)))
        which = "" if self.seeds == [0] else f", seed{'s' if len(self.seeds) > 1 else ''} {seeds}"
        return f"{first.task.model.upper()}{first.settings} {aggrs} on {first.data}{which}"

    @property
    def key(self) -> str:
        """A name for what is kept of a group while it is trained: that of its first cell."""
        return self.cells[0].key

    @property
    def content(self) -> str:
        """What all of them are trained on: the data by their content."""
        return self.cells[0].content

    @property
    def protocol(self) -> Protocol | None:
        """How; None for a baseline, which stands alone."""
        return self.cells[0].protocol

    @property
    def tasks(self) -> list[Task]:
        """The methods."""
        return list(dict.fromkeys(cell.task for cell in self.cells))

    @property
    def seeds(self) -> list[int]:
        """The seeds of each method."""
        return list(dict.fromkeys(cell.seed for cell in self.cells))

    def lanes(self, graphs: GraphSet) -> list[Lane]:
        """Return the trainings of each task: all folds of each seed.

        Example:
            >>> from gnn_vpa.graphs import load
            >>> group = Group((Cell("MUTAG", Task("gin", "vpa"), folds=5),))
            >>> len(group.lanes(load("MUTAG")))
            5
        """
        parts = splits(graphs.y, self.cells[0].folds)
        return [Lane(n, split, seed) for seed in self.seeds for n, split in enumerate(parts)]


def grouped(cells: Iterable[Cell], device: str) -> list[Group]:
    """Divide cells into groups, in the order of appearance: on the CPU each stands alone.

    Example:
        >>> cells = [Cell("NCI1", Task("gin", aggr)) for aggr in ("sum", "max", "vpa")]
        >>> [str(group) for group in grouped(cells, "cuda")]
        ['GIN sum, vpa on NCI1', 'GIN+max on NCI1']
        >>> len(grouped(cells, "cpu"))
        3
    """
    if not shares_steps(device):
        return [Group((cell,)) for cell in cells]
    by_method: dict[Cell, dict[int, Cell]] = {}
    for cell in cells:
        by_method.setdefault(replace(cell, seed=0), {})[cell.seed] = cell
    alike: dict[object, dict[Task, list[Cell]]] = {}
    for method, of_seed in by_method.items():
        kind = method.dataset, method.content, method.protocol, method.folds, tuple(of_seed)
        alike.setdefault(kind, {})[method.task] = list(of_seed.values())
    return [
        Group(tuple(cell for task in family for cell in rows[task]))
        for rows in alike.values()
        for family in families(rows)
    ]


def shortened(numbers: Sequence[int]) -> list[int] | list[str]:
    """Write many numbers as ranges, for people; a few stay as they are.

    Example:
        >>> shortened([0, 1, 2]), shortened([*range(500), 900])
        ([0, 1, 2], ['0 to 499', '900'])
    """
    if len(numbers) <= _FEW:
        return list(numbers)
    ordered = sorted(set(numbers))
    starts = [n for n, last in zip(ordered, [None, *ordered], strict=False) if last != n - 1]
    ends = [
        n for n, following in zip(ordered, [*ordered[1:], None], strict=True) if following != n + 1
    ]
    return [
        f"{first} to {last}" if last > first else str(first)
        for first, last in zip(starts, ends, strict=True)
    ]


def shares_steps(device: str) -> bool:
    """Say whether several cells share a step there; on the CPU a cache holds few lanes.

    Example:
        >>> shares_steps("cuda:1"), shares_steps("cpu")
        (True, False)
    """
    return device.partition(":")[0] == "cuda"
