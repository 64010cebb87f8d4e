"""The user's modules: which they are, and what they import."""

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType


def is_file(module: ModuleType) -> bool:
    """Say whether a module is a file that holds definitions, and not a script or a notebook."""
    return module.__name__ != "__main__" and path_of(module) is not None


def path_of(module: ModuleType) -> Path | None:
    """Return the file that a module is written in, if it is one of Python."""
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file and file.endswith(".py") else None


def is_users(module: ModuleType) -> bool:
    """Say whether a module is the user's, and not a library's."""
    path = path_of(module)
    if path is None or module.__name__.partition(".")[0] == "gnn_vpa":
        return False
    return not any(path.is_relative_to(folder) for folder in _libraries())


@cache
def _libraries() -> list[Path]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {Path(sysconfig.get_paths()[name]).resolve() for name in names}
    folders |= {Path(p).resolve() for p in sys.path if p.endswith(("-packages", ".zip"))}
    return sorted(folders)


def resolved(node: ast.ImportFrom, module: ModuleType) -> str | None:
    """Return the full name of a module that things are imported from."""
    name = "." * node.level + (node.module or "")
    try:
        return importlib.util.resolve_name(name, module.__package__ or "") if node.level else name
    except ImportError:
        return None


def imported_by(tree: ast.Module, module: ModuleType) -> Iterator[str]:
    """Yield the names of modules that a module imports, and some that are none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = resolved(node, module)
            if name is None:
                continue
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)


def module_named(name: str) -> ModuleType | None:
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


@cache
def builtin_names() -> frozenset[str]:
    """Return the names of the modules that are a part of Python itself."""
    return frozenset(sys.builtin_module_names)
