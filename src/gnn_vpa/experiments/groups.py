"""Which cells are trained in one go: on a GPU those that can share every step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..graphs import GraphSet
from ..training import Lane, Protocol, Task, family_of
from .cell import Cell

_FEW = 10  # numbers that are shown one by one


class Method(NamedTuple):
    """What is trained, and how; of a baseline there is no how.

    Example:
        >>> Method(Task("gin", "vpa"), Protocol()).task.aggr
        'vpa'
    """

    task: Task
    protocol: Protocol | None


@dataclass(frozen=True)
class Group:
    """Cells that are trained in one go: methods of one family, each with the same seeds.

    Attributes:
        cells: Method after method, and of each method seed after seed and repeat after repeat.

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
        aggrs = ", ".join(dict.fromkeys(task.aggr for task, _ in self.methods))
        settings = list(dict.fromkeys(cell.settings for cell in self.cells))
        which = settings[0] if len(settings) == 1 else f" ({len(settings)} settings)"
        aggrs = f" {aggrs}" if aggrs else ""
        runs = _numbered("seed", [seed for seed, _ in self.runs])
        runs += _numbered("repeat", [repeat for _, repeat in self.runs])
        return f"{first.model}{which}{aggrs} on {first.data}{runs}"

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
        """How the first is trained, all for as many epochs; None for a baseline, alone."""
        return self.cells[0].protocol

    @property
    def methods(self) -> list[Method]:
        """What is trained, and how."""
        return list(dict.fromkeys(Method(cell.task, cell.protocol) for cell in self.cells))

    @property
    def runs(self) -> list[tuple[int, int]]:
        """The seed and the repeat of each run of a method."""
        return list(dict.fromkeys((cell.seed, cell.repeat) for cell in self.cells))

    def lanes(self, graphs: GraphSet) -> list[Lane]:
        """Return the trainings of each method: all folds of each run.

        Example:
            >>> from gnn_vpa.graphs import load
            >>> group = Group((Cell("MUTAG", Task("gin", "vpa"), folds=5),))
            >>> len(group.lanes(load("MUTAG")))
            5
        """
        found: dict[int, list[Lane]] = {}
        for repeat in dict.fromkeys(repeat for _, repeat in self.runs):
            found[repeat] = lanes_of(replace(self.cells[0], repeat=repeat), graphs)
        return [lane._replace(seed=seed) for seed, repeat in self.runs for lane in found[repeat]]


def lanes_of(cell: Cell, graphs: GraphSet) -> list[Lane]:
    """Return the folds of a cell as lanes.

    A lane's random numbers depend on its fold's number, which counts through the repeats.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> cell = Cell("MUTAG", Task("gin", "vpa"), folds=5, repeat=2)
        >>> [lane.fold for lane in lanes_of(cell, load("MUTAG"))]
        [10, 11, 12, 13, 14]
    """
    first = first_fold(cell)
    parts = cell.division.splits(graphs.y, cell.folds, cell.repeat, graphs.classes)
    return [Lane(first + number, split, cell.seed) for number, split in enumerate(parts)]


def first_fold(cell: Cell) -> int:
    """Return the number of a cell's first fold among those of all repeats.

    Example:
        >>> first_fold(Cell("MUTAG", Task("gin", "vpa"), folds=5, repeat=2))
        10
    """
    return cell.folds * cell.repeat


def grouped(
    cells: Iterable[Cell], device: str, parts: Mapping[str, int] | None = None
) -> list[Group]:
    """Divide cells into groups, in the order of appearance: on the CPU each stands alone.

    Cells that have different numbers in ``parts``, by their keys, do not share a group.

    Example:
        >>> cells = [Cell("NCI1", Task("gin", aggr)) for aggr in ("sum", "max", "vpa")]
        >>> [str(group) for group in grouped(cells, "cuda")]
        ['GIN sum, vpa on NCI1', 'GIN+max on NCI1']
        >>> len(grouped(cells, "cpu"))
        3
        >>> rates = [Protocol(learning_rate=rate) for rate in (0.01, 0.001)]
        >>> tried = [replace(cells[0], protocol=protocol) for protocol in rates]
        >>> [str(group) for group in grouped(tried, "cuda")]
        ['GIN (2 settings) sum on NCI1']
    """
    if not shares_steps(device):
        return [Group((cell,)) for cell in cells]
    by_method: dict[tuple[Cell, int | None], dict[tuple[int, int], Cell]] = {}
    for cell in cells:
        part = parts.get(cell.key) if parts else None
        runs = by_method.setdefault((replace(cell, seed=0, repeat=0), part), {})
        runs[cell.seed, cell.repeat] = cell
    alike: dict[object, list[Cell]] = {}
    for (method, part), runs in by_method.items():
        kind: object = (
            *(method.content or method.dataset, method.folds, method.division, tuple(runs), part),
            family_of(method.task, method.protocol),
        )
        for cell in runs.values():
            # Where a setting is chosen in each fold, the folds are not alike: it stands alone.
            alike.setdefault(cell if cell.selection else kind, []).append(cell)
    return [Group(tuple(cells)) for cells in alike.values()]


def _numbered(what: str, numbers: Sequence[int]) -> str:
    """Name seeds or repeats, where they are not the first alone."""
    different = list(dict.fromkeys(numbers))
    if different == [0]:
        return ""
    return (
        f", {what}{'s' if len(different) > 1 else ''} {', '.join(map(str, shortened(different)))}"
    )


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
