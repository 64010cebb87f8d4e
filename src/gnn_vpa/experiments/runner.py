"""Running a grid: each cell once, whatever happens in between."""

import re
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import UsageError
from ..graphs import GraphSet, features
from ..host import Host
from ..training import own
from ..training.checks import check_targets
from ..training.workers import Killed
from .afterwards import add_ceilings, add_signals
from .baselines import obstacle
from .cell import Cell
from .finals import choices
from .groups import Group, first_fold, grouped, lanes_of
from .identity import Identified, identify
from .journal import FOLDER as LIVE
from .journal import Journal, sweep
from .kept import is_kept, kept_keys
from .locks import check_locks, check_still_mine, is_abandoned, release_abandoned, try_lock
from .memory import DataSize, memory_of_process, reason
from .progress import Progress, Several
from .provenance import device_name
from .remarks import remarks
from .rescue import Rescue
from .store import Store, dataset_names
from .train_group import CHECKPOINTS, GroupTrainer
from .workers import Assistants, Order, Team, asked, single_thread

_POLL_S = 0.5


def run_grid(
    cells: Sequence[Cell],
    out: str | Path,
    *,
    data_dir: str | Path | None = None,
    device: str = "auto",
    configuration: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    workers: int | Team | None = None,
    keep_models: bool = False,
) -> None:
    """Run all cells that `out` has no results of yet, and record each when it is finished.

    A run that was ended, in whatever way, goes on where it was when it is started again. Several
    processes may run the same cells into the same folder: each cell is run by one of them, and all
    return when all cells are finished. On a GPU, cells that can share every step run at once.

    Args:
        cells: What to run, from `expand` or `preset`.
        out: Folder of the run.
        data_dir: A folder to look for data in first.
        device: `auto` (CUDA where it is there), `cpu`, `cuda`, or one of several, `cuda:1`.
        configuration: What was asked for, to be kept with the results.
        progress: Told of each step.
        workers: Number of processes, each with one thread, or how they share the work. By default
            one for each core on the CPU: each runs cells of its own, and where there are fewer
            cells than cores, several divide the folds of one. On a GPU there is one in all.
        keep_models: Whether to write the chosen weights of each fold into the folder `models`.

    Raises:
        GnnVpaError: The data are not there or not fit for the folds (before anything is
            trained), or the results cannot be written; what is finished is kept.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.experiments import expand, read_folds
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run_grid(expand(["MUTAG"], [], baselines=["majority"]).cells, folder)
        ...     len(read_folds(folder))
        10
    """
    progress = progress or Progress()
    device = resolve_device(device)
    checkpoints = Path(out) / CHECKPOINTS
    with Store(out) as store, ExitStack() as stack:
        finished = store.finished()
        _tidy(checkpoints, finished)  # after processes that ended before they could
        release_abandoned(checkpoints)
        sweep(Path(out) / LIVE)
        found = identify(cells, data_dir, dataset_names(out))
        for note in found.notes:
            progress.note(note)
        cells, data = found.cells, found.data
        pending = [cell for cell in cells if cell.key not in finished]
        keep = kept_keys(cells) if keep_models else frozenset()
        if lacking := [key for key in keep & finished if not is_kept(Path(out), key)]:
            progress.note(
                f"{len(lacking)} cell(s) were finished before, without models: for theirs run into "
                "a new folder."
            )
        for cell in pending:
            if cell.content in found.absent:
                raise found.absent[cell.content]
        _check(pending, data)
        for text in remarks(pending, data):
            progress.note(text)
        pending = [cell for cell in pending if _is_possible(cell, data[cell.content], progress)]
        _register(store, found)
        if pending:
            check_locks(Path(out) / LIVE)
            journal = stack.enter_context(Journal(out, device))
            progress = Several(progress, journal)
        progress.plan(pending, finished=sum(cell.key in finished for cell in cells))
        if pending:
            session = store.begin(device_name(device), configuration or {})
            for stage in _stages(pending):
                team = (
                    workers
                    if isinstance(workers, Team)
                    else _team(stage, data, device, workers, progress)
                )
                order = Order(stage, Path(out), data_dir, device, team.folds, keep=keep)
                worker = _Worker(store, session, data, progress, order, Rescue(order, progress))
                try:
                    with single_thread(device), Assistants(team, order):
                        worker.run()
                finally:
                    release_abandoned(checkpoints)
            store.end(session)
        add_signals(store, cells, data, progress)
        add_ceilings(store, cells, data)
    with suppress(OSError):  # there is none, or another process still uses it
        checkpoints.rmdir()


