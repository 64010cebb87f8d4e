"""The signal that a training starts with: a method's initial weights, probed on a few graphs."""

from typing import TYPE_CHECKING, NamedTuple

from ..graphs import GraphSet
from ..random_state import seeded
from ..training import Task, own

if TYPE_CHECKING:
    from ..signal import Report

_GRAPHS = 16


class Signal(NamedTuple):
    """What a message-passing layer does to the signal before anything is trained.

    Attributes:
        layer: The layer.
        variance: Of what it returns.
        backward_variance: Of the gradient that comes back to it; NaN where none does.
        distance: Mean distance of neighbours; NaN if unknown.

    Example:
        >>> Signal("convs.0", 1.0, 0.5, 0.9).variance
        1.0
    """

    layer: str
    variance: float
    backward_variance: float
    distance: float


def initial_signals(graphs: GraphSet, task: Task, count: int = _GRAPHS) -> list[Signal]:
    """Probe a method at its start.

    Args:
        graphs: The data set.
        task: The method.
        count: How many graphs to take.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> [signal.layer for signal in initial_signals(load("MUTAG"), Task("gin", "vpa"))]
        ['convs.0', 'convs.1', 'convs.2', 'convs.3']
    """
    from ..signal.internal import layers_of

    with seeded(0):  # initial weights, and dropout in the backward pass
        report = (_probe_own if task.source else _probe_ours)(graphs, task, count)
    return [
        Signal(
            step.name,
            step.forward.variance,
            float("nan") if step.backward is None else step.backward.variance,
            step.distance,
        )
        for step in layers_of(report.steps)
    ]


def _probe_ours(graphs: GraphSet, task: Task, count: int) -> "Report":
    from ..signal import probe
    from ..signal.internal import papers_model

    subject = papers_model(
        *(graphs, task.model, task.aggr),
        variant=task.variant,
        kind=task.features,
        size=count,
        **dict(task.options),
    )
    return probe(subject.model, *subject.lessons[0].args)


def _probe_own(graphs: GraphSet, task: Task, count: int) -> "Report":
    import torch

    from ..signal import probe

    model = own.own_model(task, graphs)
    ids = torch.randperm(graphs.num_graphs)[:count]
    source = own.Source(graphs, task.features, torch.device("cpu"), torch.float32)
    adapter = own.Adapter.of(model, task.model)
    args, kwargs = adapter(lambda *args, **kwargs: (args, kwargs), source.cut(ids))
    return probe(model, *args, **kwargs)
