"""From names of models, aggregations and options to the tasks that they make."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter, signature
from numbers import Real
from typing import Any

from ..aggregations import aggregation
from ..errors import UsageError
from ..graphs import FeatureKind
from ..nn import MODELS
from ..random_state import seeded
from ..training import Task, own
from .settings import CONTROLS, check_option, option_grid

Methods = list[list[Task]]
"""A list for each model and aggregation: its tasks, one for each combination of options."""

_log = logging.getLogger("gnn_vpa")
_GIVEN = 2  # parameters of a factory that it is always called with: in_channels, out_channels


def tasks_of(
    models: Sequence[str | Callable[..., Any]],
    aggrs: Sequence[str] | None,
    variant: str,
    features: FeatureKind,
    options: Mapping[str, object],
    arguments: Sequence[str] = (),
) -> tuple[Methods, list[str]]:
    """Combine models, their aggregations and their options.

    A model of one's own is run as it is written, or with each of the aggregations that are named.
    An option that no model has may be a misspelled setting of the training, or one of the
    ``arguments`` of the caller.

    Returns:
        The tasks, and in words what was asked for and cannot be.

    Raises:
        UsageError: A name is unknown, or a model cannot be built so.

    Example:
        >>> methods, left_out = tasks_of(["gin"], ["vpa"], "released", "auto", {"width": [8, 16]})
        >>> [[task.options for task in tasks] for tasks in methods]
        [[(('width', 8),), (('width', 16),)]]
    """
    left_out: list[str] = []
    methods: Methods = []
    wanted = None if aggrs is None else list(dict.fromkeys(map(_aggregation, aggrs)))
    sources = _sources(models)
    taken = _taken(list(sources), options, arguments, left_out)
    for model, source in sources.items():
        grid = option_grid(taken[model])
        if own.is_own(model):
            methods += [
                # It has no variants; so it stands in the table of ours as released.
                [Task(model, aggr, "released", features, chosen, source) for chosen in grid]
                for aggr in wanted or ["default"]
            ]
            continue
        its = MODELS[model].aggregations()
        for aggr in its if wanted is None else wanted:
            if not MODELS[model].takes(aggregation(aggr)):
                has = ", ".join(its)
                left_out.append(f"{model} has no aggregation {aggr} (it has {has})")
                continue
            methods.append([Task(model, aggr, variant, features, chosen) for chosen in grid])
    return [tasks for tasks in methods if _can_be_built(tasks, left_out)], left_out


def _sources(models: Sequence[str | Callable[..., Any]]) -> dict[str, str]:
    """Return the source of each model by name; raise where one name stands for two functions."""
    sources: dict[str, str] = {}
    for model in models:
        name = model_name(model)
        is_ours = isinstance(model, str) and not own.is_own(name)
        source = "" if is_ours else own.planned(model)[1]
        if why := own.unknown(name):
            _log.warning("%s: no earlier results are taken for those of this model: %s", name, why)
        if sources.setdefault(name, source) != source:
            raise UsageError(
                f"models: two different functions are called {name}: give each a name of its own, "
                "so that their results can be told apart"
            )
    return sources


def _aggregation(name: str) -> str:
    return aggregation(name.strip()).name


def model_name(model: str | Callable[..., Any]) -> str:
    """Return the name of a model: one of ours, or somebody's own.

    Raises:
        UsageError: There is none of that name.

    Example:
        >>> model_name("GIN"), model_name("torch.nn:Linear")
        ('gin', 'torch.nn:Linear')
    """
    if not isinstance(model, str) or own.is_own(model):
        return own.register(model)
    try:
        return known("model", model, MODELS)
    except UsageError as error:
        more = "" if "did you mean" in str(error) else ", or module:function for one of your own"
        raise UsageError(f"{error}{more}") from None


def known(what: str, name: str, names: Iterable[str], meant: Iterable[str] = ()) -> str:
    """Return a name as it is spelled among those that are known.

    Others that may be ``meant`` are suggested, but not taken.

    Raises:
        UsageError: It is not among them.

    Example:
        >>> known("model", " GIN", ["gcn", "gin"])
        'gin'
    """
    names = sorted(names)
    if (name := name.strip().casefold()) in names:
        return name
    near = get_close_matches(name, [*names, *meant], n=1)
    advice = f"did you mean {near[0]}?" if near else f"use {', '.join(names)}"
    raise UsageError(f"{what}: {name!r} is unknown: {advice}")


def _taken(
    models: Sequence[str],
    options: Mapping[str, object],
    arguments: Sequence[str],
    left_out: list[str],
) -> dict[str, dict[str, object]]:
    """Give each model the options that it has; one that no model has is refused."""
    has = {model: _options_of(model) for model in models}
    for name in options:
        check_option(name)
        lacking = [model for model in models if not has[model](name)]
        if lacking and len(lacking) == len(models):
            _refuse(name, models, [*CONTROLS, *arguments])
        if lacking:
            others = " and ".join(lacking)
            left_out.append(f"{name} for {others}, which has no such option and is run without it")
    return {
        model: {name: value for name, value in options.items() if has[model](name)}
        for model in models
    }


def _options_of(model: str) -> Callable[[str], bool]:
    """Return a function that says whether a model has an option."""
    names, takes_any = _option_names(model)
    return lambda name: takes_any or name in names


def _option_names(model: str) -> tuple[list[str], bool]:
    """Return the options of a model, and whether it takes any others too."""
    if not own.is_own(model):
        parameters = signature(MODELS[model]).parameters.values()
        return [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY], False
    try:
        parameters = signature(own.factory(model)).parameters.values()
    except (TypeError, ValueError):  # some that are written in C have none
        return [], True
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return [p.name for p in list(parameters)[_GIVEN:] if p.kind in named], takes_any


def _refuse(name: str, models: Sequence[str], meant: Sequence[str]) -> None:
    """Say what options there are instead."""
    for model in models:
        names = [option for option in _option_names(model)[0] if option != "aggr"]
        if not names and not get_close_matches(name, meant):
            raise UsageError(f"option of {model}: {name!r} is unknown: it has none")
        known(f"option of {model}", name, names, meant)


def _can_be_built(tasks: Sequence[Task], left_out: list[str]) -> bool:
    """Let models refuse what they cannot be built with, before anything is trained.

    Where a model of one's own cannot have an aggregation, others go on without it.
    """
    import torch

    for task in tasks:
        if not own.is_own(task.model):
            for name, value in task.options:
                if isinstance(value, bool) or not isinstance(value, Real):
                    raise UsageError(f"{name}: expected a number, got {value!r}")
            with torch.device("meta"):
                task.build(in_channels=1, num_classes=2)
            continue
        with seeded():
            try:
                own.build(task, in_channels=8, out_channels=2)
            except UsageError as error:
                if task.aggr in ("", "default") or "aggr" not in str(error):
                    raise
                left_out.append(str(error).rstrip("."))
                return False
    return True
