"""Networks of one depth on one fold: their signal at the start, and their training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from ... import training as engine
from ...graphs import FeatureKind, GraphSet, Split
from ...nn import DeepGCN
from ...signal import variance
from ...training import Lane, Protocol, Task
from .variant import Training, Variant

Told = Callable[[int], None]  # of the number of epochs that are done


@dataclass(frozen=True)
class Outcome:
    """What became of one network.

    Attributes:
        variant: The network.
        signal: The variance of each layer before its activation, at the start.
        gradient: The length of the first layer's gradient over the last layer's, at the start, on
            the first of the training graphs.
        trained: Its training.
    """

    variant: Variant
    signal: tuple[float, ...]
    gradient: float
    trained: engine.Outcome

    @property
    def diverged(self) -> bool:
        """Whether the training loss stopped being finite."""
        return self.trained.diverged_epoch is not None


def train(
    graphs: GraphSet,
    fold: int,
    split: Split,
    depth: int,
    variants: Sequence[Variant],
    training: Training,
    *,
    features: FeatureKind = "auto",
    device: str = "cpu",
    told: Told | None = None,
) -> list[Outcome]:
    """Train networks of one depth.

    Args:
        graphs: The data set.
        fold: The number of the fold.
        split: The graphs to train on, to choose the epoch by, and to test on.
        depth: Number of layers.
        variants: The networks; on a GPU those that can share a step do.
        training: How.
        features: Node features.
        device: Where.
        told: Called after each epoch.
    """
    lane = Lane(fold, split, training.seed)
    tasks = [_task(variant, depth, training, features) for variant in variants]
    starts = [_start(graphs, engine.Training(task, lane), training.batch_size) for task in tasks]
    protocol = Protocol(training.epochs, training.batch_size, training.learning_rate)
    trained = engine.fit(graphs, tasks, protocol, [lane], device=device, progress=told)
    return [
        Outcome(variant, *start, outcome)
        for variant, start, outcome in zip(variants, starts, trained, strict=True)
    ]


def _task(variant: Variant, depth: int, training: Training, features: FeatureKind) -> Task:
    options = {
        "branch": variant.branch(depth), "depth": depth, "dropout": training.dropout,
        "hidden": 2 * training.width, "start": variant.weights, "width": training.width,
    }  # fmt: skip
    return Task("deep", variant.aggr, features=features, options=tuple(options.items()))


def _start(
    graphs: GraphSet, training: engine.Training, batch_size: int
) -> tuple[tuple[float, ...], float]:
    """Return the variance of every layer, and the first layer's gradient over the last one's."""
    model = engine.initial_model(graphs, training, torch.float32)
    assert isinstance(model, DeepGCN)
    ids, kind = training.lane.split.train, training.task.features
    batch = engine.plain_batch(graphs, kind, ids)
    with torch.no_grad():
        signal = tuple(variance(z) for z in model.signals(batch.x, batch.graph))
    first = ids[:batch_size]
    scores = model.eval()(*engine.plain_batch(graphs, kind, first))
    cross_entropy(scores, graphs.y[first]).backward()  # type: ignore[no-untyped-call]
    ends = [model.get_parameter(f"convs.{n}.lin_root.weight").grad for n in (0, -1 % model.rounds)]
    lengths = [float(grad.double().norm()) for grad in ends if grad is not None]
    return signal, lengths[0] / lengths[1] if lengths[1] > 0 else float("nan")