def _stages(pending: Sequence[Cell]) -> list[list[Cell]]:
    """Divide cells into those that stand by themselves and those that choose between these."""
    tried = [cell for cell in pending if cell.selection is None]
    choosing = [cell for cell in pending if cell.selection is not None]
    return [stage for stage in (tried, choosing) if stage]


def assist(order: Order, progress: Progress) -> None:
    """Run cells beside the process that `run_grid` was called in, as it asks for."""
    with Store(order.out) as store:
        finished = store.finished()
        found = identify(order.cells, order.data_dir, dataset_names(order.out))
        pending = [cell for cell in found.cells if cell.key not in finished]
        if pending:
            _register(store, found)
            session = store.begin(device_name(order.device), {})
            mine = replace(order, cells=pending)
            with single_thread(order.device), Journal(order.out, order.device) as journal:
                told = Several(progress, journal)
                _Worker(store, session, found.data, told, mine).run()
            store.end(session)


def _register(store: Store, found: Identified) -> None:
    for content, graphs in found.data.items():
        store.register(found.names[content], graphs)


def _team(
    pending: Sequence[Cell],
    data: Mapping[str, GraphSet],
    device: str,
    workers: int | None,
    progress: Progress,
) -> Team:
    """Choose the number of processes, and say why where nobody has asked for one."""
    for model in dict.fromkeys(cell.task.model for cell in pending if cell.task.source):
        if (why := own.elsewhere(model)) is not None:
            if device == "cpu":
                progress.note(f"1 process: {model} cannot be shared with others, {why}")
            return Team(1)
    if device != "cpu" or workers or asked():
        return Team.of(device, len(pending), workers)
    sizes = {content: DataSize.of(graphs) for content, graphs in data.items()}
    host, need = Host.here(), memory_of_process(pending, sizes)
    team = Team.of(device, len(pending), host=host, need=need)
    progress.note(reason(team, host, need))
    return team


@dataclass
class _Worker:
    """One process at work on cells, beside others perhaps."""

    store: Store
    session: int
    data: Mapping[str, GraphSet]
    progress: Progress
    order: Order
    rescue: Rescue | None = None  # of cells whose process was killed; None: not done here
    finished: set[str] = field(default_factory=set)  # keys of cells, as far as known here
    latest: int = 0  # number of the last cell that is known to be finished

    def __post_init__(self) -> None:
        # By key: cells of which the progress has not been told yet.
        self.unreported = {cell.key: cell for cell in self.order.cells}
        self.checkpoints = self.order.out / CHECKPOINTS
        self.train = GroupTrainer(
            self.order.out, self.order.device, self.progress, self.order.folds, self.order.keep
        )

    def run(self) -> None:
        """Run each cell that no other process runs, until all are finished."""
        pending: Sequence[Cell] = self.order.cells
        while pending:
            taken: list[Cell] = []
            abandoned: list[Cell] = []
            for group in grouped(pending, self.order.device):
                with ExitStack() as locks:
                    mine = [
                        cell for cell in group.cells if self._claim(cell, locks, taken, abandoned)
                    ]
                    # Without those that are taken the rest may be less alike.
                    for rest in grouped(mine, self.order.device):
                        self._try(rest)
                        self._look_around()
            self._look_around()
            if abandoned and not taken and self.rescue is not None:
                abandoned = self.rescue.run(abandoned)
                self._look_around()
            elif taken and len(taken) + len(abandoned) == len(pending):
                self.progress.wait(taken)
                time.sleep(_POLL_S)
            pending = taken if self.rescue is None else [*taken, *abandoned]
        if self.rescue is not None:
            self.rescue.check()

    def _claim(
        self, cell: Cell, locks: ExitStack, taken: list[Cell], abandoned: list[Cell]
    ) -> bool:
        """Return whether a cell is to be run here: it is not finished, nor taken by others."""
        if cell.key in self.finished:
            return False
        path = self.checkpoints / f"{cell.key}.lock"
        if not self.order.is_rescue and is_abandoned(path):
            if not self.store.is_finished(cell.key):
                abandoned.append(cell)
            return False
        if not locks.enter_context(try_lock(path)):
            taken.append(cell)
            return False
        return not self.store.is_finished(cell.key)

    def _look_around(self) -> None:
        """Take note of what is finished, and tell of what other processes have done."""
        for number, key in self.store.finished_since(self.latest):
            self.latest = number
            self.finished.add(key)
            if (cell := self.unreported.pop(key, None)) is not None:
                self.progress.elsewhere(cell)

    def _try(self, group: Group) -> None:
        """Run cells, and go on with the others where those that train their folds are killed."""
        try:
            self._run(group)
        except Killed as error:
            if self.rescue is None:
                raise  # the sender meets the same trouble
            self.progress.note(f"{group}: {error}")
            self.rescue.lost.append(group)

    def _run(self, group: Group) -> None:
        self.progress.start(group)
        started = time.perf_counter()
        first = group.cells[0]
        choice = None if first.selection is None else choices(first, self.store)
        results = self.train(group, self.data[group.content], choice)
        share = (time.perf_counter() - started) / len(group.cells)
        # Recorded are seconds of one process: other cells may have fewer to divide their folds.
        alone = share * (1 if group.protocol is None else self.order.folds)
        self.store.record(results, session=self.session, seconds=alone, device=self.order.device)
        for cell in group.cells:
            check_still_mine(self.checkpoints / f"{cell.key}.lock")
        _tidy(self.checkpoints, {cell.key for cell in group.cells})
        for cell, outcomes, *_ in results:
            del self.unreported[cell.key]
            for outcome in outcomes:
                if (epoch := outcome.diverged_epoch) is not None:
                    fold = outcome.fold - first_fold(cell)
                    self.progress.note(f"{cell}: fold {fold} diverged in epoch {epoch}")
            self.progress.finish(cell, outcomes, share)


