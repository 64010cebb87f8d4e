"""What a model is made of, as a hash: an edited model is another one.

The hash is of the syntax trees of the module that has the factory and of all modules that it
imports, as far as they are the user's: comments, formatting and docstrings do not matter, and
neither do the versions of libraries. What is defined in a notebook or a script is hashed function
by function, with all that these refer to.
"""

import ast
import builtins
import hashlib
import importlib.util
import inspect
import pickle
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ...errors import UsageError

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


@cache
def source_hash(factory: Callable[..., Any]) -> str:
    """Return a hash of the source of a factory and of all that it uses, 16 hexadecimal digits.

    Raises:
        UsageError: A module was edited after it was imported, or something has no source.

    Example:
        >>> len(source_hash(source_hash))
        16
    """
    found: dict[str, str] = {}
    _add(factory, found)
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]


def modules_of(factory: Callable[..., Any]) -> list[ModuleType]:
    """Return the user's modules that a factory needs, and that other machines may not have.

    Example:
        >>> modules_of(source_hash)
        []
    """
    found: dict[str, str] = {}
    _add(factory, found)
    modules = [sys.modules[name] for name in found if name in sys.modules]
    return [module for module in modules if _is_users(module)]


def _add(factory: Callable[..., Any], found: dict[str, str]) -> None:
    module = sys.modules.get(factory.__module__ or "")
    if module is not None and _is_file(module) and "<locals>" not in factory.__qualname__:
        _add_module(module, found)
    else:
        _add_object(factory, found)


def _is_file(module: ModuleType) -> bool:
    """Say whether a module is a file that holds definitions, and not a script or a notebook."""
    return module.__name__ != "__main__" and _path(module) is not None


def _path(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file and file.endswith(".py") else None


def _is_users(module: ModuleType) -> bool:
    path = _path(module)
    if path is None or module.__name__.partition(".")[0] == "gnn_vpa":
        return False
    return not any(path.is_relative_to(folder) for folder in _libraries())


@cache
def _libraries() -> list[Path]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {Path(sysconfig.get_paths()[name]).resolve() for name in names}
    folders |= {Path(p).resolve() for p in sys.path if p.endswith(("-packages", ".zip"))}
    return sorted(folders)


# Modules ------------------------------------------------------------------------------------


def _add_module(module: ModuleType, found: dict[str, str]) -> None:
    """Add a module, its packages, and what they import of the user's."""
    if module.__name__ in found:
        return
    path = _path(module)
    assert path is not None
    try:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from error
    _check_is_loaded(module, text, path)
    found[module.__name__] = _dumped(tree)
    package = module.__name__.rpartition(".")[0]
    for name in (package, *_imported(tree, module)):
        other = _module(name)
        if other is not None and _is_users(other):
            _add_module(other, found)


def _imported(tree: ast.Module, module: ModuleType) -> Iterator[str]:
    """Yield the names of modules that a module imports, and some that are none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            if node.level:
                try:
                    name = importlib.util.resolve_name(name, module.__package__ or "")
                except ImportError:
                    continue
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)


def _module(name: str) -> ModuleType | None:
    """Return a module of this name; one that is imported later, in a function, is imported."""
    if name in sys.modules or not name:
        return sys.modules.get(name)
    parent = name.rpartition(".")[0]
    if parent and not hasattr(sys.modules.get(parent), "__path__"):
        return None  # a class or a function
    try:
        spec = importlib.util.find_spec(name)
        if spec is None or not (spec.origin or "").endswith(".py"):
            return None
        if any(Path(str(spec.origin)).resolve().is_relative_to(f) for f in _libraries()):
            return None
        return importlib.import_module(name)
    except Exception:  # what cannot be imported is not used
        return None


def _check_is_loaded(module: ModuleType, text: str, path: Path) -> None:
    """Raise where a file is not what was imported from it: the hash would be of another model."""
    if type(getattr(module.__spec__, "loader", None)) is not SourceFileLoader:
        return  # pytest, for one, compiles test modules in its own way
    there = dict(_codes(compile(text, str(path), "exec", dont_inherit=True)))
    for function in _functions(vars(module), module.__name__):
        code = there.get(function.__qualname__)
        if code is None or _of_code(code) != _of_code(function.__code__):
            raise UsageError(
                f"{path} was edited after it was imported ({function.__qualname__} is another "
                "now): start Python anew, so that what is trained is what the file says."
            )


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


def _codes(code: CodeType, within: str = "") -> Iterator[tuple[str, CodeType]]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part.co_qualname, part
            yield from _codes(part)


def _of_code(code: CodeType) -> tuple[Any, ...]:
    """Return what code does, without where it stands."""
    consts = [_of_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code.hex(), tuple(consts), names, code.co_flags


# Functions and classes of a notebook, a script or a function ---------------------------------


def _add_object(value: Any, found: dict[str, str]) -> None:
    """Add a function or a class, and what it refers to."""
    name = f"{value.__module__}:{value.__qualname__}"
    if name in found:
        return
    found[name] = _text(value)
    functions = [value] if isinstance(value, FunctionType) else []
    if inspect.isclass(value):
        for base in value.__bases__:
            _add_value(f"base {base.__qualname__} of {name}", base, found)
        for attribute, part in vars(value).items():
            part = getattr(part, "__func__", part)
            if isinstance(part, FunctionType):
                functions.append(part)
            elif not attribute.startswith("__") and isinstance(part, _PLAIN):
                found[f"{name}.{attribute}"] = repr(part)
    for function in functions:
        for used, what in _references(function):
            _add_value(f"{used} of {name}", what, found)


def _references(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield names that a function uses, of its module and from around it, and its defaults."""
    names = set(function.__code__.co_names)
    for _, code in _codes(function.__code__):
        names |= set(code.co_names)
    for name in sorted(names):
        if name in function.__globals__ and not hasattr(builtins, name):
            yield name, function.__globals__[name]
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            if name != "__class__":
                yield name, cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    defaults: dict[Any, Any] = dict(enumerate(function.__defaults__ or ()))
    defaults |= function.__kwdefaults__ or {}
    for key, default in defaults.items():
        yield f"default {key}", default


def _add_value(name: str, value: Any, found: dict[str, str]) -> None:
    module = value if isinstance(value, ModuleType) else None
    is_definition = isinstance(value, FunctionType) or inspect.isclass(value)
    if module is None and is_definition:
        module = sys.modules.get(value.__module__ or "")
        if module is None or (not _is_file(module) and module.__name__ not in _builtin()):
            _add_object(value, found)
            return
    if module is not None:
        if _is_file(module) and _is_users(module):
            is_local = is_definition and "<locals>" in value.__qualname__
            _add_object(value, found) if is_local else _add_module(module, found)
        return
    if isinstance(value, _PLAIN):
        found[name] = repr(value)
        return
    if callable(value) and getattr(value, "__module__", None) in sys.modules:
        home = sys.modules[value.__module__]
        if not _is_users(home) and home.__name__ != "__main__":
            found[name] = repr(getattr(value, "__qualname__", type(value).__qualname__))
            return
    try:
        found[name] = hashlib.sha256(pickle.dumps(value)).hexdigest()
    except Exception as error:
        raise UsageError(
            f"models: {name} is a {type(value).__name__}, whose content cannot be told "
            f"({error}): put the model into a file, mynets.py, and pass mynets.make."
        ) from error


@cache
def _builtin() -> frozenset[str]:
    return frozenset(sys.builtin_module_names)


def _text(value: Any) -> str:
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
