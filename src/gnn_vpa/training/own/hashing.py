"""What a model is made of, as a hash: an edited model is another one.

The hash is of the syntax trees of the module that has the factory and of all modules that it
imports, as far as they are the user's: comments, formatting and docstrings do not matter, and
neither do the versions of libraries. What is defined in a notebook or a script is hashed function
by function, with all that these refer to. Values that the factory reads count as they are now,
unless they are what the text says (``said.py``).
"""

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any

from ...errors import UsageError
from .content import PLAIN, Untold, content, is_leaf, is_tree, pickled
from .modules import builtin_names, imported_by, is_file, is_users, module_named, path_of
from .references import defaults_of, functions_of, globals_of, modules_in, names_in, references_of
from .said import UNSAID
from .says import is_same, said_of, said_of_class, says
from .source import check_is_loaded, parsed, read_text, text_of

_HOMES = ("torch", "torch.nn", "torch.nn.functional", "torch_geometric.nn")
_SHORT = {"F": "torch.nn.functional", "np": "numpy"}  # so they are called everywhere


def source_hash(factory: Callable[..., Any]) -> str:
    """Return a hash of the source of a factory and of all that it uses, 16 hexadecimal digits.

    It is computed anew each time: values that the factory reads may have changed.

    Raises:
        UsageError: A module was edited after it was imported, or something has no source or
            content that can be told.

    Example:
        >>> len(source_hash(source_hash))
        16
    """
    found = _walked(factory).found
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:16]


def modules_of(factory: Callable[..., Any]) -> list[ModuleType]:
    """Return the user's modules that a factory needs, and that other machines may not have.

    Example:
        >>> modules_of(source_hash)
        []
    """
    modules = [sys.modules[name] for name in _walked(factory).found if name in sys.modules]
    return [module for module in modules if is_users(module)]


def changed_names(factory: Callable[..., Any]) -> list[str]:
    """Return what a factory reads of modules and is a constant there, but was changed since.

    Example:
        >>> changed_names(source_hash)
        []
    """
    return _walked(factory).changed


def _walked(factory: Callable[..., Any]) -> "_Walk":
    walk = _Walk()
    walk.factory(factory)
    return walk


