"""What a run records beside its folds, so that nobody needs the data for it later."""

from collections.abc import Mapping, Sequence

from ..errors import GnnVpaError
from ..graphs import FeatureKind, GraphSet, ceiling, kind_of
from ..graphs.targets import known as known_targets
from ..training import Task
from ..training.workers import one_thread
from .cell import Cell
from .progress import Progress
from .signals import Signal, initial_signals
from .store import Store

_ROUNDS = 5  # of message passing that a ceiling is for: as many layers as our models have, or more

_Method = tuple[str, Task]  # on the data of this content
_Features = tuple[str, FeatureKind]  # of the data of this content


class Afterwards:
    """The signal that each method starts with, and the best accuracy that there can be.

    A process that only watches others has the time to compute it meanwhile, a piece now and then;
    a method's signal is recorded beside its folds, when its cells are finished.

    Args:
        store: The results; data are registered.
        cells: Those of the run, finished or not.
        data: The data that are here, by content.
        progress: Told what cannot be had.
    """

    def __init__(
        self, store: Store, cells: Sequence[Cell], data: Mapping[str, GraphSet], progress: Progress
    ) -> None:
        self._store, self._data, self._progress = store, data, progress
        self._is_stuck = False
        self._told: set[str] = set()
        self._methods: dict[_Method, list[Cell]] = {}
        self._computed: dict[_Method, list[Signal]] = {}
        recorded = self._recorded()
        for cell in cells:
            is_trained = cell.protocol is not None and cell.selection is None
            if is_trained and cell.content in data and cell.key not in recorded:
                self._methods.setdefault((cell.content, cell.task), []).append(cell)
        asked = dict.fromkeys((cell.content, cell.task.features) for cell in cells)
        self._features: dict[_Features, None] = {each: None for each in asked if self._has(*each)}

    def advance(self) -> bool:
        """Do a piece, and say whether there was one.

        What fails does not end a run that is at work: it fails again, and is raised, in `complete`.
        """
        if self._is_stuck:
            return False
        try:
            return self._advance()
        except Exception:
            self._is_stuck = True
            return False

    def _advance(self) -> bool:
        if self._features:
            self._add_ceiling(next(iter(self._features)))
            return True
        lacking = self._store.without_signals() if self._computed else set()
        for method in self._computed:
            if all(cell.key in lacking for cell in self._methods[method]):
                self._add_signals(method, self._methods[method])
                return True
        if len(self._computed) < len(self._methods):
            recorded = self._recorded()  # by another process
            for method, cells in self._methods.items():
                if method not in self._computed and any(cell.key not in recorded for cell in cells):
                    self._compute(method)
                    return True
        return False

    def complete(self) -> None:
        """Do the rest: cells that will be finished are."""
        lacking = self._store.without_signals()
        for method, cells in list(self._methods.items()):
            if of_method := [cell for cell in cells if cell.key in lacking]:
                self._add_signals(method, of_method)
        for features in list(self._features):
            self._add_ceiling(features)

    def _recorded(self) -> set[str]:
        return self._store.finished() - self._store.without_signals()

    def _add_signals(self, method: _Method, cells: Sequence[Cell]) -> None:
        if method not in self._computed:
            self._compute(method)
        self._store.add_signals(cells, self._computed[method])
        del self._methods[method], self._computed[method]

    def _compute(self, method: _Method) -> None:
        content, task = method
        signals: list[Signal] = []
        try:
            with one_thread():  # others are at work; and numbers do not depend on the cores then
                signals = initial_signals(self._data[content], task)
        except GnnVpaError as error:
            if not task.source:
                raise
            if task.model not in self._told:  # whatever its options are
                self._told.add(task.model)
                self._progress.note(
                    f"{task.model}: its signal at the start is not recorded: {error}"
                )
        self._computed[method] = signals

    def _has(self, content: str, kind: FeatureKind) -> bool:
        """Say whether there is a best accuracy to be had."""
        graphs = self._data.get(content)
        return (
            graphs is not None
            and kind_of(graphs.y) == "classes"
            and bool(known_targets(graphs.y).all())
        )

    def _add_ceiling(self, features: _Features) -> None:
        content, kind = features
        if features not in self._store.ceilings():  # other processes record them too
            best = ceiling(self._data[content], kind, _ROUNDS)[-1]
            self._store.add_ceiling(content, kind, best)
        del self._features[features]
