"""Many trainings as one: the lanes' weights are stacked, and every step serves all of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from ..errors import UsageError
from ..graphs import GraphSet
from .captured import CapturedGroup
from .checkpoint import Checkpoint
from .group import Group
from .layered import Layered
from .resident import Resident, model_for, resident
from .tables import can_layer, tables
from .task import Lane, Outcome, Protocol, Task

_CACHED_ROWS = 8192  # rows of features of width 64 that stay in a core's cache


def fit(
    graphs: GraphSet,
    task: Task,
    protocol: Protocol,
    lanes: Sequence[Lane],
    *,
    device: torch.device | str = "cpu",
    checkpoint: Path | None = None,
    progress: Callable[[int], None] | None = None,
    dtype: torch.dtype = torch.float32,
    merging: bool = True,
) -> list[Outcome]:
    """Train a model on every lane, and choose each lane's epoch by its validation accuracy.

    A lane's random numbers (initial weights, order of graphs, dropout) depend on the data set's
    name, the task, its fold and its seed alone. The outcome on the CPU is the same to the bit
    whether or not it was interrupted.

    Args:
        graphs: The data set.
        task: The model and its features.
        protocol: How it is trained.
        lanes: The trainings: folds, seeds.
        device: Where.
        checkpoint: A file to write now and then, and to go on from if it is there.
        progress: Called with the number of epochs done, of ``protocol.epochs``.
        dtype: Type of weights and features.
        merging: Whether to merge nodes that look alike, where that pays. It is exact.

    Returns:
        The outcomes, in the order of the lanes.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from gnn_vpa.graphs import splits
        >>> pair, line = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> graphs = [Data(edge_index=e, num_nodes=3, y=i) for i, e in enumerate((pair, line))] * 20
        >>> data = GraphSet.from_pyg(graphs, name="toy")
        >>> lanes = [Lane(fold, split) for fold, split in enumerate(splits(data.y, folds=4))]
        >>> outcomes = fit(data, Task("gin", "vpa"), Protocol(epochs=30), lanes)
        >>> outcomes[0].test_acc
        1.0
    """
    _check(graphs, protocol, lanes)
    device = torch.device(device)
    with torch.random.fork_rng(devices=[]):
        model = model_for(task, graphs).to(device, dtype)  # the lanes' weights take turns in it
    data: Resident | Layered
    if merging and device.type == "cpu" and can_layer(model):
        data = Layered(tables(graphs, task, model, dtype))
    else:
        data = resident(graphs, task, model, device, dtype, merging)
    groups = _groups(graphs, protocol, lanes, device)
    saved = Checkpoint(checkpoint, graphs, task, protocol, lanes, (dtype, merging))
    outcomes: list[Outcome] = saved.outcomes
    done = 0
    for lanes_here in groups:
        if done < len(outcomes):
            done += len(lanes_here)
            continue
        make = CapturedGroup if device.type == "cuda" else Group
        group = make(graphs, data, task, protocol, lanes_here, model, dtype)
        saved.restore(group)
        while group.epoch < protocol.epochs:
            group.run_epoch()
            saved.keep(group)
            if progress is not None:
                trained = done * protocol.epochs + len(lanes_here) * group.epoch
                progress(trained // len(lanes))
        done += len(lanes_here)
        outcomes.extend(group.outcomes())
        saved.keep_outcomes()
    return outcomes


def _check(graphs: GraphSet, protocol: Protocol, lanes: Sequence[Lane]) -> None:
    for name, value in vars(protocol).items():
        if value <= 0:
            raise UsageError(f"{name}: expected more than 0, got {value}.")
    if len(lanes) == 0:
        raise UsageError("lanes: there is nothing to train; pass at least one fold.")
    for lane in lanes:
        for part, ids in zip(lane.split._fields, lane.split, strict=True):
            if len(ids) == 0:
                raise UsageError(
                    f"fold {lane.fold} of {graphs.name} has no {part} graphs: use fewer folds."
                )


def _groups(
    graphs: GraphSet, protocol: Protocol, lanes: Sequence[Lane], device: torch.device
) -> list[list[Lane]]:
    """Divide lanes into those that train side by side.

    Lanes that differ in their number of steps must not share one; on the CPU no more share it
    than the cache can hold. What a lane computes with depends on the data alone, never on the
    machine: so a run that goes on elsewhere goes on as it began.
    """
    room = len(lanes)
    if device.type == "cpu":
        nodes = graphs.num_nodes / max(graphs.num_graphs, 1) * protocol.batch_size
        room = max(1, round(_CACHED_ROWS / max(nodes, 1)))
    groups: list[list[Lane]] = []
    steps = None
    for lane in lanes:
        own = -(-len(lane.split.train) // protocol.batch_size)
        if own != steps or len(groups[-1]) >= room:
            groups.append([])
        groups[-1].append(lane)
        steps = own
    return groups