class _Walk:
    """What was found of a factory: texts by what they are of."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.changed: list[str] = []
        self._names: dict[int, tuple[Any, str]] = {}  # of objects, which stay alive meanwhile
        self._followed: dict[int, Any] = {}

    def factory(self, factory: Callable[..., Any]) -> None:
        module = sys.modules.get(factory.__module__ or "")
        if module is None or not is_file(module) or "<locals>" in factory.__qualname__:
            self._object(factory)
            return
        self._module(module)
        if is_users(module):
            self._follow(factory)

    def _define(self, value: Any) -> str:
        """Add a function or a class if it is the user's, and return its name."""
        module = sys.modules.get(value.__module__ or "")
        if module is None or (not is_file(module) and module.__name__ not in builtin_names()):
            return self._object(value)
        if is_file(module) and is_users(module):
            if "<locals>" in value.__qualname__:
                return self._object(value)
            self._module(module)
            self._follow(value)
        return f"{value.__module__}.{value.__qualname__}"

    # Modules --------------------------------------------------------------------------------

    def _module(self, module: ModuleType) -> None:
        """Add a module, its packages, and what they import of the user's."""
        if module.__name__ in self.found:
            return
        path = path_of(module)
        assert path is not None
        text = read_text(path)
        try:
            self.found[module.__name__], _, tree = parsed(text)
        except (SyntaxError, ValueError) as error:
            raise UsageError(f"{path} cannot be read as Python: {error}") from error
        check_is_loaded(module, text, path)
        package = module.__name__.rpartition(".")[0]
        for name in (package, *imported_by(tree, module)):
            other = module_named(name)
            if other is not None and is_users(other):
                self._module(other)

    def _follow(self, value: Any) -> None:
        """Add values that a definition of a module reads, where they are not what its text says."""
        if id(value) in self._followed:
            return
        self._followed[id(value)] = value
        home = sys.modules.get(value.__module__ or "")
        if inspect.isclass(value) and home is not None:
            for base in value.__bases__:
                self._define(base)
            for name, part in list(vars(value).items()):
                if _is_value(name, part):
                    self._attribute(home, f"{value.__qualname__}.{name}", part)
        for function in functions_of(value):
            self._follow_names(function)
            if home is not None:
                self._follow_defaults(home, function)

    def _follow_names(self, function: FunctionType) -> None:
        module = sys.modules.get(function.__globals__.get("__name__", ""))
        if module is None or not is_file(module) or not is_users(module):
            return
        for name in globals_of(function):
            self._global(module, name, function.__globals__[name])
        self._follow_modules(function)

    def _follow_modules(self, function: FunctionType) -> None:
        """Add what a function reads of modules, as ``config.WIDTH``."""
        names = names_in(function)
        for module in modules_in(function):
            self._module(module)
            for name in sorted(names & vars(module).keys()):
                self._global(module, name, vars(module)[name])

    def _follow_defaults(self, home: ModuleType, function: FunctionType) -> None:
        said, now = said_of(home).defaults(function), defaults_of(function)
        for number, (key, default) in enumerate(now.items()):
            constant = said[number] if len(said) == len(now) else UNSAID
            if not is_same(constant, default):
                name = f"default {key} of {function.__qualname__} in {home.__name__}"
                self.found[name] = self._told(home, default)

    def _global(self, module: ModuleType, name: str, value: Any) -> None:
        key = f"{name} in {module.__name__}"
        if key in self.found or id(value) == id(module):
            return
        if isinstance(value, ModuleType):
            if is_file(value) and is_users(value):
                self._module(value)
            if not says(module, name, value):
                self.found[key] = value.__name__
        elif isinstance(value, FunctionType) or inspect.isclass(value):
            defined = self._define(value)
            if not says(module, name, value):
                self.found[key] = defined
        else:
            self._attribute(module, name, value)

    def _attribute(self, module: ModuleType, name: str, value: Any) -> None:
        """Add a value of a module or of one of its classes."""
        if says(module, name, value):
            inner = getattr(value, "__wrapped__", None)
            if isinstance(inner, FunctionType):
                self._define(inner)
            return
        self.found[f"{name} in {module.__name__}"] = self._told(module, value)
        if said_of(module).constant(name) is not UNSAID:
            self.changed.append(f"{module.__name__}.{name}")

    def _told(self, module: ModuleType, value: Any) -> str:
        """Return the content of a value; paths count from the folder that a module is in."""
        if isinstance(value, str):
            value = value.replace(str(getattr(path_of(module), "parent", "")) or " ", ".")
        return content(value, self._define)

    # Functions and classes of a notebook, a script or a function ----------------------------

    def _object(self, value: Any) -> str:
        """Add a function or a class, and what it refers to; return its name."""
        if id(value) in self._names:
            return self._names[id(value)][1]
        name = first = f"{value.__module__}:{value.__qualname__}"
        number = 1
        while name in self.found:  # another of the same name
            number += 1
            name = f"{first} {number}"
        self._names[id(value)] = value, name
        self.found[name] = text_of(value)
        if inspect.isclass(value):
            for base in value.__bases__:
                self._value(f"base {base.__qualname__} of {name}", base)
            self._class_values(name, value)
        for function in functions_of(value):
            for used, what in references_of(function):
                self._value(f"{used} of {name}", what)
            self._follow_modules(function)
        return name

    def _class_values(self, name: str, value: type) -> None:
        said = said_of_class(value)
        for attribute, part in list(vars(value).items()):
            inner = f"{value.__name__}.{attribute}"
            if not _is_value(attribute, part):
                continue
            if isinstance(part, PLAIN):
                self.found[f"{name}.{attribute}"] = repr(part)
            elif not (
                issubclass(value, Enum)  # its text says it all
                or said.is_defined(inner)
                or is_same(said.constant(inner), part)
            ):
                self.found[f"{name}.{attribute}"] = content(part, self._define)

    def _value(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType):
            if is_file(value) and is_users(value):
                self._module(value)
            elif _is_renamed(name, value.__name__.rpartition(".")[2], value):
                self.found[name] = value.__name__
        elif isinstance(value, FunctionType) or inspect.isclass(value):
            defined = self._define(value)
            if _is_renamed(name, value.__qualname__.rpartition(".")[2], value):
                self.found[name] = defined
        elif isinstance(value, PLAIN):
            self.found[name] = repr(value)
        elif _is_of_library(value):
            self.found[name] = repr(value.__qualname__)
        elif is_tree(value) or is_leaf(value):
            self.found[name] = pickled(value)
        else:
            try:
                self.found[name] = content(value, self._define, strict=True)
            except Untold as error:
                raise UsageError(
                    f"models: {name} is a {type(value).__name__}, whose content cannot be told "
                    f"({error}), so that old results might be taken for those of this model: make "
                    "it inside the function that makes the model, or put the model into a file, "
                    "mynets.py, and pass mynets.make."
                ) from error


def _is_value(name: str, part: Any) -> bool:
    """Say whether an attribute of a class is a value, and not code or what Python put there."""
    if name.startswith("__") or name == "_abc_impl" or inspect.isroutine(part):
        return False
    if isinstance(part, functools.cached_property):
        return False
    return not (inspect.isdatadescriptor(part) or hasattr(part, "__func__"))


def _is_renamed(name: str, defined: str, value: Any) -> bool:
    """Say whether code does not name what it refers to: ``conv`` may be this layer or that one."""
    used = name.partition(" of ")[0]
    if used.startswith("base "):
        return False
    if isinstance(value, ModuleType):
        return used != defined and _SHORT.get(used) != value.__name__
    if used != defined:
        return True
    module = sys.modules.get(value.__module__ or "")
    if module is None or not is_file(module) or is_users(module):
        return False
    homes = [vars(sys.modules[home]) for home in _HOMES if home in sys.modules]
    first = next((home[used] for home in homes if used in home), value)
    return first is not value


def _is_of_library(value: Any) -> bool:
    """Say whether something can be called, is a library's, and its name is all there is to it."""
    if not callable(value) or not hasattr(value, "__qualname__"):
        return False
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType | type):
        return False
    home = sys.modules.get(getattr(value, "__module__", None) or "")
    return home is not None and not is_users(home) and home.__name__ != "__main__"