def _tidy(checkpoints: Path, finished: Container[str]) -> None:
    """Remove what finished cells leave, also a lock whose owner was killed."""
    for path in checkpoints.glob("*"):
        if path.name.partition(".")[0] in finished:
            path.unlink(missing_ok=True)


def resolve_device(device: str) -> str:
    """Return the device to use: `auto` is CUDA where there is one, `cuda:1` the second GPU.

    Raises:
        UsageError: There is no such device.

    Example:
        >>> resolve_device("cpu")
        'cpu'
        >>> resolve_device("cpu:3")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: unknown device 'cpu:3': use auto, cpu, cuda, or one of ...
    """
    import torch

    if not re.fullmatch(r"auto|cpu|cuda(:[0-9]+)?", device):
        raise UsageError(
            f"unknown device {device!r}: use auto, cpu, cuda, or one of several GPUs like cuda:1"
        )
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "auto":
        return "cuda" if count else "cpu"
    if device != "cpu" and not count:
        raise UsageError(
            f"there is no device {device}: torch finds no CUDA device here; use --device cpu"
        )
    if (number := int(device.partition(":")[2] or 0)) >= count and device != "cpu":
        there = ", ".join(f"cuda:{n}" for n in range(count))
        raise UsageError(f"there is no device cuda:{number}: here is {there}")
    return device


def _check(cells: Iterable[Cell], data: Mapping[str, GraphSet]) -> None:
    """Find what is wrong with the data before hours are spent on the cells before it."""
    cells = list(cells)
    seen = {(cell.content, cell.task.features): cell for cell in cells}
    for cell in seen.values():
        with _about(cell):
            features(data[cell.content], cell.task.features)
    divided: dict[object, list[Cell]] = {}
    for cell in cells:
        division = (cell.content, cell.folds, cell.division, cell.repeat)
        divided.setdefault(division, []).append(cell)
    for cell, *others in divided.values():
        with _about(cell):
            lanes = lanes_of(cell, data[cell.content])
        protocols = {c.protocol: None for c in (cell, *others) if c.protocol is not None}
        check_targets(data[cell.content], protocols, lanes)
    for content, task in {(cell.content, cell.task): None for cell in cells if cell.task.source}:
        own.check(data[content], task)


@contextmanager
def _about(cell: Cell) -> Iterator[None]:
    """Name the data set in what is refused."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{cell.dataset}: {error}") from error


def _is_possible(cell: Cell, graphs: GraphSet, progress: Progress) -> bool:
    """Leave out a baseline that cannot be had for its data set, and say so."""
    if cell.protocol is None and (reason := obstacle(cell.task.model, graphs)) is not None:
        progress.note(f"{cell} is left out: {reason}")
        return False
    return True
