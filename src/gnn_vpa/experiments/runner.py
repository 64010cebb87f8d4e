"""Running a grid: each cell once, whatever happens in between."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock

from ..errors import UsageError
from ..graphs import GraphSet, features
from ..training import own
from ..training.checks import check_precision, check_targets
from ..training.room import share_gpu
from ..training.workers import Killed
from .afterwards import Afterwards
from .baselines import obstacle
from .cell import Cell
from .crew import Crew, ahead, gather
from .devices import resolve_devices
from .dispatch import Cluster, run_on
from .finals import chosen
from .groups import Group, grouped, lanes_of
from .identity import Identified, identify
from .journal import Journal
from .journal_files import FOLDER as LIVE
from .journal_files import sweep
from .kept import check_no_model, is_kept, kept_keys
from .ledger import Entry, Ledger, tidy
from .locks import check_locks, release_abandoned
from .mps import clients
from .on_demand import OnDemand
from .progress import Progress, Several
from .provenance import device_name
from .remarks import remarks
from .rescue import Rescue
from .standby import Standby
from .store import Store, dataset_names
from .store import finished as finished_in
from .tensorboard import TensorBoard
from .train_group import CHECKPOINTS, GroupTrainer
from .workers import Assistants, Order, Team, single_thread

_POLL_S = 0.5
_PATIENT = 10  # looks, until what is left of another's group is taken
_USERS_RUN = RLock()


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
    cluster: Cluster | None = None,
    tensorboard: str | Path | None = None,
    fresh: bool = False,
) -> None:
    """Run all cells that `out` has no results of yet, and record each when it is finished.

    A run that was ended, in whatever way, goes on where it was when it is started again. Several
    processes may run the same cells into the same folder: each cell is run by one of them, and all
    return when all cells are finished. On a GPU, cells that can share every step run at once.

    Args:
        cells: What to run, from `expand` or `preset`.
        out: Folder of the run.
        data_dir: A folder to look for data in first.
        device: `auto` (CUDA where it is there), `cpu`, `cuda` (every GPU that is visible), or some
            of them, `cuda:0,cuda:2`.
        configuration: What was asked for, to be kept with the results.
        progress: Told of each step.
        workers: Number of processes, each with one thread, or how they share the work. By default
            one for each core on the CPU: each runs cells of its own, and where there are fewer
            cells than cores, several divide the folds of one. On GPUs it is the number for each of
            them: one, or several where NVIDIA's multi-process service is there and they pay.
        keep_models: Whether to write the chosen weights of each fold into the folder `models`.
        cluster: Other machines to run the cells on, see `ray_backend.connected`; None: this one.
        tensorboard: A folder to write learning curves into for TensorBoard, if it is to have them.
        fresh: Whether to forget what `out` has of these cells, and to run them from their start.

    Raises:
        UsageError: The folder holds a saved model.
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
    check_no_model(Path(out))
    progress = progress or Progress()
    board = None if tensorboard is None else TensorBoard(tensorboard)
    if cluster is not None and workers is not None:
        raise UsageError("--workers: with --ray there are as many as nodes have cores or GPUs")
    devices = resolve_devices(device) if cluster is None else [cluster.device(device)]
    checkpoints = Path(out) / CHECKPOINTS
    with ExitStack() as stack:
        if users := [cell.model for cell in cells if cell.task.source]:
            if not _USERS_RUN.acquire(blocking=False):
                raise UsageError(
                    f"{users[0]}: another thread of this process is running a user's model, and "
                    "both would draw from the same global generators: wait until it has ended, or "
                    "start this run in a process of its own"
                )
            stack.callback(_USERS_RUN.release)
        here = cells if cluster is None else []
        standby, sooner = stack.enter_context(ahead(here, out, devices, workers))
        found = identify(cells, data_dir, dataset_names(out))
        # What is refused leaves no folder behind.
        pending = _checked(found, set() if fresh else finished_in(out), out)
        trained = [(cell.task, cell.protocol) for cell in pending if cell.protocol is not None]
        check_precision(trained, is_gpu=devices[0].startswith("cuda"))
        store = stack.enter_context(Store(out))
        if fresh:
            tidy(checkpoints, keys := {c.key_by(rule) for c in found.cells for rule in (1, 2)})
            store.forget(keys)
        finished = store.finished()
        tidy(checkpoints, finished)  # after processes that ended before they could
        release_abandoned(checkpoints)
        sweep(Path(out) / LIVE)
        for note in found.notes:
            progress.note(note)
        cells, data = found.cells, found.data
        pending = [cell for cell in pending if cell.key not in finished]
        keep = kept_keys(cells) if keep_models else frozenset()
        if lacking := [key for key in keep & finished if not is_kept(Path(out), key)]:
            progress.note(
                f"{len(lacking)} cell(s) were finished before, without models: for theirs run into "
                "a new folder."
            )
        for text in remarks(pending, data):
            progress.note(text)
        pending = [cell for cell in pending if _is_possible(cell, data[cell.content], progress)]
        _register(store, found)
        if pending:
            check_locks(Path(out) / LIVE)
            journal = stack.enter_context(Journal(out, devices[0]))
            progress = Several(progress, journal, board or Progress())
        afterwards = Afterwards(store, cells, data, progress)
        progress.plan(pending, finished=sum(cell.key in finished for cell in cells))
        if pending and cluster is not None:
            run_on(
                cluster,
                _stages(pending),
                store,
                data,
                out=Path(out),
                device=devices[0],
                progress=progress,
                configuration=configuration or {},
                keep=keep,
            )
        elif pending:
            session = store.begin(device_name(devices[0]), configuration or {})
            for stage in _stages(pending):
                order = Order(stage, Path(out), data_dir, devices[0], keep=keep)
                order = replace(order, tensorboard=None if board is None else board.folder)
                try:
                    with gather(order, devices, data, workers, progress, sooner) as crew:
                        rescue = Rescue(crew.mine, progress)
                        worker = _Worker(store, session, data, progress, crew.mine, rescue)
                        worker.run_with(crew, standby, afterwards)
                finally:
                    release_abandoned(checkpoints)
            store.end(session)
        afterwards.complete()
    if board is not None:
        board.complete(cells, out)
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
        pending = [cell for cell in order.cells if cell.key not in finished]
        if pending:
            share_gpu(order.sharing)
            session = store.begin(device_name(order.device), {})
            mine, data = replace(order, cells=pending), OnDemand(pending, order.data_dir)
            with single_thread(order.device), Journal(order.out, order.device) as journal:
                board = None if order.tensorboard is None else TensorBoard(order.tensorboard)
                told = Several(progress, journal, board or Progress())
                _Worker(store, session, data, told, mine).run()
            store.end(session)


