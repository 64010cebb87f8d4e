"""Users' own models by name: ``module:function``, or a function of this very process."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from ...errors import UsageError
from ...graphs.reference import import_reference
from ..job import NotHereError
from .hashing import source_hash

Factory = Callable[..., nn.Module]

_BY_NAME: dict[str, Factory] = {}  # the latest of each name: a cell of a notebook may run again
_BY_SOURCE: dict[tuple[str, str], Factory] = {}
_LATEST: dict[int, str] = {}  # the hash that each of these functions had when it was last planned
_ADOPTED: dict[tuple[str, str], Factory] = {}  # another process has looked at their source


def is_own(model: str) -> bool:
    """Say whether a task's model is a user's own: the name of one of ours has no colon.

    Example:
        >>> is_own("mynets:make"), is_own("gin")
        (True, False)
    """
    return ":" in model


def register(factory: Factory) -> str:
    """Make a function that makes models known by a name, and return the name.

    Args:
        factory: Called as ``factory(in_channels, out_channels, **options)``; a function or a class.

    Example:
        >>> class Net(nn.Module):
        ...     def __init__(self, in_channels, out_channels):
        ...         super().__init__()
        >>> register(Net).rpartition(":")[2]
        'Net'
    """
    if isinstance(factory, nn.Module):
        raise UsageError(
            f"models: {type(factory).__name__} is a model already, and each fold needs a new one: "
            "pass a function make(in_channels, out_channels) that returns it."
        )
    if not (inspect.isfunction(factory) or inspect.isclass(factory)):
        inner = "; write a function around it" if isinstance(factory, partial) else ""
        raise UsageError(
            "models: expected a function or a class that makes a model, got "
            f"{type(factory).__name__}{inner}."
        )
    name = f"{factory.__module__ or '__main__'}:{factory.__qualname__}"
    made: Any = factory
    _BY_NAME[name] = made
    _keep(name, source_hash(made), made)
    return name


def _keep(name: str, source: str, factory: Factory) -> None:
    _BY_SOURCE[name, source] = factory
    _LATEST[id(factory)] = source  # which stays alive above


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
    if (adopted := _ADOPTED.get((name, source))) is not None:
        return adopted
    planned = _BY_SOURCE.get((name, source))
    if planned is not None and _LATEST[id(planned)] == source:
        return planned
    found = planned or _BY_NAME.get(name) or import_reference(name)
    if not callable(found) or isinstance(found, nn.Module):
        raise UsageError(
            f"{name!r} must be a function make(in_channels, out_channels) that returns a model, "
            f"but is of type {type(found).__name__}."
        )
    if source:
        if source_hash(found) != source:
            raise NotHereError(
                f"{name}: its source has changed since the run was planned, or values that it "
                "reads: run again, and the edited model is another method. Values that other "
                "processes need belong into its file, and not to be set from outside."
            )
        _keep(name, source, found)
    return found


def adopt(name: str, source: str, factory: Factory) -> None:
    """Take a function that another process has sent, and vouches to have this source.

    Example:
        >>> adopt("elsewhere:make", "0123456789abcdef", nn.Linear)
        >>> factory("elsewhere:make", "0123456789abcdef") is nn.Linear
        True
    """
    _ADOPTED[name, source] = factory


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
    try:
        importable: Any = import_reference(name)
    except UsageError:
        importable = None
    if importable is not found:
        return f"other processes cannot import {name}"
    return None
