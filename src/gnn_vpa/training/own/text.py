"""The text of the files that a model is in and that these import, and versions of packages.

A text is without comments and docstrings, and as it was when the file was imported: an edit after
that is not what is trained. Of a script or a notebook the statements count that the model needs.
"""

import ast
import hashlib
import importlib.util
import os
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any, NamedTuple

from .statements import needed, plain

THIS_PROCESS = uuid.uuid4().hex  # stands for what is not known: no other process has the same
_MAIN = ("__main__", "__mp_main__")  # the latter in processes of multiprocessing
_SITES = ("site-packages", "dist-packages")
_COMPILED = (".so", ".pyd", ".pyc")


class Texts(NamedTuple):
    """What is known of a model's files.

    Attributes:
        by_name: The text of each module, or what is installed of its package.
        modules: Those modules that are imported, and the user's own.
        unknown: In words, why some text is not known.
    """

    by_name: dict[str, str]
    modules: list[ModuleType]
    unknown: list[str]


def texts_of(factory: Any) -> Texts:
    """Return the texts of the modules that a factory is from, and of all that these import.

    Example:
        >>> texts_of(texts_of)
        Texts(by_name={}, modules=[], unknown=[])
    """
    found, names, seen = Texts({}, [], []), list[str](), set[str]()
    main, roots = None, list[str]()
    for part in _parts(factory):
        home, name = part.__module__ or "", part.__qualname__
        module = sys.modules.get(home)
        names.append(home)
        if home in _MAIN:
            main = module
            roots += part.__code__.co_names if name == "<lambda>" else [name.split(".")[0]]
        if _is_replaced(part, module):
            found.by_name[f"{home}:{name}"] = f"{THIS_PROCESS} {id(part)}"
            found.unknown.append(f"{home}.{name} was defined again after this one")
    if main is not None:
        found.by_name["__main__"] = text = needed(_main(main, found), roots)
        names += _imported(text, main.__package__ or "")
    while names:
        name = names.pop()
        top = name.partition(".")[0]
        if name in seen or top in ("", "gnn_vpa", *_MAIN) or top in sys.stdlib_module_names:
            continue
        seen.add(name)
        names.append(name.rpartition(".")[0])  # a package is imported before its modules
        names += _add(name, found)
    return found


def _parts(factory: Any) -> Iterator[Any]:
    """Yield the functions and classes that a factory is made of."""
    if isinstance(factory, partial):
        for part in (factory.func, *factory.args, *factory.keywords.values()):
            yield from _parts(part)
    elif isinstance(factory, MethodType):
        yield from (*_parts(factory.__self__), *_parts(factory.__func__))
    else:
        yield factory if hasattr(factory, "__qualname__") else type(factory)


def _is_replaced(part: Any, module: ModuleType | None) -> bool:
    """Say whether another definition of the same name has taken the place of this one."""
    now: Any = module
    for name in part.__qualname__.split("."):
        now = getattr(now, name, None)
    return (
        now is not part
        and type(now) is type(part)
        and (now.__module__, now.__qualname__) == (part.__module__, part.__qualname__)
    )


def _main(module: ModuleType, found: Texts) -> Iterator[str]:
    """Yield the text of a script, or of the cells of a notebook that were run."""
    if "__file__" in vars(module):
        text, unknown = _first_seen("__main__", module, module)
        if unknown:
            found.by_name["script"] = text
            found.unknown.append(unknown)
        else:
            yield text
    for cell in vars(module).get("_ih", ()):
        with suppress(SyntaxError, ValueError):  # it was not run either
            yield plain(cell)


# Modules ------------------------------------------------------------------------------------------


def _add(name: str, found: Texts) -> Iterator[str]:
    """Add a module to what is known, and yield the names of all that it may import."""
    module, spec = sys.modules.get(name), _spec(name)
    if spec is None or spec.origin is None:
        return
    is_package = spec.submodule_search_locations is not None
    folders = Path(spec.origin).parents
    depth = name.count(".") + is_package
    top = name.partition(".")[0]
    if depth < len(folders) and (version := _installed(folders[depth], top)) is not None:
        found.by_name[top] = version
        return
    if module is not None:
        found.modules.append(module)
    found.by_name[name], unknown = _first_seen(name, spec, module)
    if unknown:
        found.unknown.append(unknown)
    else:
        package = name if is_package else name.rpartition(".")[0]
        yield from _imported(found.by_name[name], package)


