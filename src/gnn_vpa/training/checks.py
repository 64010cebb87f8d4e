"""What is wrong with a training that is asked for, said before anything is trained."""

from collections.abc import Iterable, Sequence

import torch

from ..errors import UsageError
from ..graphs import GraphSet
from ..graphs.targets import known
from .metrics import metric_for
from .objective import loss_for
from .own import check, is_own
from .task import Lane, Protocol, Task

_PARTS = {"train": "training", "valid": "validation", "test": "test"}


def check_fit(
    graphs: GraphSet,
    tasks: Sequence[Task],
    protocols: Sequence[Protocol],
    lanes: Sequence[Lane],
    workers: int | None,
    device: torch.device,
) -> None:
    """Refuse what cannot be trained."""
    if graphs.weights is not None and device.type == "cuda":
        raise UsageError(
            f"{graphs.name}: graphs that count differently in the loss (sample_weight) are trained "
            "on the CPU alone: use device='cpu', or leave the weights away."
        )
    if workers is not None and workers < 1:
        raise UsageError(f"workers: expected a number from 1 on, or None, got {workers}.")
    if len(lanes) == 0 or len(tasks) == 0:
        raise UsageError("lanes: there is nothing to train; pass at least one fold, and a task.")
    if len(protocols) != len(tasks):
        raise UsageError(
            f"protocol: expected one, or one for each of {len(tasks)} tasks, got {len(protocols)}."
        )
    for lane in lanes:
        for part, ids in zip(lane.split._fields, lane.split, strict=True):
            if len(ids) == 0:
                raise UsageError(
                    f"fold {lane.fold} of {graphs.name} has no {part} graphs: use fewer folds."
                )
    check_targets(graphs, protocols, lanes)
    for task in tasks:
        if is_own(task.model):
            check(graphs, task)


def check_precision(trained: Iterable[tuple[Task, Protocol]], is_gpu: bool) -> None:
    """Refuse rows in bfloat16 where they cannot be had.

    Raises:
        UsageError: They were asked for on a CPU, or of a model that is not ours.

    Example:
        >>> check_precision([(Task("gin", "vpa"), Protocol(precision="bfloat16"))], is_gpu=True)
    """
    for task, protocol in trained:
        if protocol.precision == "float32":
            continue
        if not is_gpu:
            raise UsageError(
                f"precision: rows are kept in {protocol.precision} on a GPU alone: use "
                "device='cuda', or float32."
            )
        if is_own(task.model):
            raise UsageError(
                f"precision: what {task.model} computes in is for that model to say (with "
                "torch.autocast, for one): use float32."
            )


def check_targets(graphs: GraphSet, protocols: Iterable[Protocol], lanes: Sequence[Lane]) -> None:
    """Refuse folds in which there is nothing to learn, or of which the metric says nothing.

    Raises:
        UsageError: The message names the data set, the fold, the part and the metric.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from gnn_vpa.graphs import Split
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> data = GraphSet.from_pyg([Data(edge_index=pair, num_nodes=2, y=y) for y in (0, 1, 1)])
        >>> lane = Lane(0, Split(*torch.tensor([[0], [1], [2]])))
        >>> check_targets(data, [Protocol(metric="roc_auc")], [lane])
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: custom, fold 0: ROC-AUC is undefined in its validation part, ...
    """
    asked = dict.fromkeys(protocols)
    for protocol in asked:
        loss_for(protocol, graphs.kind)
    metrics = {metric_for(protocol.metric, graphs.kind) for protocol in asked}
    misses = not bool(known(graphs.y).all())
    for lane in lanes:
        if misses and not bool(known(graphs.y[lane.split.train]).any()):
            raise UsageError(
                f"{graphs.name}, fold {lane.fold}: all targets of its training part are missing, "
                "so that there is nothing to learn: use fewer folds, or another target."
            )
        for part in ("valid", "test"):
            own = graphs.y[getattr(lane.split, part)]
            for metric in metrics:
                if not metric.is_defined(own, graphs.num_outputs):
                    raise UsageError(
                        f"{graphs.name}, fold {lane.fold}: {metric.title} is undefined in its "
                        f"{_PARTS[part]} part, which lacks {metric.needs}: use fewer folds, or "
                        "another metric."
                    )
