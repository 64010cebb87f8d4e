"""What cells will ask of the machine, before anything is trained."""

from dataclasses import dataclass
from itertools import pairwise

from ..graphs import GraphSet
from ..training.task import Training
from ..training.trainer import Family, cut_evenly, room_in_cache
from .groups import Group, shares_steps
from .memory import DataSize, in_bytes, memory_of_process


@dataclass(frozen=True)
class Needs:
    """What the steps of a group need.

    Attributes:
        lanes: Trainings side by side in a step.
        memory: Bytes that these take; on the CPU, those of a whole process.

    Example:
        >>> str(Needs(lanes=30, memory=1_530_000_000))
        '1.5 GB'
    """

    lanes: int
    memory: int

    def __str__(self) -> str:
        return in_bytes(self.memory)


def needs(group: Group, graphs: GraphSet, device: str) -> Needs | None:
    """Return what the largest steps of a group will need; of its cells one by one on the CPU.

    There it may be more at once: alike nodes are merged when the training begins. Where a setting
    is chosen in each fold, the first stands for all. Of a baseline, and of a model of one's own,
    nothing is known.

    Example:
        >>> from gnn_vpa.experiments import expand, grouped
        >>> from gnn_vpa.graphs import load
        >>> (group,) = grouped(expand(["MUTAG"], aggrs=["vpa"]).cells, "cpu")
        >>> str(needs(group, load("MUTAG"), "cpu"))
        '482 MB'
    """
    first = group.cells[0]
    if group.protocol is None or first.task.source:
        return None
    if not shares_steps(device):
        rows = graphs.num_nodes / max(graphs.num_graphs, 1) * group.protocol.batch_size
        cuts = cut_evenly(first.folds, room_in_cache(rows), shares=2)
        whole = memory_of_process(group.cells, {group.content: DataSize.of(graphs)})
        return Needs(max(end - begin for begin, end in pairwise(cuts)), whole)
    import torch

    lanes, tasks = group.lanes(graphs), list(dict.fromkeys(task for task, _ in group.methods))
    if first.selection is not None:
        tasks = [first.candidates()[0].task]
        lanes = lanes * first.selection.final_runs
    family = Family(graphs, tasks, group.protocol, torch.device(device), torch.float32, True)
    trainings = [Training(task, lane) for task, _ in group.methods for lane in lanes]
    most = max(len(side) for side in family.groups(trainings))
    return Needs(most, most * family.memory())