def _spec(name: str) -> ModuleSpec | None:
    """Return where a module is from; one that is not imported yet is not imported by this."""
    path, spec = None, None
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        part = ".".join(parts[:end])
        if part in sys.modules:
            spec = getattr(sys.modules[part], "__spec__", None)
        else:
            spec = PathFinder.find_spec(part, path)
        if spec is None:
            return None
        path = spec.submodule_search_locations or []
    return spec


def _imported(text: str, package: str) -> Iterator[str]:
    """Yield the names of modules that a text imports anywhere, and some of none."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # beyond the package
                name = "." * node.level + (node.module or "")
                name = importlib.util.resolve_name(name, package)
                yield from (name, *(f"{name}.{alias.name}" for alias in node.names))


@cache
def _installed(folder: Path, top: str) -> str | None:
    """Return the version and file hashes of an installed package, None if it is not installed."""
    if not any(folder.glob("*-info")):
        return None
    try:
        names: Iterable[str] = [distribution(top).name]
    except PackageNotFoundError:
        names = _packages().get(top, ())
    for each in map(distribution, names):
        record = each.read_text("RECORD") or ""
        is_there = Path(str(each.locate_file(""))).resolve() == folder.resolve()
        if is_there and (record or folder.name in _SITES):  # otherwise somebody works on it there
            # The files of PyTorch for a GPU are others than those for a CPU.
            lines = [] if top == "torch" else record.splitlines()
            files = [n for n in lines if n.startswith((f"{top}/", f"{top}.")) and ".py," in n]
            digest = hashlib.sha256("\n".join(files).encode()).hexdigest()
            return f"{each.version.partition('+')[0]} {digest}"
    return None


_packages = cache(packages_distributions)  # half a second


# Files --------------------------------------------------------------------------------------------

_SEEN: dict[str, tuple[object, tuple[str, str]]] = {}


def _first_seen(name: str, key: object, module: ModuleType | None) -> tuple[str, str]:
    """Return a module's text as it was when this import of it, its `key`, was seen first."""
    if name not in _SEEN or _SEEN[name][0] is not key:
        _SEEN[name] = key, _read(key, module)
    return _SEEN[name][1]


def _read(key: Any, module: ModuleType | None) -> tuple[str, str]:
    """Return a module's text, and in words why it is not known."""
    path = Path(getattr(module, "__file__", None) or key.origin)
    if path.suffix in _COMPILED:
        return "", ""
    try:
        if path.is_file():
            source = path.read_bytes()
        else:  # of a zip
            source, path = key.loader.get_data(str(path)), Path(key.loader.archive)
    except (OSError, AttributeError):
        return "", ""  # there is none
    with suppress(ValueError, SyntaxError):  # saved half-written
        text = plain(importlib.util.decode_source(source))
        if module is None or _is_as_imported(path, module):
            return text, ""
    return f"{THIS_PROCESS} {source!r}", f"{path} was edited after it was imported"


def _is_as_imported(path: Path, module: ModuleType) -> bool:
    """Say whether a file is as it was when it was imported, or run as a script."""
    now = path.stat()
    if max(now.st_mtime, now.st_ctime) < _STARTED:
        return True
    try:  # the compiled file says which text it is from
        noted = Path(module.__cached__).read_bytes()[4:16]
    except (OSError, AttributeError, TypeError):
        return module.__name__ not in _MAIN  # nothing says otherwise
    numbers = (0, int(now.st_mtime), now.st_size)
    return noted == b"".join((n % (1 << 32)).to_bytes(4, "little") for n in numbers)


def _started() -> float:
    """Return when this process started."""
    with suppress(OSError, AttributeError, IndexError):  # on Linux, to the next tick of its clock
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) + 1
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return booted + ticks / os.sysconf("SC_CLK_TCK")
    return time.time()


_STARTED = _started()