def _register(store: Store, found: Identified) -> None:
    for content, graphs in found.data.items():
        store.register(found.names[content], graphs)


@dataclass
class _Worker:
    """One process at work on cells, beside others perhaps."""

    store: Store
    session: int
    data: Mapping[str, GraphSet]
    progress: Progress
    order: Order
    rescue: Rescue | None = None  # of cells whose process was killed; None: not done here
    idle: int = 0  # how often in a row others had taken all cells

    def __post_init__(self) -> None:
        order, progress = self.order, self.progress
        self.ledger = Ledger(self.store, order.cells, order.out, progress, order.is_rescue)
        self.train = GroupTrainer(order.out, order.device, progress, order.folds, order.keep)

    def run(self) -> None:
        """Run each cell that no other process runs, until all are finished."""
        ledger = self.ledger
        pending: Sequence[Cell] = self.order.cells
        while pending:
            taken: list[Cell] = []
            abandoned: list[Cell] = []
            for group in self._grouped(pending):
                with ExitStack() as locks:
                    is_idle = self.idle >= _PATIENT
                    mine = ledger.claim_group(group, locks, taken, abandoned, is_idle)
                    # Without those that are taken the rest may be less alike.
                    for rest in self._grouped(mine):
                        self._try(rest)
                        ledger.look_around()
            ledger.look_around()
            self.idle = self.idle + 1 if len(taken) + len(abandoned) == len(pending) else 0
            if abandoned and not taken and self.rescue is not None:
                abandoned = self.rescue.run(abandoned)
                ledger.look_around()
            elif taken and self.idle:
                self.progress.wait(taken)
                time.sleep(_POLL_S)
            pending = taken if self.rescue is None else [*taken, *abandoned]
        if self.rescue is not None:
            self.rescue.check()

    def run_with(self, crew: Crew, standby: Standby, afterwards: Afterwards) -> None:
        """Run each cell once, together with processes beside this one."""
        watched = crew.is_watched
        with Assistants(crew.others, crew.environment, alone=watched, standby=standby) as others:
            if watched:
                self._watch(others, afterwards, crew.environment)
            if not watched or self.ledger.unreported:
                with single_thread(self.order.device):
                    self.run()

    def _watch(
        self, others: Assistants, afterwards: Afterwards, environment: Mapping[str, str]
    ) -> None:
        """Let other processes train, and tell what they finish, until they have left."""
        unseen = everything = len(self.ledger.unreported)
        while others.are_at_work():
            self.ledger.look_around()
            if unseen == everything and (unseen := len(self.ledger.unreported)) < everything:
                self._check_sharing(environment)  # once: one has trained, and others do
            if not afterwards.advance():
                time.sleep(_POLL_S)
        self.ledger.look_around()
        if left := len(self.ledger.unreported):
            self.progress.note(
                f"All other processes have left: this one goes on with {left} cells."
            )

    def _check_sharing(self, environment: Mapping[str, str]) -> None:
        if clients(environment) == 0:
            self.progress.note(
                "The processes do not use NVIDIA's multi-process service: they take turns, and are "
                "slower together than one. With GNN_VPA_MPS=0 there is one on each GPU."
            )

    def _grouped(self, cells: Sequence[Cell]) -> list[Group]:
        return grouped(cells, self.order.device, self.order.parts)

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
        results = self.train(group, self.data[group.content], chosen(group, self.store))
        self.ledger.record(
            Entry(
                group,
                results,
                session=self.session,
                device=self.order.device,
                seconds=time.perf_counter() - started,
                folds=self.order.folds,
            )
        )


def _checked(found: Identified, finished: set[str], out: str | Path) -> list[Cell]:
    """Return the cells that are not finished, if the data of all of them are there and fit."""
    pending = [cell for cell in found.cells if cell.key not in finished]
    for cell in pending:
        if cell.key_by(1) in finished:
            raise UsageError(
                f"{out} has results of {cell} with seeds made of the data set's name, as gnn-vpa "
                "0.2.0 made them; now they are made of its content, and the numbers are others: "
                "name another folder for the results"
            )
        if cell.content in found.absent:
            raise found.absent[cell.content]
    _check(pending, found.data)
    return pending


def _check(cells: Sequence[Cell], data: Mapping[str, GraphSet]) -> None:
    """Find what is wrong with the data before hours are spent on the cells before it."""
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
