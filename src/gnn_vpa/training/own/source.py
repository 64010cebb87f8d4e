"""The source of modules, functions and classes, without what is no code.

Comments, formatting and docstrings do not matter.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ...errors import UsageError
from .said import Said


def read_text(path: Path) -> str:
    """Return what is in a file now."""
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from error


@lru_cache(maxsize=256)
def parsed(text: str) -> tuple[str, Said, ast.Module]:
    """Return a module's syntax tree in words, what it says of names, and the tree."""
    tree = ast.parse(text)
    return _dumped(tree), Said(tree), tree


def check_is_loaded(module: ModuleType, text: str, path: Path) -> None:
    """Raise where a file is not what was imported from it: the hash would be of another model."""
    if type(getattr(module.__spec__, "loader", None)) is not SourceFileLoader:
        return  # pytest, for one, compiles test modules in its own way
    there = _compiled(text, path)
    for function in _functions(vars(module), module.__name__):
        code = there.get(function.__qualname__)
        if code is None or _of_code(code) != _of_code(function.__code__):
            raise UsageError(
                f"{path} was edited after it was imported ({function.__qualname__} is another "
                "now): start Python anew, so that what is trained is what the file says."
            )


@lru_cache(maxsize=256)
def _compiled(text: str, path: Path) -> dict[str, CodeType]:
    return dict(codes_of(compile(text, str(path), "exec", dont_inherit=True)))


def _functions(
    names: dict[str, Any] | Any, module: str, within: str = ""
) -> Iterator[FunctionType]:
    """Yield the plain functions that a module defines, methods too."""
    for name, value in list(names.items()):
        if getattr(value, "__module__", None) != module:
            continue
        if getattr(value, "__qualname__", None) != within + name:
            continue  # another name of it, or one that is made elsewhere
        if isinstance(value, FunctionType) and not hasattr(value, "__wrapped__"):
            if value.__code__.co_filename == getattr(sys.modules[module], "__file__", None):
                yield value
        elif inspect.isclass(value):
            yield from _functions(vars(value), module, f"{within}{name}.")


def codes_of(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """Yield the functions within code, with their names."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part.co_qualname, part
            yield from codes_of(part)


def _of_code(code: CodeType) -> tuple[Any, ...]:
    """Return what code does, without where it stands."""
    consts = [_of_code(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code.hex(), tuple(consts), names, code.co_flags


def _constant(value: Any) -> str:
    """Return a constant in words; a set has another order in each process."""
    is_set = isinstance(value, frozenset) and len(value) > 1
    return f"{{{sorted(map(repr, value))}}}" if is_set else repr(value)


def text_of(value: Any) -> str:
    """Return what a function or a class says, as a syntax tree, or as code where there is none."""
    try:
        if value.__name__ != "<lambda>":  # its source is its line, which may hold several
            return _dumped(ast.parse(textwrap.dedent(inspect.getsource(value))))
    except (OSError, TypeError, SyntaxError, ValueError):
        pass
    if isinstance(value, FunctionType):
        return repr(_of_code(value.__code__))
    parts = {n: getattr(part, "__func__", part) for n, part in vars(value).items()}
    codes = {n: part.__code__ for n, part in parts.items() if isinstance(part, FunctionType)}
    return repr([(n, _of_code(code)) for n, code in sorted(codes.items())])


def _dumped(tree: ast.AST) -> str:
    """Return a syntax tree in words, without docstrings."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(node, _DOCUMENTED):
            first = body[0]
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                body[:1] = [ast.Pass()] if len(body) == 1 else []
    return ast.dump(tree)


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
