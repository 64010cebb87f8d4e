"""What functions refer to, and of which functions a definition consists."""

import builtins
import functools
import inspect
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from .modules import is_file, is_users
from .source import codes_of


def functions_of(value: Any) -> list[FunctionType]:
    """Return the functions of a definition: itself, what it wraps, or a class's methods."""
    if isinstance(value, FunctionType):
        inner = inspect.unwrap(value)
        return [value, inner] if inner is not value and isinstance(inner, FunctionType) else [value]
    found: list[Any] = []
    made = f"{value.__module__}_{value.__name__}_"  # PyG writes modules of this name, and methods
    for part in vars(value).values():
        if isinstance(part, property):
            found += [part.fget, part.fset]
        elif isinstance(part, functools.cached_property):
            found.append(part.func)
        else:
            found.append(getattr(part, "__func__", part))
    found += [inspect.unwrap(part) for part in found if isinstance(part, FunctionType)]
    parts = {id(part): part for part in found if isinstance(part, FunctionType)}
    return [part for part in parts.values() if _is_code_of_users(part, made)]


def _is_code_of_users(function: FunctionType, made: str) -> bool:
    home = sys.modules.get(function.__globals__.get("__name__", ""))
    if home is None or not is_file(home):
        return True
    return is_users(home) and not home.__name__.startswith(made)


def names_in(function: FunctionType) -> set[str]:
    """Return all names that a function's code has, of attributes too."""
    names = set(function.__code__.co_names)
    for _, code in codes_of(function.__code__):
        names |= set(code.co_names)
    return names


def globals_of(function: FunctionType) -> list[str]:
    """Return the names of its module that a function uses."""
    names = names_in(function)
    return sorted(n for n in names if n in function.__globals__ and not hasattr(builtins, n))


def modules_in(function: FunctionType) -> list[ModuleType]:
    """Return the user's modules that a function names, or imports itself."""
    package = function.__globals__.get("__package__") or ""
    found: dict[str, ModuleType] = {}
    for name in names_in(function):
        named = function.__globals__.get(name), sys.modules.get(name)
        for module in (*named, sys.modules.get(f"{package}.{name}")):
            if isinstance(module, ModuleType) and is_file(module) and is_users(module):
                found[module.__name__] = module
    return [found[name] for name in sorted(found)]


def defaults_of(function: FunctionType) -> dict[Any, Any]:
    """Return the defaults of a function's arguments, by place or name."""
    defaults: dict[Any, Any] = dict(enumerate(function.__defaults__ or ()))
    return defaults | (function.__kwdefaults__ or {})


def references_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield names that a function uses, of its module and from around it, and its defaults."""
    for name in globals_of(function):
        yield name, function.__globals__[name]
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            if name != "__class__":
                yield name, cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    for key, default in defaults_of(function).items():
        yield f"default {key}", default
