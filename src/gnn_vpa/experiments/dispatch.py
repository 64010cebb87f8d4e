"""Sending groups of cells to other machines, and writing down what comes back.

This process alone writes the results: what is lost on the way is trained again, and nothing is
recorded twice. How jobs travel is another's matter (`Pool`).
"""

import logging
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import uuid4

from ..errors import GnnVpaError
from ..files import write_whole
from ..graphs import GraphSet
from .cell import Cell
from .finals import chosen
from .groups import Group, grouped
from .ledger import Entry, Ledger
from .locks import try_lock
from .memory import DataSize, memory_of_process
from .progress import Progress
from .schedule import divided, expect, longest_first
from .slot import Job, News, Place, Trained
from .store import Store
from .train_group import CHECKPOINTS, DeviceLostError
from .typical import known_paces

_log = logging.getLogger("gnn_vpa")

_WAIT_S = 0.5  # seconds between two looks at nodes, and at cells that other processes run
_KILLS = 3  # of its process after which a group is left out: it is too large, most likely
_LOSSES = 10  # of its node: somebody takes them away, but not so often


@dataclass(eq=False)
class Worker:
    """A slot of a cluster, as this process sees it.

    Attributes:
        name: What people know it by.
        node: The node that it is on.
        place: What is there; None: it is not there yet.
        group: What it is at; None: it is idle.
    """

    name: str
    node: str
    place: Place | None = None
    group: Group | None = None


class Finished(NamedTuple):
    """A worker has trained its group."""

    worker: Worker
    trained: Trained


class Raised(NamedTuple):
    """A worker's training has raised an error; the worker is there."""

    worker: Worker
    error: Exception


class Lost(NamedTuple):
    """A worker is gone, and its job with it; in words, why; alone, or with its whole node."""

    worker: Worker
    why: str
    with_node: bool


class Refused(NamedTuple):
    """A worker cannot be used, nor any other on its node; in words, why."""

    worker: Worker
    why: str


class Told(NamedTuple):
    """A worker has said how far it is."""

    worker: Worker
    news: News


class Noted(NamedTuple):
    """Something worth a line."""

    text: str


Event = Finished | Raised | Lost | Refused | Told | Noted


class Pool(Protocol):
    """Workers of a cluster, and how they are reached."""

    def grow(self, wanted: int) -> None:
        """Ask for workers where nodes have room: so many in all, and no more."""

    def idle(self) -> Sequence[Worker]:
        """Return the workers that are there and have nothing to do."""

    def send(self, worker: Worker, job: Job, graphs: GraphSet) -> None:
        """Give a job to an idle worker, with its data if it has not had them."""

    def events(self, seconds: float) -> Sequence[Event]:
        """Return what has happened; wait so long for something to happen."""

    def refuse(self, node: str) -> None:
        """Use a node no more."""


class Cluster(Protocol):
    """Machines that a grid can be run on."""

    def device(self, asked: str) -> str:
        """Return what groups are trained on: `cpu` or `cuda`."""

    def slots(self, device: str) -> int:
        """Return how many groups can be trained at a time."""

    def pool(self, device: str, need: int, cells: Sequence[Cell]) -> AbstractContextManager[Pool]:
        """Return workers for cells, which need so many bytes each; they end with the context."""


def run_on(
    cluster: Cluster,
    stages: Sequence[Sequence[Cell]],
    store: Store,
    data: Mapping[str, GraphSet],
    *,
    out: Path,
    device: str,
    progress: Progress,
    configuration: Mapping[str, object],
    keep: frozenset[str] = frozenset(),
) -> None:
    """Run cells on a cluster: a stage after the other, the longest groups of each first.

    Raises:
        GnnVpaError: Groups could not be trained, or no node can be used; what is finished is kept.
    """
    sizes = {content: DataSize.of(graphs) for content, graphs in data.items()}
    every = [cell for stage in stages for cell in stage]
    token = f"ray-{uuid4().hex}.lock"
    with (
        try_lock(out / CHECKPOINTS / token),
        cluster.pool(device, memory_of_process(every, sizes), every) as pool,
    ):
        sessions = _Sessions(store, configuration)
        lost: list[Group] = []
        for cells in stages:
            ledger = Ledger(store, cells, out, progress, is_rescue=True)
            paces = known_paces(out, cells, device, sizes)
            planned = expect(grouped(cells, device), paces, sizes, gpu=device != "cpu")
            if device != "cpu":
                planned = divided(planned, max(1, cluster.slots(device)))
            groups = [each.group for each in longest_first(planned)]
            dispatcher = _Dispatcher(ledger, pool, data, sessions, progress, device, token, keep)
            lost += dispatcher.run(groups)
            if lost:
                break  # what chooses between cells needs all of them
        sessions.end()
    if lost:
        raise GnnVpaError(
            f"{', '.join(map(str, lost))}: every process that trained it was killed or lost its "
            "node, most likely because memory ran out. All that is finished is kept. With nodes "
            "that have more memory the same command goes on."
        )


