"""What a run records beside its folds, so that nobody needs the data for it later."""

from collections.abc import Iterable, Mapping

from ..errors import GnnVpaError
from ..graphs import GraphSet, ceiling, kind_of
from ..graphs.targets import known as known_targets
from ..training import Task
from .cell import Cell
from .progress import Progress
from .signals import initial_signals
from .store import Store

_ROUNDS = 5  # of message passing that a ceiling is for: as many layers as our models have, or more


def add_signals(
    store: Store, cells: Iterable[Cell], data: Mapping[str, GraphSet], progress: Progress
) -> None:
    """Record the signal that each method starts with."""
    lacking = store.without_signals()
    methods: dict[tuple[str, Task], list[Cell]] = {}
    for cell in cells:
        is_trained = cell.protocol is not None and cell.selection is None
        if cell.key in lacking and is_trained and cell.content in data:
            methods.setdefault((cell.content, cell.task), []).append(cell)
    told: set[str] = set()
    for (content, task), of_method in methods.items():
        try:
            signals = initial_signals(data[content], task)
        except GnnVpaError as error:
            if not task.source:
                raise
            if task.model not in told:  # whatever its options are
                told.add(task.model)
                progress.note(f"{task.model}: its signal at the start is not recorded: {error}")
            continue
        store.add_signals(of_method, signals)


def add_ceilings(store: Store, cells: Iterable[Cell], data: Mapping[str, GraphSet]) -> None:
    """Record the best accuracy that any message-passing network can have on the data of cells."""
    known = store.ceilings()
    for content, kind in dict.fromkeys((cell.content, cell.task.features) for cell in cells):
        graphs = data.get(content)
        if graphs is None or (content, kind) in known or kind_of(graphs.y) != "classes":
            continue
        if bool(known_targets(graphs.y).all()):
            store.add_ceiling(content, kind, ceiling(graphs, kind, _ROUNDS)[-1])
