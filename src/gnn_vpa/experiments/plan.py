"""What cells will ask of the machine, before anything is trained."""

from dataclasses import dataclass

from ..graphs import GraphSet
from ..training.task import Training
from ..training.trainer import _Family
from .groups import Group, shares_steps
from .memory import in_bytes


@dataclass(frozen=True)
class Needs:
    """What the steps of a group need.

    Attributes:
        lanes: Trainings side by side in a step.
        memory: Bytes that these take.

    Example:
        >>> str(Needs(lanes=30, memory=1_530_000_000))
        '1.5 GB'
    """

    lanes: int
    memory: int

    def __str__(self) -> str:
        return in_bytes(self.memory)


def needs(group: Group, graphs: GraphSet, device: str) -> Needs:
    """Return what the largest steps of a group will need; of its cells one by one on the CPU.

    There it is at most that: alike nodes are merged when the training begins.

    Example:
        >>> from gnn_vpa.experiments import expand, grouped
        >>> from gnn_vpa.graphs import load
        >>> (group,) = grouped(expand(["MUTAG"], aggrs=["vpa"]).cells, "cpu")
        >>> needs(group, load("MUTAG"), "cpu").lanes
        5
    """
    import torch

    assert group.protocol is not None
    together = shares_steps(device)
    tasks, lanes = group.tasks, group.lanes(graphs)
    if not together:
        tasks, lanes = tasks[:1], lanes[: group.cells[0].folds]
    settings = (torch.device(device), torch.float32)
    family = _Family(graphs, tasks, group.protocol, *settings, merging=together)
    trainings = [Training(task, lane) for task in tasks for lane in lanes]
    most = max(len(side) for side in family.groups(trainings))
    return Needs(most, most * family.memory())
