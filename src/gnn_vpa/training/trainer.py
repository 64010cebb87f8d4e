"""Many trainings as one: the lanes' weights are stacked, and every step serves all of them."""

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import nullcontext
from itertools import groupby, pairwise
from pathlib import Path

import torch

from ..errors import GnnVpaError
from ..graphs import GraphSet
from ..random_state import seeded
from .captured import CapturedGroup
from .checkpoint import Checkpoint
from .checks import check_fit, check_precision
from .group import Group
from .interrupts import Impatience, deferred
from .lanes import family_of
from .layered import Layered
from .layered_group import LayeredGroup
from .level_tables import level_tables, model_for
from .own import elsewhere, is_own
from .room import usable_memory
from .seldom import Seldom
from .tables import Tables, tables
from .task import Curves, Lane, Outcome, Protocol, Task, Training
from .workers import Job, Report, Started, one_thread, started_ahead, train_in_processes

_log = logging.getLogger("gnn_vpa")
CACHED_ROWS = 8192  # rows of features of width 64 that stay in a core's cache
MAX_DENSE_COLUMNS = 64  # up to which a product on a GPU beats a lookup and its backward pass
LOOK_S = 1.0  # seconds between two looks at the curves of a group
LONG_EPOCH_S = 0.5  # seconds of an epoch that Ctrl-C breaks off, instead of waiting for its end


def fit(
    graphs: GraphSet,
    task: Task | Sequence[Task],
    protocol: Protocol | Sequence[Protocol],
    lanes: Sequence[Lane],
    *,
    device: torch.device | str = "cpu",
    checkpoint: Path | None = None,
    progress: Callable[[int], None] | None = None,
    dtype: torch.dtype = torch.float32,
    merging: bool = True,
    workers: int | None = None,
    keep_weights: bool = False,
    curves: Callable[[Sequence[int], Sequence[Curves]], None] | None = None,
    ahead: deque[Started] | None = None,
) -> list[Outcome]:
    """Train a model on every lane, and choose each lane's epoch by its validation score.

    A lane's random numbers (initial weights, order of graphs, dropout) depend on the data
    (`GraphSet.seed_source`), the task, its fold and its seed alone. The outcome on the CPU is the
    same to the bit whether or not it was interrupted, and for any number of workers.

    After Ctrl-C the states of all groups in progress are written to the checkpoint, which takes a
    second or two, and training goes on from these epochs. A second Ctrl-C leaves at once; then, as
    after a kill, it goes on from what was written last.

    Args:
        graphs: The data set.
        task: The model and its features. Of several tasks, those of a family (`lanes.py`) share
            every step on a GPU.
        protocol: How it is trained; of several, each belongs to one of as many tasks.
        lanes: The trainings: folds, seeds.
        device: Where.
        checkpoint: A file to write now and then, and to go on from if it is there.
        progress: Called with the number of epochs done, of the protocol's (of the longest).
        dtype: Type of weights and features.
        merging: Whether to merge nodes that look alike, where that pays. It is exact.
        workers: Number of processes that divide the lanes on the CPU, this one among them, with
            one thread each. None: this one alone, with as many threads as torch has. On a GPU
            it does not matter.
        keep_weights: Whether outcomes are to have the networks' weights at the best epoch.
        curves: Called about once a second with the places of some trainings among those that are
            returned, and the curves of each so far, ``[3, epochs]``: training loss, validation and
            test score. The last loss of one that has diverged is not finite.
        ahead: Processes that were started before, see `started_ahead`; None: one that is needed
            starts while the tables are made.

    Returns:
        The outcomes, in the order of the lanes; of several tasks one after the other.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from gnn_vpa.graphs import splits
        >>> pair, line = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> graphs = [Data(edge_index=e, num_nodes=3, y=i) for i, e in enumerate((pair, line))] * 20
        >>> data = GraphSet.from_pyg(graphs, name="toy")
        >>> lanes = [Lane(fold, split) for fold, split in enumerate(splits(data.y, folds=4))]
        >>> outcomes = fit(data, Task("gin", "vpa"), Protocol(epochs=30), lanes)
        >>> outcomes[0].test_score
        1.0
    """
    device = torch.device(device)
    tasks = [task] if isinstance(task, Task) else list(task)
    protocols = [protocol] * len(tasks) if isinstance(protocol, Protocol) else list(protocol)
    check_fit(graphs, tasks, protocols, lanes, workers, device)
    check_precision(zip(tasks, protocols, strict=True), _shares_steps(device))
    settings = (dtype, merging, device.type, keep_weights)
    saved = Checkpoint(checkpoint, graphs, tasks, protocols, lanes, settings)
    kinds = _kinds(tasks, protocols, _shares_steps(device))
    trainings = [
        Training(t, lane, p) for t, p in zip(tasks, protocols, strict=True) for lane in lanes
    ]
    # A family's trainings stand together; each is known by its place in this order.
    order = [
        number * len(lanes) + k for kind in kinds for number in kind for k in range(len(lanes))
    ]
    longest = max(own.epochs for own in protocols)
    done = dict.fromkeys(saved.outcomes, float(longest))
    workers = None if _shares_steps(device) else workers

    def tell(report: Report) -> None:
        share = report.epoch / trainings[order[report.places.start]].protocol.epochs
        done.update(dict.fromkeys(report.places, longest * (1.0 if report.outcomes else share)))
        if progress is not None and report.outcomes is None:
            progress(int(sum(done.values()) / len(order)))
        if curves is not None and report.curves is not None:
            curves([order[place] for place in report.places], report.curves)

    place = 0
    # One more process is needed where there are two trainings, and ready when the tables are.
    is_shared = (workers or 1) > 1 and len(order) - len(saved.outcomes) > 1
    early = is_shared and not any(elsewhere(own.model) for own in tasks)
    starting = started_ahead(int(early)) if ahead is None else nullcontext(ahead)
    with one_thread() if workers else nullcontext(), starting as started:
        for kind in kinds:
            own = [trainings[n] for n in order[place : place + len(kind) * len(lanes)]]
            family = _family(
                graphs, [tasks[n] for n in kind], protocols[kind[0]], device, dtype, merging,
                keep_weights,
            )  # fmt: skip
            jobs = _unfinished(family.groups(own), place, saved, is_watched=curves is not None)
            count = family.processes(workers)
            train_in_processes(family.train, jobs, count, saved.keep, tell, started)
            place += len(own)
    by_training = {order[place]: outcome for place, outcome in saved.outcomes.items()}
    return [by_training[number] for number in range(len(trainings))]


