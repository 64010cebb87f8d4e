"""Whether values are what the text of their module says."""

import ast
import inspect
import sys
import textwrap
from types import FunctionType, ModuleType
from typing import Any

from .content import content, is_tree
from .modules import is_file, is_users, path_of, resolved
from .said import UNSAID, Said
from .source import parsed, read_text


def said_of(module: ModuleType) -> Said:
    """Return what the text of a module says of its names."""
    path = path_of(module)
    assert path is not None
    return parsed(read_text(path))[1]


def said_of_class(value: type) -> Said:
    """Return what the text of a class says of its attributes."""
    try:
        return parsed(textwrap.dedent(inspect.getsource(value)))[1]
    except (OSError, TypeError, SyntaxError, ValueError):
        return Said(ast.Module([], []))


def says(module: ModuleType, name: str, value: Any) -> bool:
    """Say whether a value is what the text of its module says, which counts anyway."""
    said = said_of(module)
    if (found := said.imported(name)) is not None:
        return _is_imported(module, *found, value)
    if said.is_defined(name):
        inner = inspect.unwrap(value) if callable(value) else value
        if not (isinstance(inner, FunctionType) or inspect.isclass(inner)):
            return True  # what a decorator has made
        return (inner.__module__, inner.__qualname__) == (module.__name__, name)
    return is_same(said.constant(name), value)


def _is_imported(
    module: ModuleType, node: ast.Import | ast.ImportFrom, alias: ast.alias, value: Any
) -> bool:
    if isinstance(node, ast.Import):
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        return value is sys.modules.get(name)
    home = sys.modules.get(resolved(node, module) or "")
    if home is None:
        return False
    there = getattr(home, alias.name, sys.modules.get(f"{home.__name__}.{alias.name}"))
    if is_file(home) and is_users(home) and alias.name in vars(home):
        return says(home, alias.name, value)
    return there is value


def is_same(constant: Any, value: Any) -> bool:
    """Say whether a value is this constant."""
    if constant is UNSAID or type(constant) is not type(value):
        return False
    if isinstance(value, set | frozenset):
        return content(constant) == content(value)
    return is_tree(value) and repr(constant) == repr(value)
