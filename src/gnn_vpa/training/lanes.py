"""Which trainings can share a step, and how they differ in it.

Every linear aggregation is a sum with a scale ``N^(-p)`` for each target: p = 0 for sum, 1/2 for
vpa and 1 for mean. So lanes whose models differ in nothing else run the same operations, each with
its own exponent. Attention has ``(sum_j c_ij^2)^(-p)``: p = 0 for the default form and 1/2 for vpa;
SGC ``(d_i d_j)^(-p)``: 1/2 and 1/4. The maximum is no sum, and its lanes keep to themselves.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from .task import Task

Form = Literal["gin", "gcn", "gat", "sgc", "max"]

_EXPONENTS = {
    "gin": {"sum": 0.0, "mean": 1.0, "vpa": 0.5},
    "gcn": {"sum": 0.0, "mean": 1.0, "vpa": 0.5},
    "gat": {"default": 0.0, "vpa": 0.5},
    "sgc": {"default": 0.5, "vpa": 0.25},
}


def form_of(task: Task) -> Form:
    """Return which operations a task's steps are made of.

    Example:
        >>> form_of(Task("gin", "vpa")), form_of(Task("gin", "max"))
        ('gin', 'max')
    """
    return "max" if task.aggr == "max" else task.model  # type: ignore[return-value]


def exponent_of(task: Task) -> float:
    """Return ``p`` of a task's scale; 0 for the maximum, which has none.

    Example:
        >>> exponent_of(Task("gcn", "mean")), exponent_of(Task("sgc", "vpa"))
        (1.0, 0.25)
    """
    return _EXPONENTS[task.model].get(task.aggr, 0.0)


def families(tasks: Iterable[Task]) -> list[list[Task]]:
    """Divide tasks into those whose trainings can share a step, in the order of appearance.

    Example:
        >>> tasks = [Task("gin", aggr) for aggr in ("sum", "max", "vpa")]
        >>> [[task.aggr for task in family] for family in families(tasks)]
        [['sum', 'vpa'], ['max']]
    """
    found: dict[tuple[Form, Task], list[Task]] = {}
    for task in tasks:
        found.setdefault((form_of(task), replace(task, aggr="")), []).append(task)
    return list(found.values())