def _kinds(tasks: Sequence[Task], protocols: Sequence[Protocol], together: bool) -> list[list[int]]:
    """Divide tasks, by their numbers, into families; each is one of its own if not together."""
    if not together:
        return [[number] for number in range(len(tasks))]
    found: dict[Hashable, list[int]] = {}
    for number, pair in enumerate(zip(tasks, protocols, strict=True)):
        found.setdefault(family_of(*pair), []).append(number)
    return list(found.values())


def _family(
    graphs: GraphSet,
    tasks: Sequence[Task],
    protocol: Protocol,
    device: torch.device,
    dtype: torch.dtype,
    merging: bool,
    keep_weights: bool,
) -> "Family":
    """Return what trains tasks of a family: models of ours, or one of a user's."""
    if is_own(tasks[0].model):
        from .own.family import OwnFamily  # a kind of family

        return OwnFamily(graphs, tasks, protocol, device, dtype, keep_weights)
    return Family(graphs, tasks, protocol, device, dtype, merging, keep_weights)


class Family:
    """Trainings that can share a step: tasks of one form, with the data as they see it."""

    def __init__(
        self,
        graphs: GraphSet,
        tasks: Sequence[Task],
        protocol: Protocol,
        device: torch.device,
        dtype: torch.dtype,
        merging: bool,
        keep_weights: bool = False,
    ) -> None:
        self.graphs, self.protocol, self.device, self.dtype = graphs, protocol, device, dtype
        self.keep_weights = keep_weights
        with seeded():
            # The lanes' weights take turns in it.
            self.model = model_for(tasks[0], graphs).to(device, dtype)
        plans = _shares_steps(device)
        tasks = list({task.aggr: task for task in tasks}.values())  # all that the tables see
        by_level = level_tables(
            graphs, tasks, self.model, device, dtype,
            per_graph=plans, max_dense_columns=MAX_DENSE_COLUMNS if plans else 0, merging=merging,
        )  # fmt: skip
        self.data: Tables | Layered = tables(by_level) if plans else Layered(by_level)

    def processes(self, workers: int | None) -> int:
        """Return how many processes can share the lanes."""
        return workers or 1

    def groups(self, trainings: Sequence[Training]) -> list[list[Training]]:
        """Divide trainings into those that run side by side.

        Trainings that differ in their number of steps must not share one; on the CPU no more share
        it than the cache can hold, on a GPU no more than its memory. On the CPU what a lane
        computes with depends on the data and the lanes alone: a run that goes on elsewhere, or in
        more processes, goes on as it began. There is an even number of groups, for two to share.
        """
        room, shares = self._room(), 1 if _shares_steps(self.device) else 2
        groups: list[list[Training]] = []
        for _, alike in groupby(trainings, self._steps):
            side = list(alike)
            cuts = cut_evenly(len(side), room, shares)
            groups += [side[begin:end] for begin, end in pairwise(cuts)]
        return groups

    def _steps(self, training: Training) -> int:
        return -(-len(training.lane.split.train) // self.protocol.batch_size)

    def _room(self) -> int:
        if isinstance(self.data, Layered):
            return room_in_cache(self.data.rows(self.protocol.batch_size))
        return max(1, usable_memory(self.device) // self.memory())

    def memory(self) -> int:
        """Return about how many bytes a lane takes on a GPU.

        A layer keeps some ten matrices of rows x width of the largest step for the backward pass,
        and edges are planned ahead.
        """
        assert isinstance(self.data, Tables)
        levels = self.data.levels[1:] or self.data.levels
        rows = torch.stack([level.ptr.diff() for level in levels]).sum(0)
        linked = [links.ptr.diff() for level in levels for links in level.links]
        edges = sum(linked, torch.zeros_like(rows))
        most = rows.sort(descending=True).indices[: self.protocol.batch_size]
        width = max((p.shape[0] for p in self.model.parameters() if p.dim() > 1), default=1)
        item = torch.finfo(self.dtype).bits // 8
        need = rows[most].sum() * (width * 10 + 40) * item + edges[most].sum() * 64
        return int(need) + (1 << 20)

    def train(self, job: Job) -> Generator[Report, bool | None]:
        """Train a group to its end, and report after every epoch.

        Interrupted, it reports its state after its last whole epoch before it raises.
        """
        try:
            yield from self._epochs(job)
            return
        except torch.cuda.OutOfMemoryError:
            pass  # the exception holds what the group has allocated: go on without it
        place = job.place
        for half in _halves(job.trainings, self.graphs, self.device):
            yield from self.train(job._replace(place=place, trainings=half, state=None))
            place += len(half)

    def _epochs(self, job: Job) -> Generator[Report, bool | None]:
        places = job.places
        group = self._group(job.trainings)
        before = job.state  # where an epoch that is broken off began
        broken = False
        look = Seldom(LOOK_S)
        try:
            if job.state is not None:
                group.load_state_dict(job.state)
            kept = time.monotonic()
            while not group.is_done:
                began = time.monotonic()
                can_break = before is not None or group.epoch == 0
                with nullcontext() if can_break else deferred():
                    broken = True
                    group.run_epoch()
                    broken = False
                now = time.monotonic()
                is_due = now - kept >= job.pause
                before = group.state_dict() if is_due or now - began > LONG_EPOCH_S else None
                curves = None
                if job.is_watched and look.is_due():
                    with look:
                        curves = group.curves()
                report = Report(places, group.epoch, before if is_due else None, curves=curves)
                if (yield report):
                    yield Report(places, group.epoch, group.state_dict())
                kept = now if is_due else kept
            curves = group.curves() if job.is_watched else None
            yield Report(places, group.epoch, outcomes=group.outcomes(), curves=curves)
        except Impatience:
            raise
        except KeyboardInterrupt:
            state = before if broken else group.state_dict()
            if state is not None:
                yield Report(places, state["epoch"], state)
            raise
        finally:
            group.close()

    def _group(self, trainings: Sequence[Training]) -> Group:
        settings = (self.protocol, trainings, self.model, self.dtype, self.keep_weights)
        if isinstance(self.data, Tables):
            return CapturedGroup(self.graphs, self.data, *settings)
        return LayeredGroup(self.graphs, self.data, *settings)


def cut_evenly(trainings: int, room: int, shares: int) -> list[int]:
    """Return where to cut trainings into groups of at most ``room``, a multiple of ``shares``.

    Example:
        >>> cut_evenly(10, room=4, shares=2)
        [0, 3, 5, 8, 10]
    """
    count = min(trainings, -(-trainings // (room * shares)) * shares)
    return [-(-n * trainings // count) for n in range(count + 1)]


def room_in_cache(rows: float) -> int:
    """Return how many lanes of so many rows a core's cache holds.

    Example:
        >>> room_in_cache(4096)
        2
    """
    return max(1, round(CACHED_ROWS / max(rows, 1)))


def _unfinished(
    groups: Sequence[Sequence[Training]], place: int, saved: Checkpoint, *, is_watched: bool
) -> list[Job]:
    """Return what is left to do of groups, whose first training has this place among all."""
    jobs = []
    for group in groups:
        # A group that was halved may have ended in part: what is done is at its front.
        done = sum(n in saved.outcomes for n in range(place, place + len(group)))
        if done < len(group):
            jobs.append(saved.job(place + done, group[done:])._replace(is_watched=is_watched))
        place += len(group)
    return jobs


def _shares_steps(device: torch.device) -> bool:
    """Say whether steps are planned and captured there; on the CPU a cache holds few lanes."""
    return device.type == "cuda"


def _halves(
    trainings: Sequence[Training], graphs: GraphSet, device: torch.device
) -> list[list[Training]]:
    """Return two halves of a group that the GPU's memory did not hold."""
    half = len(trainings) // 2
    if half == 0:
        raise GnnVpaError(
            f"one training of {trainings[0].task.model} on {graphs.name} does not fit into the "
            f"memory of {device}: use a GPU with more of it, or --device cpu."
        )
    torch.cuda.empty_cache()
    _log.warning(
        "%s: %d trainings at once do not fit into the GPU's memory, going on with %d",
        graphs.name, len(trainings), half,
    )  # fmt: skip
    return [list(trainings[:half]), list(trainings[half:])]
