"""From names of models, aggregations and options to the tasks that they make."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter, signature
from numbers import Real
from typing import Any

from ..aggregations import aggregation
from ..errors import UsageError
from ..graphs import FeatureKind
from ..nn import MODELS
from ..training import Task
from .settings import check_option, option_grid

Methods = list[list[Task]]
"""A list for each model and aggregation: its tasks, one for each combination of options."""


def tasks_of(
    models: Sequence[str],
    aggrs: Sequence[str] | None,
    variant: str,
    features: FeatureKind,
    options: Mapping[str, object],
) -> tuple[Methods, list[str]]:
    """Combine models, their aggregations and their options.

    Returns:
        The tasks, and in words what was asked for and cannot be.

    Raises:
        UsageError: A name is unknown, or a model cannot be built so.

    Example:
        >>> methods, left_out = tasks_of(["gin"], ["vpa"], "released", "auto", {"width": [8, 16]})
        >>> [[task.options for task in tasks] for tasks in methods]
        [[(('width', 8),), (('width', 16),)]]
    """
    wanted = None if aggrs is None else [aggregation(name.strip()) for name in aggrs]
    left_out: list[str] = []
    methods: Methods = []
    taken = _taken(models, options, left_out)
    for model in models:
        grid = option_grid(taken[model])
        its = MODELS[model].aggregations()
        for entry in [aggregation(n) for n in its] if wanted is None else dict.fromkeys(wanted):
            if not MODELS[model].takes(entry):
                has = ", ".join(its)
                left_out.append(f"{model} has no aggregation {entry.name} (it has {has})")
                continue
            methods.append([Task(model, entry.name, variant, features, chosen) for chosen in grid])
    for task in (task for tasks in methods for task in tasks):
        _check(task)
    return methods, left_out


def own_or_ours(model: str | Callable[..., Any]) -> str:
    """Return the name of a model, ours or somebody's own.

    Example:
        >>> own_or_ours("GIN")
        'gin'
    """
    if not isinstance(model, str):
        raise UsageError(f"models: expected names, but there is {model!r} among them")
    return known("model", model, MODELS)


def known(what: str, name: str, names: Iterable[str]) -> str:
    """Return a name as it is spelled among those that are known.

    Raises:
        UsageError: It is not among them.

    Example:
        >>> known("model", " GIN", ["gcn", "gin"])
        'gin'
    """
    names = sorted(names)
    if (name := name.strip().casefold()) in names:
        return name
    near = get_close_matches(name, names, n=1)
    advice = f"did you mean {near[0]}?" if near else f"use {', '.join(names)}"
    raise UsageError(f"{what}: {name!r} is unknown: {advice}")


def _taken(
    models: Sequence[str], options: Mapping[str, object], left_out: list[str]
) -> dict[str, dict[str, object]]:
    """Give each model the options that it has; one that no model has is refused."""
    names = {model: _option_names(model) for model in models}
    for name in options:
        check_option(name)
        lacking = [model for model in models if name not in names[model]]
        if lacking and len(lacking) < len(models):
            left_out.append(f"{' and '.join(lacking)} has no option {name}, and is run without it")
    return {
        model: {
            name: value
            for name, value in options.items()
            # What no model has goes to all, so that they refuse it and name what they have.
            if name in names[model] or not any(name in known for known in names.values())
        }
        for model in models
    }


def _option_names(model: str) -> list[str]:
    parameters = signature(MODELS[model]).parameters.values()
    return [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]


def _check(task: Task) -> None:
    """Let the model itself refuse what it cannot be built with, before anything is trained."""
    import torch

    for name, value in task.options:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise UsageError(f"{name}: expected a number, got {value!r}")
    with torch.device("meta"):
        task.build(in_channels=1, num_classes=2)
