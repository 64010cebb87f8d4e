"""What is written: code and modules as texts, without what is no code.

Comments, formatting and docstrings do not matter.
"""

import ast
import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from ...errors import UsageError

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@lru_cache(maxsize=1 << 16)
def code_text(code: CodeType) -> str:
    """Return what code does, without where it stands.

    Example:
        >>> code_text((lambda x: 2 * x).__code__) == code_text((lambda x: 2 * x).__code__)
        True
    """
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    lines = [
        f"{step.opname} {_constant(step.argval)}"
        for step in dis.get_instructions(code)
        if step.opname != "EXTENDED_ARG"
    ]
    return "\n".join(
        [repr(arguments), repr(code.co_varnames), code.co_exceptiontable.hex(), *lines]
    )


def _constant(value: Any) -> str:
    """Return a constant in words; a set has another order in each process."""
    if isinstance(value, CodeType):
        return code_text(value)
    if isinstance(value, frozenset):
        return f"{{{sorted(map(_constant, value))}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    return repr(value)


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Yield code and all functions within."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from codes_of(part)


def read_text(path: Path) -> str:
    """Return what is in a file of Python now."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from error


@lru_cache(maxsize=1 << 12)
def parsed(text: str, path: Path) -> tuple[str, ast.Module]:
    """Return a module's syntax tree, in words without docstrings and as it is."""
    try:
        tree, shown = ast.parse(text), ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from error
    for node in ast.walk(shown):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body[:1] = [ast.Pass()] if len(node.body) == 1 else []
    return ast.dump(shown), tree


def check_is_loaded(function: FunctionType) -> None:
    """Raise where a file is not what was imported from it: the file says another model now."""
    path = Path(function.__code__.co_filename)
    home = sys.modules.get(function.__globals__.get("__name__", ""))
    loader = type(getattr(getattr(home, "__spec__", None), "loader", None))
    if path.suffix != ".py" or loader not in (SourceFileLoader, type(None)) or not path.is_file():
        return  # a notebook; or pytest, for one, compiles test modules in its own way
    if code_text(function.__code__) not in _texts_in(read_text(path), path):
        raise UsageError(
            f"{path} was edited after it was imported ({function.__qualname__} is another now): "
            "start Python anew, so that what is trained is what the file says."
        )


@lru_cache(maxsize=1 << 12)
def _texts_in(text: str, path: Path) -> frozenset[str]:
    parsed(text, path)  # raises where it is no Python
    return frozenset(map(code_text, codes_of(compile(text, str(path), "exec", dont_inherit=True))))
