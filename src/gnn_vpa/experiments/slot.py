"""A place on a node of a cluster that trains one group after the other, and knows no store.

The data are sent to it once and stay, by their content. What it trains goes back as numbers; the
process that has sent it writes them down.
"""

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import gnn_vpa

from ..graphs import GraphSet
from ..training import Outcome, own
from ..training.own.factories import Factory
from .groups import Group
from .progress import Grown, Progress
from .provenance import Where, device_name
from .store import Result
from .train_group import CHECKPOINTS, GroupTrainer
from .workers import single_thread

_log = logging.getLogger("gnn_vpa")


class Place(NamedTuple):
    """Where a slot is, and what it has.

    Attributes:
        where: The machine.
        device: What it trains on, in words.
        package: Version of gnn-vpa there.

    Example:
        >>> Place.here("cpu").package == gnn_vpa.__version__
        True
    """

    where: Where
    device: str
    package: str

    @classmethod
    def here(cls, device: str) -> "Place":
        """Look around, on the node."""
        with single_thread(device):
            name = device_name(device)
        return cls(Where.here(), name, gnn_vpa.__version__)


@dataclass(frozen=True)
class Job:
    """A group to be trained elsewhere.

    Attributes:
        group: The cells, without their data.
        choice: For a cell that chooses between settings, which one in each fold.
        out: Folder of the run, as the sender knows it.
        token: Name of a file among its checkpoints: where that is seen, the folder is shared.
        keep: Keys of cells whose models are kept.
    """

    group: Group
    choice: Sequence[int] | None
    out: Path
    token: str
    keep: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        group: Group,
        choice: Sequence[int] | None,
        out: Path,
        token: str,
        keep: frozenset[str],
    ) -> "Job":
        """Make a job that carries no data."""
        light = Group(tuple(replace(cell, source="") for cell in group.cells))
        its = keep & {cell.key for cell in group.cells}
        return cls(light, choice, out.absolute(), token, its)


Sizes = Sequence[tuple[int | None, int | None]] | None


class Trained(NamedTuple):
    """What came of a job.

    Attributes:
        results: Of each cell the outcomes, what was chosen and the sizes, as in `Result`.
        seconds: What all of it took.
        files: Models that were kept, by their place in the run's folder.
        logged: Level and text of what was logged.
    """

    results: Sequence[tuple[Sequence[Outcome], Sequence[Mapping[str, object]] | None, Sizes]]
    seconds: float
    files: Mapping[str, bytes]
    logged: Sequence[tuple[int, str]]

    def of(self, group: Group) -> list[Result]:
        """Return the results of the sender's cells."""
        return [Result(cell, *own) for cell, own in zip(group.cells, self.results, strict=True)]


class News(NamedTuple):
    """How far a slot is with its job.

    Attributes:
        key: The group's; empty: it is at none.
        epoch: How many epochs are done.
        grown: Folds that have new curves since the last news.
    """

    key: str = ""
    epoch: int = 0
    grown: Sequence[Grown] = ()


@dataclass
class Slot:
    """Trains the groups that it is sent.

    Attributes:
        device: Where.
        factories: What makes users' own models: name and source of each, and the function.
    """

    device: str
    factories: Mapping[tuple[str, str], Factory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._data: dict[str, GraphSet] = {}
        self._following = _Following()
        for (name, source), factory in self.factories.items():
            own.adopt(name, source, factory)

    def place(self) -> Place:
        """Say where this is."""
        return Place.here(self.device)

    def train(self, job: Job, graphs: GraphSet | None = None) -> Trained:
        """Train a group; the data come with the first job that needs them."""
        content = job.group.content
        if graphs is not None:
            self._data[content] = graphs
        started = time.perf_counter()
        with _folder(job) as out, _logged() as logged, single_thread(self.device):
            self._following.begin(job.group)
            trainer = GroupTrainer(out, self.device, self._following, keep=job.keep)
            results = trainer(job.group, self._data[content], job.choice)
            files = {} if out == job.out else _files(out / "models", out)
        self._following.end()
        light = [
            ([replace(outcome, weights=None) for outcome in outcomes], chosen, sizes)
            for _, outcomes, chosen, sizes in results
        ]
        return Trained(light, time.perf_counter() - started, files, logged)

    def news(self) -> News:
        """Say how far the job is."""
        return self._following.news()


class _Following(Progress):
    """Takes note of how far a training is, for whoever asks from another thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._news, self._grown = News(), dict[tuple[str, int], Grown]()

    def begin(self, group: Group) -> None:
        with self._guard:
            self._news, self._grown = News(group.key), {}

    def end(self) -> None:
        with self._guard:
            self._news, self._grown = News(), {}

    def epochs(self, group: Group, done: int) -> None:
        with self._guard:
            self._news = self._news._replace(epoch=done)

    def curves(self, group: Group, grown: Sequence[Grown]) -> None:
        with self._guard:
            self._grown |= {(each.cell.key, each.fold): each for each in grown}

    def news(self) -> News:
        with self._guard:
            found, self._grown = self._news._replace(grown=list(self._grown.values())), {}
            return found


@contextmanager
def _folder(job: Job) -> Iterator[Path]:
    """Return the run's folder where this node sees it, or one of this node's own.

    In the run's folder a training that is ended goes on from its checkpoint on any node; in a
    folder of this node one whose process was killed goes on here.
    """
    if (job.out / CHECKPOINTS / job.token).is_file():
        yield job.out
        return
    folder = Path(tempfile.gettempdir(), f"gnn-vpa-{Path(job.token).stem}-{job.group.key}")
    folder.mkdir(mode=0o700, exist_ok=True)
    try:
        yield folder
    finally:  # a process that is killed leaves it to the next one that trains the group here
        shutil.rmtree(folder, ignore_errors=True)


def _files(folder: Path, out: Path) -> dict[str, bytes]:
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@contextmanager
def _logged() -> Iterator[list[tuple[int, str]]]:
    """Collect what the library logs, to be told where somebody reads it."""
    found: list[tuple[int, str]] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: found.append((record.levelno, record.getMessage()))  # type: ignore[method-assign]
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    try:
        yield found
    finally:
        _log.removeHandler(handler)
