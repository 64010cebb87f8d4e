"""Running a grid: each cell once, whatever happens in between."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import GnnVpaError, UsageError
from ..graphs import GraphSet, features, splits
from ..training import Outcome, Task, fit
from ._workers import Team, assistants, single_thread
from .baselines import fit_baseline, obstacle
from .cell import Cell
from .claims import claim
from .groups import Group, grouped
from .identity import identify
from .progress import Progress
from .provenance import device_name
from .signals import initial_signals
from .store import Store, dataset_names

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
    checkpoints = Path(out) / "checkpoints"
    with Store(out) as store:
        finished = store.finished()
        found = identify(cells, data_dir, dataset_names(out))
        for note in found.notes:
            progress.note(note)
        cells, data = found.cells, found.data
        for cell in cells:
            if cell.key in finished:  # by a process that ended before it could tidy up
                _tidy(checkpoints, cell)
        pending = [cell for cell in cells if cell.key not in finished]
        for cell in pending:
            if cell.content in found.absent:
                raise found.absent[cell.content]
        _check(pending, data)
        pending = [cell for cell in pending if _is_possible(cell, data[cell.content], progress)]
        for content, graphs in data.items():
            store.register(found.names[content], graphs)
        progress.plan(pending, finished=sum(cell.key in finished for cell in cells))
        if pending:
            session = store.begin(device_name(device), configuration or {})
            if not isinstance(workers, Team):
                workers = Team.of(device, len(pending), workers)
            settings = (data, checkpoints, device, progress, workers.folds)
            worker = _Worker(store, session, *settings, {cell.key: cell for cell in pending})
            with single_thread(device), assistants(workers, pending, Path(out), data_dir, device):
                worker.run(pending)
            store.end(session)
        _add_signals(store, cells, data)
    with suppress(OSError):  # there is none, or another process still uses it
        checkpoints.rmdir()


@dataclass(frozen=True)
class _Worker:
    """One process at work on cells, beside others perhaps."""

    store: Store
    session: int
    data: Mapping[str, GraphSet]
    checkpoints: Path
    device: str
    progress: Progress
    processes: int  # that divide the folds of a cell, this one among them
    unreported: dict[str, Cell]  # by key: cells of which the progress has not been told yet

    def run(self, pending: Sequence[Cell]) -> None:
        """Run each cell that no other process runs, until all are finished."""
        while pending:
            taken: list[Cell] = []
            for group in grouped(pending, self.device):
                with ExitStack() as locks:
                    mine = [cell for cell in group.cells if self._claim(cell, locks, taken)]
                    # Without those that are taken the rest may be less alike.
                    for rest in grouped(mine, self.device):
                        self._run(rest)
                        self._look_around()
            self._look_around()
            if len(taken) == len(pending):
                self.progress.wait(taken)
                time.sleep(_POLL_S)
            pending = taken

    def _claim(self, cell: Cell, locks: ExitStack, taken: list[Cell]) -> bool:
        """Return whether a cell is to be run here: it is not finished, nor taken by others."""
        if not locks.enter_context(claim(self.checkpoints / f"{cell.key}.lock")):
            taken.append(cell)
            return False
        return cell.key not in self.store.finished()

    def _look_around(self) -> None:
        """Tell of what other processes have finished."""
        finished = self.store.finished()
        for key in [key for key in self.unreported if key in finished]:
            self.progress.elsewhere(self.unreported.pop(key))

    def _run(self, group: Group) -> None:
        self.progress.start(group)
        started = time.perf_counter()
        results = self._results(group, self.data[group.content])
        share = (time.perf_counter() - started) / len(group.cells)
        # Recorded are seconds of one process: other cells may have fewer to divide their folds.
        alone = share * (1 if group.protocol is None else self.processes)
        self.store.record(results, session=self.session, seconds=alone, device=self.device)
        for cell, outcomes in results:
            _tidy(self.checkpoints, cell)
            del self.unreported[cell.key]
            for outcome in outcomes:
                if (epoch := outcome.diverged_epoch) is not None:
                    self.progress.note(f"{cell}: fold {outcome.fold} diverged in epoch {epoch}")
            self.progress.finish(cell, outcomes, share)

    def _results(self, group: Group, graphs: GraphSet) -> list[tuple[Cell, list[Outcome]]]:
        lanes, folds = group.lanes(graphs), group.cells[0].folds
        if group.protocol is None:
            (task,) = group.tasks
            outcomes = fit_baseline(task.model, graphs, task.features, lanes)
        else:
            with _explained(self.device):
                outcomes = fit(
                    graphs,
                    group.tasks,
                    group.protocol,
                    lanes,
                    device=self.device,
                    checkpoint=self.checkpoints / f"{group.key}.pt",
                    progress=partial(self.progress.epochs, group),
                    workers=self.processes,
                )
        return [(cell, outcomes[n * folds : (n + 1) * folds]) for n, cell in enumerate(group.cells)]


@contextmanager
def _explained(device: str) -> Iterator[None]:
    """Say what to do about a GPU that disappears, or that others do not share."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        if not reason.startswith("CUDA error"):
            raise
        raise GnnVpaError(
            f"{device} cannot be used ({reason}). What is finished is kept: run the same command "
            "again when it can, or with --device cpu."
        ) from error


def _tidy(checkpoints: Path, cell: Cell) -> None:
    """Remove what a finished cell leaves, also a lock whose owner was killed."""
    for path in checkpoints.glob(f"{cell.key}.*"):
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
    needed = {(cell.content, cell.folds, cell.task.features): cell.dataset for cell in cells}
    for (content, folds, kind), name in needed.items():
        try:
            splits(data[content].y, folds)
            features(data[content], kind)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from error


def _add_signals(store: Store, cells: Iterable[Cell], data: Mapping[str, GraphSet]) -> None:
    """Record what each method starts with, so that nobody needs the data for it later."""
    lacking = store.without_signals()
    methods: dict[tuple[str, Task], list[Cell]] = {}
    for cell in cells:
        if cell.key in lacking and cell.protocol is not None and cell.content in data:
            methods.setdefault((cell.content, cell.task), []).append(cell)
    for (content, task), of_method in methods.items():
        store.add_signals(of_method, initial_signals(data[content], task))


def _is_possible(cell: Cell, graphs: GraphSet, progress: Progress) -> bool:
    """Leave out a baseline that cannot be had for its data set, and say so."""
    if cell.protocol is None and (reason := obstacle(cell.task.model, graphs)) is not None:
        progress.note(f"{cell} is left out: {reason}")
        return False
    return True
