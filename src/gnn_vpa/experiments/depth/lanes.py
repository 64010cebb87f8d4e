"""Networks of one depth on one fold, trained side by side on the same batches."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state
from torch.nn.functional import cross_entropy

from ...graphs import Split
from ...nn.deep import DeepGCN
from ...signal import calibrate, init_
from ...signal._variance import variance
from .material import Batch, Material
from .variant import Training, Variant

Told = Callable[[int], None]  # of the number of epochs that are done


@dataclass(frozen=True)
class Outcome:
    """What became of one network.

    Attributes:
        variant: The network.
        signal: The variance of each layer before its activation, at the start.
        gradient: The length of the first layer's gradient over the last layer's, at the start.
        loss: The training loss by epoch; it ends where it is not finite.
        valid: The validation accuracy by epoch.
        test: The test accuracy by epoch.
    """

    variant: Variant
    signal: tuple[float, ...]
    gradient: float
    loss: tuple[float, ...]
    valid: tuple[float, ...]
    test: tuple[float, ...]

    @property
    def diverged(self) -> bool:
        """Whether the training loss stopped being finite."""
        return not math.isfinite(self.loss[-1])

    @property
    def best(self) -> int:
        """The first epoch, from 0, with the highest validation accuracy."""
        return max(range(len(self.valid)), key=lambda epoch: self.valid[epoch])


def train(
    data: Material,
    split: Split,
    depth: int,
    variants: Sequence[Variant],
    training: Training,
    told: Told | None = None,
) -> list[Outcome]:
    """Train networks of one depth: those that take the maximum, or any of the others.

    All of them see the same batches. Their weights are stacked, so that a step is one for all,
    and none knows of the others.

    Args:
        data: The data set.
        split: The graphs to train on, to choose the epoch by, and to test on.
        depth: Number of layers.
        variants: The networks.
        training: How.
        told: Called after each epoch.
    """
    device = data.y.device
    split = Split(*(part.to(device) for part in split))
    models = [_model(data, split, depth, variant, training) for variant in variants]
    signals = [_signal(model, data, split) for model in models]
    lanes = _Lanes(models, data, [variant.aggr for variant in variants], training)
    curves: list[Tensor] = []
    gradient: Tensor | None = None
    order = torch.Generator().manual_seed(training.seed)
    for epoch in range(training.epochs):
        shuffled = split.train[torch.randperm(len(split.train), generator=order).to(device)]
        loss = torch.zeros(len(models), device=device)
        for ids in torch.split(shuffled, training.batch_size):
            loss += lanes.step(ids) * len(ids) / len(shuffled)
            gradient = lanes.gradient() if gradient is None else gradient
        accuracies = [lanes.accuracy(ids) for ids in (split.valid, split.test)]
        curves.append(torch.stack([loss, *accuracies]).cpu())
        if told is not None:
            told(epoch + 1)
        if not bool(curves[-1][0].isfinite().any()):
            break
    assert gradient is not None
    return [
        Outcome(variant, signal, ratio, *_curves(torch.stack(curves)[:, :, lane]))
        for lane, (variant, signal, ratio) in enumerate(
            zip(variants, signals, gradient.tolist(), strict=True)
        )
    ]


def _curves(numbers: Tensor) -> list[tuple[float, ...]]:
    """Cut the curves of one lane, ``[epochs, 3]``, off behind the first loss that is not finite."""
    broken = (~numbers[:, 0].isfinite()).nonzero()
    end = int(broken[0]) + 1 if len(broken) else len(numbers)
    return [tuple(curve) for curve in numbers[:end].T.tolist()]


def _model(
    data: Material, split: Split, depth: int, variant: Variant, training: Training
) -> DeepGCN:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        model = DeepGCN(
            data.in_channels,
            data.num_classes,
            variant.aggr,
            width=training.width,
            hidden=2 * training.width,
            depth=depth,
            dropout=training.dropout,
            branch=variant.branch(depth),
        )
        if variant.weights != "default":
            init_(model)
    model.to(data.y.device)
    if variant.weights == "calibrated":
        batch = _whole(model, data, split)
        calibrate(model, (batch.x, batch.graph, batch.readout), nodes=batch.nodes)
    return model


@torch.no_grad()
def _signal(model: DeepGCN, data: Material, split: Split) -> tuple[float, ...]:
    batch = _whole(model, data, split)
    return tuple(variance(z, batch.nodes) for z in model.signals(batch.x, batch.graph))


def _whole(model: DeepGCN, data: Material, split: Split) -> Batch:
    return data.batch(split.train, [model.aggr])


class _Lanes:
    """The stacked weights, and what is done with them."""

    def __init__(
        self, models: list[DeepGCN], data: Material, aggrs: list[Any], training: Training
    ) -> None:
        self._model, self._data, self._aggrs = models[0], data, aggrs
        self._weights, self._buffers = stack_module_state(models)
        self._adam = torch.optim.Adam(self._weights.values(), lr=training.learning_rate, fused=True)
        self._drop = torch.Generator().manual_seed(training.seed + 1)

    def step(self, ids: Tensor) -> Tensor:
        """Train on these graphs; return the mean loss of each lane, ``[L]``."""
        self._model.train()
        lanes = len(self._aggrs)
        shape = self._model.dropout_shape(len(ids))
        uniform = torch.rand(shape, generator=self._drop).to(ids.device).repeat(lanes, 1)
        self._adam.zero_grad()
        scores = self._scores(ids, uniform)
        target = self._data.y[ids].repeat(lanes)
        loss = cross_entropy(scores, target, reduction="none").view(lanes, -1).mean(1)
        loss.sum().backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        return loss.detach()

    def gradient(self) -> Tensor:
        """Return the first layer's gradient over the last layer's, ``[L]``, of the last step."""
        ends = [f"convs.{layer}.lin_root.weight" for layer in (0, len(self._model.convs) - 1)]
        lengths: list[Tensor] = []
        for name in ends:
            grad = self._weights[name].grad
            assert grad is not None
            lengths.append(grad.double().flatten(1).square().sum(1).sqrt())
        return lengths[0] / lengths[1]

    @torch.no_grad()
    def accuracy(self, ids: Tensor) -> Tensor:
        """Return the share of these graphs that each lane classifies rightly, ``[L]``."""
        self._model.eval()
        hits = self._scores(ids).argmax(1).view(-1, len(ids)) == self._data.y[ids]
        return hits.float().mean(1)

    def _scores(self, ids: Tensor, uniform: Tensor | None = None) -> Tensor:
        batch = self._data.batch(ids, self._aggrs)
        arguments = (batch.x, batch.graph, batch.readout, batch.nodes, uniform)
        scores: Tensor = functional_call(self._model, (self._weights, self._buffers), arguments)
        return scores
