"""The user's modules: which they are, and what they import."""

import ast
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType

_OURS = ("gnn_vpa", "torch", "torch_geometric")  # PyG writes modules of its layers elsewhere


def path_of(module: ModuleType) -> Path | None:
    """Return the file that a module is written in, if it is one of Python."""
    file = getattr(module, "__file__", None)
    return _resolved(file) if file and file.endswith(".py") else None


@lru_cache(maxsize=1 << 12)
def _resolved(file: str) -> Path:
    return Path(file).resolve()


def is_main(module: ModuleType) -> bool:
    """Say whether a module is the script or the notebook that is run."""
    return module.__name__ in ("__main__", "__mp_main__")


def is_users(module: ModuleType) -> bool:
    """Say whether a module is a file of the user's that other processes can import."""
    path = path_of(module)
    return path is not None and not (is_main(module) or is_of_library(module.__name__, path))


@lru_cache(maxsize=1 << 12)
def is_of_library(name: str, path: Path) -> bool:
    """Say whether a module of this name and file is a library's."""
    is_installed = any(path.is_relative_to(folder) for folder in _libraries())
    return is_installed or name.partition(".")[0] in _OURS


@cache
def _libraries() -> list[Path]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {Path(sysconfig.get_paths()[name]).resolve() for name in names}
    folders |= {Path(p).resolve() for p in sys.path if p.endswith(("-packages", ".zip"))}
    return sorted(folders)


def imported_by(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the names of modules that a module imports when it is imported, and some of none."""
    parts: list[ast.AST] = list(tree.body)
    while parts:
        node = parts.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = resolved("." * node.level + (node.module or ""), package)
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            parts += ast.iter_child_nodes(node)


def resolved(name: str, package: str) -> str:
    """Return the full name of a module that is imported by a relative one."""
    try:
        return importlib.util.resolve_name(name, package)
    except ImportError:
        return ""


def imported(name: str) -> ModuleType | None:
    """Return a module that a function will import, if it is the user's; it is imported now."""
    if name not in sys.modules and name:
        try:
            spec = importlib.util.find_spec(name)
            origin = (spec and spec.origin) or ""
            if origin.endswith(".py") and not is_of_library(name, Path(origin).resolve()):
                importlib.import_module(name)
        except (Exception, SystemExit):  # what cannot be imported is not used
            return None
    module = sys.modules.get(name)
    return module if module is not None and is_users(module) else None
