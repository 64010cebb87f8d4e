"""Theory beside measurement: the variance after every layer of the paper's models."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..errors import UsageError
from ..nn import Model
from ..nn.internal import one_hot
from ..ops import Graph
from ..ops.internal import as_graph
from ._start import as_training_starts
from ._steps import steps_of


class LayerSignal(NamedTuple):
    """A layer's variance before its activation: predicted twice, and measured.

    Attributes:
        layer: What it is called in the model.
        independent: What the lemmas predict, from the input on: messages are independent.
        correlated: The same with the correlation that is measured at every layer.
        measured: The variance over all nodes and features.
        second_moment: The mean square over all of them. The predictions are of it too, as random
            weights make a mean of 0.
        rho: The mean correlation of two messages into the same node.

    Example:
        >>> LayerSignal("convs.0", 1.0, 9.5, measured=9.7, second_moment=9.8, rho=0.94).rho
        0.94
    """

    layer: str
    independent: float
    correlated: float
    measured: float
    second_moment: float
    rho: float


@torch.no_grad()
def signal_by_layer(
    model: Model, x: Tensor, graph: Graph | Tensor, readout: Graph | Tensor
) -> list[LayerSignal]:
    """Predict and measure the variance after every layer of one of the paper's models.

    The prediction starts from the features, and follows them through the network node by node, by
    the edges, the weights as they are, and two assumptions: weights are random and centred, and
    activations are rectified normals. The average over all nodes is returned.

    Args:
        model: GIN, GCN, GAT or SGC, or a ``DeepGCN``, with initial weights.
        x: Features ``[nodes, in_channels]``, or the codes ``[nodes]`` of one-hot ones.
        graph: A ``Graph`` or an ``edge_index``, without multiplicities.
        readout: ``Graph.readout(batch)``, or ``batch [nodes]`` itself.

    Returns:
        A record for each layer, and one for the layer behind the readout where it is an MLP's. GIN
        is looked at before the first norm of each layer.

    Example:
        >>> from gnn_vpa import build_model
        >>> _ = torch.manual_seed(0)
        >>> ring = torch.stack([torch.arange(50), torch.arange(1, 51) % 50])
        >>> both = torch.cat([ring, ring.flip(0)], dim=1)
        >>> batch = torch.zeros(50, dtype=torch.int64)
        >>> first, *_ = signal_by_layer(build_model("gcn", 8, 2), torch.randn(50, 8), both, batch)
        >>> abs(first.independent / first.measured - 1) < 0.5, abs(first.rho) < 0.2
        (True, True)
    """
    if not isinstance(model, Model):
        raise UsageError(
            f"model: expected one of gnn_vpa.nn, got {type(model).__name__}. "
            "gnn_vpa.probe measures any model."
        )
    if not x.is_floating_point():
        x = one_hot(x, model.in_channels, next(model.parameters()).dtype)
    graph = as_graph(graph, x.shape[0])
    if graph.multiplicity is not None:
        raise UsageError("graph: a merged graph hides degrees. Pass the whole one.")
    pool = Graph.readout(readout) if isinstance(readout, Tensor) else readout
    steps = list(steps_of(model, graph, pool))
    seen = _seen(model, [step.module for step in steps], (x, graph, pool))
    names = {module: path for path, module in model.named_modules()}

    signals: list[LayerSignal] = []
    expected = [x.double().square().mean(1, keepdim=True)] * 2  # without and with correlation
    past = expected  # those of the step before, ahead of the activation
    z = x
    for step in steps:
        features, out = seen[step.module]
        if step.reads:
            features = z.relu()
        mixed = [
            step.expect(v, features, known)
            for v, known in zip(expected, (False, True), strict=True)
        ]
        z = step.renew * out + (step.keep * z if step.keep else 0)
        past = [
            step.renew**2 * new.variances + (step.keep**2 * old if step.keep else 0)
            for new, old in zip(mixed, past, strict=True)
        ]
        expected = [torch.full_like(v, 0.5) if step.normalised else v / 2 for v in past]
        wide = z.double()
        signals.append(
            LayerSignal(
                names[step.module],
                independent=float(past[0].mean()),
                correlated=float(past[1].mean()),
                measured=float(wide.var(correction=0)),
                second_moment=float(wide.square().mean()),
                rho=mixed[1].rho,
            )
        )
    return signals


def _seen(
    model: nn.Module, modules: Sequence[nn.Module], inputs: tuple[Any, ...]
) -> dict[nn.Module, tuple[Tensor, Tensor]]:
    """Run a model, and return the first argument and the result of each of these modules."""
    found: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def watch(module: nn.Module, args: tuple[Any, ...], out: Tensor) -> None:
        found[module] = args[0], out

    handles = [module.register_forward_hook(watch) for module in modules]
    try:
        with as_training_starts(model):
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found
