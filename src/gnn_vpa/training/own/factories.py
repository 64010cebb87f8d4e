"""Users' own models by name: ``module:function``, or a function of this very process."""

import re
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

from torch import nn

from ...errors import UsageError
from ...graphs.reference import import_reference
from ..job import NotHereError
from .hashing import identity, source_hash

Factory = Callable[..., nn.Module]

_BY_NAME: dict[str, Factory] = {}  # the latest of each name: a cell of a notebook may run again
_BY_SOURCE: dict[tuple[str, str], Factory] = {}
_UNKNOWN: dict[str, str] = {}  # by name: what is not known of its model, if anything
_LONGEST = 40  # characters of an argument in the name of a partial


def is_own(model: str) -> bool:
    """Say whether a task's model is a user's own: the name of one of ours has no colon.

    Example:
        >>> is_own("mynets:make"), is_own("gin")
        (True, False)
    """
    return ":" in model


def register(model: str | Factory) -> str:
    """Make a function that makes models known by a name, and return the name.

    Args:
        model: Called as ``model(in_channels, out_channels, **options)``: a function, a class, or
            anything else that can be called so; or ``module:function``, as it is imported now.

    Example:
        >>> class Net(nn.Module):
        ...     def __init__(self, in_channels, out_channels):
        ...         super().__init__()
        >>> register(Net).rpartition(":")[2]
        'Net'
        >>> from functools import partial
        >>> register(partial(nn.Linear, bias=False))
        'torch.nn.modules.linear:Linear(bias=False)'
    """
    if isinstance(model, str):
        name = model.strip()
        _BY_NAME[name] = _found(name)
        return name
    if isinstance(model, nn.Module):
        raise UsageError(
            f"models: {type(model).__name__} is a model already, and each fold needs a new one: "
            "pass a function make(in_channels, out_channels) that returns it."
        )
    if not callable(model):
        raise UsageError(
            "models: expected a function or a class that makes a model, got "
            f"{type(model).__name__}."
        )
    made: Any = model.func if isinstance(model, partial) else model
    made = made.__self__ if isinstance(made, MethodType) else made
    home = getattr(made, "__module__", None) or "__main__"
    name = f"{home.replace('__mp_main__', '__main__')}:{_called(model)}"
    _BY_NAME[name] = model
    return name


def planned(model: str | Factory) -> tuple[str, str]:
    """Make a model known as it is now, and return its name and the hash of its source.

    Example:
        >>> name, source = planned(nn.Linear)
        >>> factory(name, source)
        <class 'torch.nn.modules.linear.Linear'>
    """
    name = register(model)
    source, _UNKNOWN[name] = identity(_BY_NAME[name])
    adopt(name, source, _BY_NAME[name])
    return name, source


def unknown(name: str) -> str:
    """Say what is not known of a planned model, so that no other process has its source.

    Example:
        >>> unknown(planned(nn.Linear)[0])
        ''
    """
    return _UNKNOWN.get(name, "")


def _called(made: Any) -> str:
    """Return what a person would call something that makes models, or an argument of it."""
    if isinstance(made, partial):
        given = [*map(_called, made.args)]
        given += [f"{name}={_called(value)}" for name, value in sorted(made.keywords.items())]
        return f"{_called(made.func)}({', '.join(given)})"
    if isinstance(made, MethodType):
        return f"{_called(made.__self__)}.{made.__name__}"
    if hasattr(made, "__qualname__"):
        return str(made.__qualname__)
    shown = re.sub(r"\s+", " ", repr(made))
    if " at 0x" in shown:
        return type(made).__qualname__
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"


def factory(name: str, source: str = "") -> Factory:
    """Return the function that makes a user's model.

    It is looked at once for each run: what a model's own making or training changes, such as a
    list of models made, is no edit.

    Args:
        name: ``module:function``; the module may lie in this folder.
        source: The hash that its source must have; empty for any.

    Raises:
        NotHereError: Its source has changed, or is another in this process.
        UsageError: There is none.

    Example:
        >>> factory("torch.nn:Linear").__name__
        'Linear'
    """
    if (name, source) in _BY_SOURCE:
        return _BY_SOURCE[name, source]
    found = _found(name)
    if source:
        if source_hash(found) != source:
            raise NotHereError(
                f"{name}: its source has changed since the run was planned, or values that it "
                "reads: run again, and the edited model is another method. Values that other "
                "processes need belong into its file, and not to be set from outside."
            )
        adopt(name, source, found)
    return found


def _found(name: str) -> Factory:
    """Return what has this name: what can be imported is not what it was before it was reloaded."""
    try:
        found: Any = import_reference(name)
    except UsageError:
        if name not in _BY_NAME:
            raise
        found = _BY_NAME[name]
    if not callable(found) or isinstance(found, nn.Module):
        raise UsageError(
            f"{name!r} must be a function make(in_channels, out_channels) that returns a model, "
            f"but is of type {type(found).__name__}."
        )
    made: Factory = found
    return made


def adopt(name: str, source: str, factory: Factory) -> None:
    """Take a function that has this source, which another process may have found.

    Example:
        >>> adopt("elsewhere:make", "0123456789abcdef", nn.Linear)
        >>> factory("elsewhere:make", "0123456789abcdef") is nn.Linear
        True
    """
    _BY_SOURCE[name, source] = factory


def elsewhere(name: str) -> str | None:
    """Say why another process cannot make this model; None if it can.

    Example:
        >>> elsewhere("torch.nn:Linear") is None
        True
    """
    found = _BY_NAME.get(name)
    if found is None:
        return None
    if name.startswith("__main__:"):
        return "it is defined in a notebook or a script, which other processes do not have"
    if unknown(name):
        return unknown(name)
    try:
        importable: Any = import_reference(name)
    except UsageError:
        importable = None
    if importable is not found:
        return f"other processes cannot import {name}"
    return None
