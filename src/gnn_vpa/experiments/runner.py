"""Running a grid: each cell once, whatever happens in between."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..errors import UsageError
from ..graphs import GraphSet, features, load, splits
from ..training import Lane, Outcome, fit
from ._workers import assistants, single_thread, worker_count
from .baselines import fit_baseline, obstacle
from .cell import Cell
from .claims import claim
from .progress import Progress
from .provenance import device_name
from .store import Store

_POLL_S = 0.5


def run_grid(
    cells: Sequence[Cell],
    out: str | Path,
    *,
    data_dir: str | Path | None = None,
    device: str = "auto",
    configuration: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    workers: int | None = None,
) -> None:
    """Run all cells that `out` has no results of yet, and record each when it is finished.

    A run that was ended, in whatever way, goes on where it was when it is started again. Several
    processes may run the same cells into the same folder: each cell is run by one of them, and all
    return when all cells are finished.

    Args:
        cells: What to run, from `expand` or `preset`.
        out: Folder of the run.
        data_dir: A folder to look for data in first.
        device: `auto` (CUDA where it is there), `cpu` or `cuda`.
        configuration: What was asked for, to be kept with the results.
        progress: Told of each step.
        workers: Number of processes, each with one thread. By default one for each core on the
            CPU, and one in all on a GPU.

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
        for cell in cells:
            if cell.key in finished:  # by a process that ended before it could tidy up
                _tidy(checkpoints, cell)
        pending = [cell for cell in cells if cell.key not in finished]
        sources = {cell.dataset: cell.source or cell.dataset for cell in pending}
        data = {name: load(source, data_dir) for name, source in sources.items()}
        pending = [cell for cell in pending if _is_possible(cell, data[cell.dataset], progress)]
        progress.plan(pending, finished=sum(cell.key in finished for cell in cells))
        if pending:
            for name, graphs in data.items():
                store.register(name, graphs)
            session = store.begin(device_name(device), configuration or {})
            worker = _Worker(store, session, data, checkpoints, device, progress)
            more = (workers or worker_count(device, len(pending))) - 1
            with single_thread(device), assistants(more, pending, Path(out), data_dir, device):
                worker.run(pending)
            store.end(session)
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

    def run(self, pending: Sequence[Cell]) -> None:
        """Run each cell that no other process runs, until all are finished."""
        while pending:
            taken = []
            for cell in pending:
                with claim(self.checkpoints / f"{cell.key}.lock") as mine:
                    if not mine:
                        taken.append(cell)
                    elif cell.key in self.store.finished():
                        self.progress.elsewhere(cell)
                    else:
                        self._run(cell)
            if len(taken) == len(pending):
                self.progress.wait(taken)
                time.sleep(_POLL_S)
            pending = taken

    def _run(self, cell: Cell) -> None:
        self.progress.start(cell)
        started = time.perf_counter()
        outcomes = self._outcomes(cell, self.data[cell.dataset])
        seconds = time.perf_counter() - started
        self.store.record(cell, outcomes, session=self.session, seconds=seconds, device=self.device)
        _tidy(self.checkpoints, cell)
        for outcome in outcomes:
            if (epoch := outcome.diverged_epoch) is not None:
                self.progress.note(f"{cell}: fold {outcome.fold} diverged in epoch {epoch}")
        self.progress.finish(cell, outcomes, seconds)

    def _outcomes(self, cell: Cell, graphs: GraphSet) -> list[Outcome]:
        if cell.protocol is None:
            task = cell.task
            return fit_baseline(task.model, graphs, task.features, lanes(cell, graphs))
        return fit(
            graphs,
            cell.task,
            cell.protocol,
            lanes(cell, graphs),
            device=self.device,
            checkpoint=self.checkpoints / f"{cell.key}.pt",
            progress=partial(self.progress.epochs, cell),
        )


def _tidy(checkpoints: Path, cell: Cell) -> None:
    """Remove what a finished cell leaves, also a lock whose owner was killed."""
    for path in checkpoints.glob(f"{cell.key}.*"):
        path.unlink(missing_ok=True)


def resolve_device(device: str) -> str:
    """Return the device to use: `auto` is CUDA where there is one.

    Example:
        >>> resolve_device("cpu")
        'cpu'
    """
    import torch

    kind = device.partition(":")[0]
    if kind not in ("auto", "cpu", "cuda"):
        raise UsageError(f"unknown device {device!r}: use auto, cpu or cuda")
    if kind == "cuda" and not torch.cuda.is_available():
        raise UsageError("there is no CUDA device that torch can use here: use --device cpu")
    if kind == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


def lanes(cell: Cell, graphs: GraphSet) -> list[Lane]:
    """Return the trainings of a cell: one for each fold.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> from gnn_vpa.training import Task
        >>> len(lanes(Cell("MUTAG", Task("gin", "vpa"), folds=5), load("MUTAG")))
        5
    """
    parts = splits(graphs.y, cell.folds)
    return [Lane(fold, split, cell.seed) for fold, split in enumerate(parts)]


def _is_possible(cell: Cell, graphs: GraphSet, progress: Progress) -> bool:
    """Find what is wrong before hours are spent on the cells before it."""
    try:
        splits(graphs.y, cell.folds)
        features(graphs, cell.task.features)
    except UsageError as error:
        raise UsageError(f"{cell.dataset}: {error}") from error
    if cell.protocol is None and (reason := obstacle(cell.task.model, graphs)) is not None:
        progress.note(f"{cell} is left out: {reason}")
        return False
    return True
