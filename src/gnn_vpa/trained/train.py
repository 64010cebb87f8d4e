"""From graphs to a trained model: one training, the epoch chosen by its validation part."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from ..errors import GnnVpaError, UsageError
from ..graphs import GraphSet, Split
from ..graphs.splits import graphs_with_target
from ..random_state import seeded
from ..training import Lane, Outcome, Protocol, Task, fit, metric_for
from ..training.level_tables import model_for
from ..training.objective import moments
from ..training.own import Adapter, is_own, own_model
from ..training.task import Curves
from ..versions import versions
from .encoding import encoding_of
from .interval import interval_of
from .model import TrainedModel, Units
from .record import DataRecord, Judged, Record
from .signals import layer_variances
from .target import target_of

VALIDATION_FRACTION = 0.1
_PAPERS = Protocol()


def train_model(
    graphs: GraphSet,
    task: Task,
    protocol: Protocol = _PAPERS,
    split: Split | None = None,
    *,
    seed: int = 0,
    validation_fraction: float = VALIDATION_FRACTION,
    column: str | None = None,
    device: torch.device | str = "cpu",
    workers: int | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[int], None] | None = None,
    curves: Callable[[Sequence[int], Sequence[Curves]], None] | None = None,
) -> TrainedModel:
    """Train a model, and keep the weights of the epoch that was best on validation graphs.

    Args:
        graphs: The data set.
        task: The model and its features.
        protocol: How it is trained.
        split: Which graphs are for training and for validation; those for test, if there are any,
            are judged in the end and change nothing. None: see ``validation_fraction``.
        seed: Seed of the weights and of the order of graphs, and of the split that is made here.
        validation_fraction: Share of the graphs that choose the epoch, stratified where the
            targets are classes.
        column: What is learned of each graph, as users call it.
        device: Where it is trained; the model is on the CPU afterwards.
        workers: See ``fit``.
        checkpoint: See ``fit``.
        progress: Called with the number of epochs done.
        curves: See ``fit``; without test graphs the third curve is the second.

    Raises:
        UsageError: It cannot be trained so.
        GnnVpaError: The training diverged.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> model = train_model(load("MUTAG"), Task("gin", "vpa"), Protocol(epochs=2))
        >>> model.record.data.train, model.record.data.valid
        (169, 19)
    """
    if split is None:
        split = validation_split(graphs.y, validation_fraction, seed)
    has_test = len(split.test) > 0
    if not has_test:
        split = split._replace(test=split.valid)
    lane = Lane(0, split, seed)
    (outcome,) = fit(
        graphs,
        task,
        protocol,
        [lane],
        device=device,
        checkpoint=checkpoint,
        progress=progress,
        curves=curves,
        workers=workers,
        keep_weights=True,
    )
    return model_of(graphs, task, protocol, lane, outcome, has_test=has_test, column=column)


def model_of(
    graphs: GraphSet,
    task: Task,
    protocol: Protocol,
    lane: Lane,
    outcome: Outcome,
    *,
    has_test: bool = True,
    column: str | None = None,
    in_full: bool = True,
) -> TrainedModel:
    """Return the model that a training came to.

    Args:
        graphs: The data set.
        task: The model and its features.
        protocol: How it was trained.
        lane: The graphs of the training.
        outcome: What it came to, with weights.
        has_test: Whether the lane's test graphs took no part in the training.
        column: What was learned of each graph, as users call it.
        in_full: Whether its record is to have what takes time: the checksum of the graphs, and the
            signal in the network. Not for a model that nobody gets to see.

    Raises:
        GnnVpaError: The training diverged.

    Example:
        >>> from gnn_vpa.graphs import load, splits
        >>> mutag, task, protocol = load("MUTAG"), Task("gin", "vpa"), Protocol(epochs=2)
        >>> lane = Lane(0, splits(mutag.y)[0])
        >>> (outcome,) = fit(mutag, task, protocol, [lane], keep_weights=True)
        >>> model_of(mutag, task, protocol, lane, outcome).record.judged
        'test'
    """
    if outcome.diverged_epoch is not None:
        raise GnnVpaError(
            f"{task.model} on {graphs.name} diverged in epoch {outcome.diverged_epoch}: its loss "
            "is not finite, and there are no weights to keep. Use a smaller learning rate, or clip "
            "gradients."
        )
    if outcome.weights is None:
        raise UsageError("the outcome has no weights: call fit with keep_weights=True")
    target = target_of(graphs, column)
    with seeded():
        module = own_model(task, graphs) if is_own(task.model) else model_for(task, graphs)
    encoding = encoding_of(graphs, task.features, also=_seen(module, task))
    dtype = next(t.dtype for t in outcome.weights.values() if t.is_floating_point())
    module.to(dtype).load_state_dict(outcome.weights)
    units = None
    if target.kind == "regression":
        units = Units(*(p.to(dtype) for p in moments(graphs.y[lane.split.train].double())))
    content = graphs.checksum() if in_full else ""
    record = _record(graphs, content, protocol, lane, outcome, has_test)
    model = TrainedModel(module, task, protocol, encoding, target, record, units)
    if in_full:
        model.record = replace(record, signal=layer_variances(model, graphs))
    return model


def _seen(module: nn.Module, task: Task) -> tuple[str, ...]:
    """Return what a network sees besides node features, edges and which graph a node is of."""
    if not is_own(task.model):
        return ()
    adapter = Adapter.of(module, task.model)
    return ("edge_attr", "edge_weight", "pos") if adapter.takes_batch else adapter.keywords


def check_fraction(fraction: float, name: str = "validation_fraction") -> None:
    """Refuse what is no share of graphs for validation.

    Args:
        fraction: The share.
        name: What whoever asks for it calls it.

    Raises:
        UsageError: It is not between 0 and 1.

    Example:
        >>> check_fraction(0.1)
    """
    if not 0 < fraction < 1:
        raise UsageError(f"{name}: expected between 0 and 1, got {fraction}.")


def validation_split(
    y: Tensor,
    fraction: float = VALIDATION_FRACTION,
    seed: int = 0,
    name: str = "validation_fraction",
) -> Split:
    """Divide graphs into those for training and those for validation; none are for test.

    Stratified where the targets are classes; graphs without any target are in no part.

    Args:
        y: Target of each graph, see `GraphSet`.
        fraction: Share of the graphs for validation.
        seed: Seed of the shuffling.
        name: What whoever asks for the fraction calls it.

    Raises:
        UsageError: The fraction is no share, or there are too few graphs.

    Example:
        >>> [len(part) for part in validation_split(torch.arange(100) % 2)]
        [90, 10, 0]
    """
    from sklearn.model_selection import train_test_split

    check_fraction(fraction, name)
    there = graphs_with_target(y).numpy()
    classes = y.numpy()[there] if y.dim() == 1 else None
    try:
        train, valid = train_test_split(
            there, test_size=fraction, stratify=classes, random_state=seed
        )
    except ValueError as error:
        raise UsageError(
            f"{len(there)} graph(s) with a target cannot be divided into {1 - fraction:g} for "
            f"training and {fraction:g} for validation ({error}): use another "
            f"{name}, or more graphs"
        ) from error
    return Split(
        torch.from_numpy(train), torch.from_numpy(valid), torch.zeros(0, dtype=torch.int64)
    )


def _record(
    graphs: GraphSet,
    content: str,
    protocol: Protocol,
    lane: Lane,
    outcome: Outcome,
    has_test: bool,
) -> Record:
    metric = metric_for(protocol.metric, graphs.kind)
    assert outcome.predictions is not None
    judged: Judged = "test" if has_test else "validation"
    ids = lane.split.test if has_test else lane.split.valid
    said = outcome.predictions.test if has_test else outcome.predictions.valid
    interval, by = interval_of(metric, graphs.y[ids], said)
    train, valid, test = (len(part) for part in lane.split)
    sizes = graphs.num_graphs, graphs.num_nodes, graphs.num_edges, train, valid
    data = DataRecord(graphs.name, content, *sizes, test if has_test else 0)
    curves = {"train_loss": outcome.curve_train_loss, "validation": outcome.curve_val}
    return Record(
        data,
        metric.name,
        judged,
        {name: _number(pair[has_test]) for name, pair in outcome.scores.items()},
        interval,
        by,
        lane.seed,
        outcome.best_epoch,
        {name: tuple(_number(value) for value in curve) for name, curve in curves.items()},
        versions(),
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
