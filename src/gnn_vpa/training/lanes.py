"""Which trainings can share a step.

Every linear aggregation is a sum with a scale ``N^(-p)`` for each target. So lanes whose models
differ in nothing else run the same operations, each with its own exponent: p = 0 for sum, 1/2 for
vpa, 1 for mean. What the exponent is of, a model says itself (``Model.exponent``): attention has
``(sum_j c_ij^2)^(-p)``, SGC ``(d_i d_j)^(-p)``. The maximum is no sum, and its lanes keep to
themselves.
"""

from collections.abc import Hashable, Iterable
from dataclasses import replace

from ..aggregations import aggregation
from ..nn import MODELS
from .task import Protocol, Task


def family_of(task: Task, protocol: Protocol | None = None) -> Hashable:
    """Return what trainings have in common that can share a step: equal for these alone.

    They may differ in what a lane has as numbers of its own: the exponent of the aggregation, the
    initial weights, learning rate and weight decay, and what the model names in ``lane_options``.

    Example:
        >>> slow, fast = Protocol(), Protocol(learning_rate=0.01)
        >>> family_of(Task("gin", "sum"), slow) == family_of(Task("gin", "vpa"), fast)
        True
        >>> family_of(Task("gin", "sum"), slow) == family_of(Task("gin", "max"), slow)
        False
    """
    manner = protocol and replace(protocol, learning_rate=1.0, weight_decay=0.0)
    if not task.aggr or task.model not in MODELS:  # a baseline, or a model that is not ours
        return task, manner
    is_max = aggregation(task.aggr).kind == "maximum"
    of_lanes = {"start", *MODELS[task.model].lane_options}
    shared = tuple(option for option in task.options if option[0] not in of_lanes)
    return is_max, replace(task, aggr="", options=shared), manner


def families(tasks: Iterable[Task]) -> list[list[Task]]:
    """Divide tasks into those whose trainings can share a step, in the order of appearance.

    Example:
        >>> tasks = [Task("gin", aggr) for aggr in ("sum", "max", "vpa", "power(0.3)")]
        >>> [[task.aggr for task in family] for family in families(tasks)]
        [['sum', 'vpa', 'power(0.3)'], ['max']]
    """
    found: dict[Hashable, list[Task]] = {}
    for task in tasks:
        found.setdefault(family_of(task), []).append(task)
    return list(found.values())