class _Sessions:
    """A session for each place that has trained something."""

    def __init__(self, store: Store, configuration: Mapping[str, object]) -> None:
        self._store, self._configuration = store, configuration
        self._known: dict[tuple[str, str], int] = {}

    def of(self, worker: Worker) -> int:
        place = worker.place
        assert place is not None
        key = worker.node, place.device
        if key not in self._known:
            self._known[key] = self._store.begin(
                place.device,
                self._configuration,
                place.where._replace(host=f"{place.where.host} (Ray node {worker.node[:8]})"),
            )
        return self._known[key]

    def end(self) -> None:
        for session in self._known.values():
            self._store.end(session)


class _Sent(NamedTuple):
    """A group that is on its way, the locks of its cells, and whose work it is."""

    group: Group
    locks: ExitStack
    session: int


@dataclass
class _Dispatcher:
    """Sends the groups of a stage, and records what comes back."""

    ledger: Ledger
    pool: Pool
    data: Mapping[str, GraphSet]
    sessions: _Sessions
    progress: Progress
    device: str
    token: str
    keep: frozenset[str]
    sent: dict[Worker, _Sent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting: deque[Group] = deque()
        self.taken: list[Cell] = []  # other processes run them
        self.kills: Counter[str] = Counter()
        self.losses: Counter[str] = Counter()
        self.lost: list[Group] = []

    def run(self, groups: Iterable[Group]) -> list[Group]:
        """Run groups, in this order; return those that could not be trained."""
        self.waiting.extend(groups)
        try:
            while self.waiting or self.sent or self.taken:
                self._round()
        finally:
            for sent in self.sent.values():
                sent.locks.close()
        self.ledger.look_around()
        return self.lost

    def _round(self) -> None:
        self.pool.grow(len(self.waiting) + len(self.sent))
        self._send()
        if self.taken and not self.waiting:
            if not self.sent:
                self.progress.wait(self.taken)
            self.ledger.look_around()
        events = self.pool.events(_WAIT_S)
        # What is finished is recorded before an error ends the run.
        if finished := [event for event in events if isinstance(event, Finished)]:
            self._record(finished)
        for event in events:
            self._handle(event)
        if self.taken and not self.waiting:
            self.waiting.extend(grouped(self.taken, self.device))
            self.taken = []

    def _send(self) -> None:
        for worker in self.pool.idle():
            while self.waiting and worker.group is None:
                self._offer(worker, self.waiting.popleft())

    def _offer(self, worker: Worker, group: Group) -> None:
        """Send a group to a worker, if all of its cells can be had."""
        with ExitStack() as locks:
            mine = [c for c in group.cells if self.ledger.claim(c, locks, self.taken, [])]
            if len(mine) == len(group.cells):
                choice = chosen(group, self.ledger.store)
                job = Job.of(group, choice, self.ledger.out, self.token, self.keep)
                self.pool.send(worker, job, self.data[group.content])
                worker.group = group
                self.sent[worker] = _Sent(group, locks.pop_all(), self.sessions.of(worker))
                self.progress.tell(worker.name, group)
                return
        # Without those that are taken the rest may be less alike.
        self.waiting.extendleft(reversed(grouped(mine, self.device)))

    def _handle(self, event: Event) -> None:
        match event:
            case Told(worker, news):
                if worker.group is not None and news.key == worker.group.key:
                    self.progress.tell(worker.name, worker.group, news.epoch, news.grown)
            case Raised(worker, error):
                self._raise(worker, error)
            case Lost(worker, why, with_node):
                self._lose(worker, why, with_node)
            case Refused(worker, why):
                self.progress.note(f"{worker.name} is not used: {why}.")
            case Noted(text):
                self.progress.note(text)

    def _done(self, worker: Worker) -> _Sent | None:
        worker.group = None
        self.progress.tell(worker.name, None)
        return self.sent.pop(worker, None)

    def _record(self, finished: Sequence[Finished]) -> None:
        """Record what has come back, with one wait for the disk."""
        back = [(self._done(worker), trained) for worker, trained in finished]
        self._send()  # before the disk is waited for
        with ExitStack() as locks:
            entries = []
            for sent, trained in back:
                assert sent is not None
                locks.push(sent.locks)
                for name, content in trained.files.items():
                    write_whole(self.ledger.out / name, content)
                for level, text in trained.logged:
                    _log.log(level, "%s", text)
                results = trained.of(sent.group)
                entries.append(
                    Entry(sent.group, results, sent.session, self.device, trained.seconds)
                )
            self.ledger.record(*entries)

    def _raise(self, worker: Worker, error: Exception) -> None:
        """End the run with an error of a training; but a device that fails is not the run's."""
        if not isinstance(error, DeviceLostError):
            raise error
        self.pool.refuse(worker.node)
        self.progress.note(f"{worker.name}: {error}")
        self._lose(worker, "its device failed", with_node=True)

    def _lose(self, worker: Worker, why: str, with_node: bool) -> None:
        """Let a group go out again whose worker is gone, unless that happens again and again."""
        sent = self._done(worker)
        if sent is None:
            return
        sent.locks.close()
        group = sent.group
        counted, most = (self.losses, _LOSSES) if with_node else (self.kills, _KILLS)
        counted[group.key] += 1
        what = f"{worker.name} was lost while it trained {group} ({why})"
        if counted[group.key] >= most:
            self.progress.note(f"{what}, for the {most}th time: that is left out.")
            self.lost.append(group)
            return
        self.progress.note(f"{what}: that goes out again.")
        self.waiting.appendleft(group)
