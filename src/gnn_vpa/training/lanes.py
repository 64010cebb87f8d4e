"""Which trainings can share a step.

Every linear aggregation is a sum with a scale ``N^(-p)`` for each target. So lanes whose models
differ in nothing else run the same operations, each with its own exponent: p = 0 for sum, 1/2 for
vpa, 1 for mean. What the exponent is of, a model says itself (``Model.exponent``): attention has
``(sum_j c_ij^2)^(-p)``, SGC ``(d_i d_j)^(-p)``. The maximum is no sum, and its lanes keep to
themselves.
"""

from collections.abc import Iterable
from dataclasses import replace

from ..aggregations import aggregation
from ..nn import MODELS
from .task import Task


def families(tasks: Iterable[Task]) -> list[list[Task]]:
    """Divide tasks into those whose trainings can share a step, in the order of appearance.

    Example:
        >>> tasks = [Task("gin", aggr) for aggr in ("sum", "max", "vpa", "power(0.3)")]
        >>> [[task.aggr for task in family] for family in families(tasks)]
        [['sum', 'vpa', 'power(0.3)'], ['max']]
    """
    found: dict[tuple[bool, Task], list[Task]] = {}
    for task in tasks:
        if not task.aggr:  # a baseline, which stands alone
            found[False, task] = [task]
            continue
        is_max = aggregation(task.aggr).kind == "maximum"
        of_lanes = {"start", *MODELS[task.model].lane_options}
        shared = tuple(option for option in task.options if option[0] not in of_lanes)
        found.setdefault((is_max, replace(task, aggr="", options=shared)), []).append(task)
    return list(found.values())
