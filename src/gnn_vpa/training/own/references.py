"""What a function refers to, read from its code: names, attributes of modules, imports."""

import builtins
import dis
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .modules import imported, resolved
from .source import codes_of

_NAMES = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_BY_TEXT = ("eval", "exec", "globals")  # these reach any name of the module


def read_by(function: FunctionType) -> list[tuple[str, Any]]:
    """Return the names of modules that a function reads, with their values, and what it imports.

    Example:
        >>> width = 8
        >>> read_by(lambda x: width * x)
        [('width', 8)]
    """
    names, found = function.__globals__, dict[str, Any]()
    for code in codes_of(function.__code__):
        found.update(_in_code(code, names))
    if any(found.get(name) is vars(builtins)[name] for name in _BY_TEXT):
        found |= {name: part for name, part in names.items() if _is_definition(part)}
    return sorted(found.items())


def held_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a function has from around it, and the defaults of its arguments.

    Example:
        >>> list(held_by(lambda x, scale=2: scale * x))
        [('default 0', 2)]
    """
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # not assigned yet
            if name != "__class__":
                yield name, cell.cell_contents
    defaults: dict[Any, Any] = dict(enumerate(function.__defaults__ or ()))
    for key, default in (defaults | (function.__kwdefaults__ or {})).items():
        yield f"default {key}", default


def _in_code(code: CodeType, names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    steps = [s for s in dis.get_instructions(code) if s.opname not in ("PUSH_NULL", "EXTENDED_ARG")]
    for at, step in enumerate(steps):
        if step.opname in _NAMES:
            if step.argval in names:
                yield _followed(step.argval, names[step.argval], steps[at + 1 :])
            elif step.argval in _BY_TEXT:
                yield step.argval, vars(builtins)[step.argval]
        elif step.opname == "IMPORT_NAME":
            level, wanted = steps[at - 2].argval, steps[at - 1].argval
            name = resolved("." * level + step.argval, names.get("__package__") or "")
            yield from _of_import(name, wanted or ())


def _followed(path: str, value: Any, steps: list[dis.Instruction]) -> tuple[str, Any]:
    """Follow attributes from module to module, as in ``config.sizes.WIDTH``."""
    for step in steps:
        if not isinstance(value, ModuleType) or step.opname not in _ATTRIBUTES:
            break
        try:
            value = getattr(value, step.argval)
        except AttributeError:
            break
        path += f".{step.argval}"
    return path, value


def _of_import(name: str, wanted: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield what a function imports by itself of the user's modules."""
    module = imported(name)
    for part in wanted:
        inner = imported(f"{name}.{part}")
        if inner is not None:
            yield f"import {name}.{part}", inner
        elif module is not None and hasattr(module, part):
            yield f"import {name}.{part}", getattr(module, part)
    if module is not None and (not wanted or "*" in wanted):
        yield f"import {name}", module
    elif not wanted and name in sys.modules and module is None:
        yield f"import {name}", sys.modules[name]


def _is_definition(value: Any) -> bool:
    return isinstance(value, FunctionType | type)
