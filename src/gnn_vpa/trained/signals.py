"""The signal in a trained network, for its card."""

import math

from ..errors import GnnVpaError
from ..graphs import GraphSet
from .batch import Part
from .model import TrainedModel

_GRAPHS = 16


def layer_variances(model: TrainedModel, graphs: GraphSet) -> dict[str, float | None]:
    """Return the variance of what each message-passing layer returns, on the first graphs.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> from gnn_vpa.trained import train_model
        >>> from gnn_vpa.training import Protocol, Task
        >>> mutag = load("MUTAG")
        >>> model = train_model(mutag, Task("gin", "vpa"), Protocol(epochs=1))
        >>> list(layer_variances(model, mutag))
        ['convs.0', 'convs.1', 'convs.2', 'convs.3']
    """
    from ..signal import probe  # it loads PyG, which few trainings need
    from ..signal.internal import layers_of

    part = Part(graphs, 0, min(_GRAPHS, graphs.num_graphs))
    args, kwargs = model.caller.arguments(part)
    try:
        report = probe(model.module, *args, **kwargs)
    except GnnVpaError:  # not every model of a user's can be probed, and none must
        return {}
    found = {step.name: step.forward.variance for step in layers_of(report.steps)}
    return {name: value if math.isfinite(value) else None for name, value in found.items()}
