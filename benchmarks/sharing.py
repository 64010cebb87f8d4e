"""How many processes should share a GPU: epochs a second of groups that train beside each other.

Each process trains one of the paper's long groups. First each trains alone, then so many at a time,
under NVIDIA's multi-process service where it is there. A process is worth what it does beside the
others of what it does alone; the sum over all of them is what they gain.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from gnn_vpa import processes
from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments.mps import shared_gpus
from gnn_vpa.graphs import FeatureKind, load, splits
from gnn_vpa.training import Lane, Protocol, Task, fit
from gnn_vpa.training.task import Precision

from ._record import Record

COUNTS = (2, 3, 4, 6)
_WARM = 2  # epochs that a process trains before it counts
_EPOCHS = 200  # of which as many are trained as there is time for


class Group(NamedTuple):
    """Ten folds of several methods that share every step."""

    dataset: str
    model: str
    aggrs: tuple[str, ...]
    features: FeatureKind = "auto"
    precision: Precision = "bfloat16"


GROUPS = (
    Group("REDDIT-MULTI-5K", "gat", ("default", "vpa"), "degree"),
    Group("REDDIT-MULTI-5K", "gcn", ("sum", "mean", "vpa"), "degree"),
    Group("REDDIT-MULTI-5K", "gin", ("sum", "mean", "vpa"), "degree"),
    Group("REDDIT-MULTI-5K", "gin", ("max",), "degree"),
    Group("COLLAB", "gat", ("default", "vpa")),
    Group("REDDIT-MULTI-5K", "gin", ("sum", "mean", "vpa")),
)


def report(
    device: str,
    counts: Sequence[int],
    seconds: float,
    record: Record,
    groups: Sequence[Group] = GROUPS,
) -> None:
    """Measure each group alone, and the first ones beside each other."""
    columns = {"processes": "{}", "milliseconds an epoch": "{}", "as fast as one": "{:.2f}x"}
    table = record.table("sharing", "Groups beside each other", columns)
    with ExitStack() as stack:
        sharing = stack.enter_context(shared_gpus([device], [], max(counts), record.note))
        environment = sharing.environment
        alone = [epochs([group], device, seconds, environment)[0] for group in groups]
        table.row(1, _shown(alone), 1.0)
        for count in counts:
            taken = epochs(
                [groups[n % len(groups)] for n in range(count)], device, seconds, environment
            )
            gain = sum(alone[n % len(groups)] / own for n, own in enumerate(taken))
            table.row(count, _shown(taken), gain)


def epochs(
    groups: Sequence[Group], device: str, seconds: float, environment: Mapping[str, str]
) -> list[float]:
    """Train groups beside each other; return the seconds that each takes for an epoch."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for group in groups:
            arguments = ["-m", __name__, json.dumps([*group, device])]
            started.append(processes.start(arguments, environment, stdout=subprocess.PIPE))
        begin = max(
            _times(process, _WARM)[-1] for process in started
        )  # of the last that is at work
        every = [_times(process, 2, begin, begin + seconds) for process in started]
    finally:
        for process in started:
            processes.end(process)
            assert process.stdout is not None
            process.stdout.close()
    return [(times[-1] - times[0]) / (len(times) - 1) for times in every]


def _times(
    process: "subprocess.Popen[bytes]", least: int, begin: float = 0.0, end: float = 0.0
) -> list[float]:
    """Read when epochs ended: those between two moments, or so many if there are fewer."""
    times: list[float] = []
    assert process.stdout is not None
    while len(times) < least or times[-1] < end:
        line = process.stdout.readline()
        if not line:
            raise GnnVpaError("a process has ended before it was measured: train more epochs")
        if (moment := float(line)) >= begin:
            times.append(moment)
    return times


def _shown(seconds: Sequence[float]) -> str:
    return ", ".join(f"{1e3 * own:.0f}" for own in seconds)


def _train(group: Group, device: str) -> None:
    """Train, and print when each epoch ended."""
    graphs = load(group.dataset)
    lanes = [Lane(fold, split) for fold, split in enumerate(splits(graphs.y, 10))]
    tasks = [Task(group.model, aggr, features=group.features) for aggr in group.aggrs]
    protocol = Protocol(epochs=_EPOCHS, precision=group.precision)
    fit(graphs, tasks, protocol, lanes, device=device, progress=_tell)


def _tell(epoch: int) -> None:
    print(time.time(), flush=True)


if __name__ == "__main__":
    *_group, _device = json.loads(sys.argv[1])
    _train(Group(*_group), _device)
