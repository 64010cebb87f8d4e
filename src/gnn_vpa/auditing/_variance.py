"""The variance that aggregations are expected to leave, layer by layer, on these graphs."""

import math

import torch
from torch import Tensor

from ..aggregations import operators
from ..graphs import FeatureKind, GraphSet, features
from ..nn import Model, build_model
from ..random_state import seeded
from ..signal import LayerSignal, average_signals, sample, signal_by_layer

# A sample has about so many graphs, nodes and edges, and numbers in its features, at most.
_GRAPHS, _PARTS, _NUMBERS = 100, 100_000, 20_000_000
_DRAWS = 3  # of weights

Variances = dict[str, list[LayerSignal]]


def expected_variances(
    graphs: GraphSet, kind: FeatureKind, layers: int, seed: int = 0
) -> Variances:
    """Expect the variance before the activation, for each aggregation and layer.

    The network is ``z_l = W_l aggr_j relu(z_l-1)_j``, from features of mean square 1, with weights
    that keep the variance where an aggregation does: with vpa and independent messages it stays 1.
    The expectation follows the lemmas node by node through a sample of the graphs, with the
    correlation of messages that is measured at every layer.

    Args:
        graphs: The data set.
        kind: Node features.
        layers: How many layers.
        seed: Seed of the sample and the weights.
    """
    if layers < 1 or graphs.num_edges == 0:
        return {}
    count = _sample_size(graphs, features(graphs, kind).width)
    x, graph, readout = sample(graphs, count, kind, seed)
    scale = x.double().square().mean().sqrt()
    if graph.num_edges == 0 or not scale > 0:
        return {}
    x = x.double() / scale
    return {
        aggr: average_signals(
            [
                signal_by_layer(_network(x.shape[1], aggr, layers, seed + n), x, graph, readout)[
                    :layers
                ]
                for n in range(_DRAWS)
            ]
        )
        for aggr in operators()
    }


def _sample_size(graphs: GraphSet, width: int) -> int:
    """Return how many graphs to take: fewer where they are large."""
    parts = (graphs.num_nodes + graphs.num_edges) / graphs.num_graphs
    numbers = graphs.num_nodes * width / graphs.num_graphs
    return max(1, math.floor(min(_GRAPHS, _PARTS / max(parts, 1), _NUMBERS / max(numbers, 1))))


@torch.no_grad()
def _network(in_channels: int, aggr: str, layers: int, seed: int) -> Model:
    """Return a GCN without the node's own term, with weights of variance gain / fan-in."""
    draw = torch.Generator().manual_seed(seed)
    with seeded():
        model = build_model("gcn", in_channels, 2, aggr, depth=layers).double()
    for number, layer in enumerate(model.terms()):
        gain = 1.0 if number == 0 else 2.0  # a ReLU halves the mean square of what it is given
        for weight, kind in layer.products:
            _fill(weight, gain if kind == "neighbours" else 0.0, draw)
        if layer.bias is not None:
            layer.bias.zero_()
    return model


def _fill(weight: Tensor, gain: float, draw: torch.Generator) -> None:
    weight.normal_(generator=draw).mul_(math.sqrt(gain / weight.shape[1]))
