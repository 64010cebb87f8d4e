"""What of modules and classes is a part of what a model does."""

import functools
import sys
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any

from .modules import is_main, is_users

_OF_PYG = ("propagate", "edge_updater", "collect", "edge_collect")  # made with the first layer
_METHODS = (FunctionType, staticmethod, classmethod, property, functools.partialmethod)
_FIELDS = ("__dataclass_fields__", "__pydantic_fields__")
_BUILT_IN = frozenset(sys.builtin_module_names)


def is_met(home: ModuleType | None) -> bool:
    """Say whether the code of a module counts: it is the user's, or nobody can look it up.

    Example:
        >>> is_met(sys.modules["json"]), is_met(sys.modules["__main__"])
        (False, True)
    """
    if home is None or is_main(home) or is_users(home):
        return True
    return getattr(home, "__file__", None) is None and home.__name__ not in _BUILT_IN


def counts(kind: type, name: str, part: Any) -> bool:
    """Say whether an attribute of a class is a part of what it does.

    Example:
        >>> class Layer:
        ...     width = 8
        >>> [name for name, part in vars(Layer).items() if counts(Layer, name, part)]
        ['width']
    """
    if name.removeprefix("_orig_").removeprefix("_jinja_") in _OF_PYG and _is_elsewhere(part, kind):
        return False
    if issubclass(kind, Enum) and not isinstance(part, _METHODS):
        return False
    if name == "__hash__" and isinstance(part, FunctionType):
        return not part.__code__.co_filename.startswith("<attrs")  # the hash of a text is in it
    is_python_s = name.startswith("__") and name.endswith("__")
    return (
        not (is_python_s or name == "_abc_impl")
        or name in _FIELDS
        or callable(part)
        or isinstance(part, _METHODS)
    )


def _is_elsewhere(part: Any, kind: type) -> bool:
    """Say whether a function is of another module than a class."""
    return isinstance(part, FunctionType) and part.__globals__.get("__name__") != kind.__module__
