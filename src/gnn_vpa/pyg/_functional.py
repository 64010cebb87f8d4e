"""Pooling functions called within ``forward``: found in its code, without running it."""

import dis
import functools
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn
from torch_geometric import nn as pyg_nn
from torch_geometric import utils

_POOLS = {pyg_nn.global_add_pool, pyg_nn.global_mean_pool, pyg_nn.global_max_pool}
_SCATTERS = {utils.scatter, utils.segment, torch.scatter_add, torch.scatter_reduce, torch.index_add}
_SCATTER_METHODS = {"scatter_add", "scatter_reduce", "index_add"}  # and those in place, with a _
_UNKNOWN = object()


def functional_pools(module: nn.Module) -> Iterator[tuple[str, str]]:
    """Yield ``(function, "Class.method, file:line")`` for each pool that ``forward`` calls.

    Names are looked up as Python would: globals, closures, attributes of modules, attributes and
    methods of ``self``. Functions of the user's own are followed. Of a module of PyG only its pools
    count, as what it scatters is its own affair.
    """
    search = _Search(module)
    found = (pool for forward in _forwards(type(module)) for pool in search.within(forward))
    yield from dict.fromkeys(found)


def _forwards(cls: type) -> Iterator[FunctionType]:
    """Yield ``forward``, and that of the next base for as long as ``super`` is asked for it."""
    for base in cls.__mro__:
        forward = vars(base).get("forward")
        if isinstance(forward, FunctionType):
            yield forward
            if "super" not in forward.__code__.co_names:
                return


class _Search:
    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.deep = True  # follow other functions, and mind scatters too
        self.seen: set[CodeType] = set()
        self.imported: Any = _UNKNOWN  # the module that names are being imported from

    def within(self, function: FunctionType) -> Iterator[tuple[str, str]]:
        """Yield the pools that a function calls, or takes by default."""
        if _home(function) in ("torch", "gnn_vpa"):
            return
        self.deep = _home(function) != "torch_geometric"
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        place = _place(function.__code__, function.__code__.co_firstlineno)
        for value in defaults:
            yield from self._judge(value, place)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        names = dict(function.__globals__)
        names |= {name: _contents(cell) for name, cell in cells}
        yield from self._scan(function.__code__, names)

    def _scan(self, code: CodeType, names: dict[str, Any]) -> Iterator[tuple[str, str]]:
        if code in self.seen:
            return
        self.seen.add(code)
        value: Any = _UNKNOWN  # on top of Python's stack, if it is known
        for step in dis.get_instructions(code):
            value = self._step(step, value, names)
            place = _place(code, step.positions.lineno if step.positions else None)
            if value is not _UNKNOWN:
                yield from self._judge(value, place)
            elif self.deep and _is_scatter_method(step):
                yield f"Tensor.{step.argval}", place
        for const in code.co_consts:
            if isinstance(const, CodeType):
                yield from self._scan(const, names)

    def _step(self, step: dis.Instruction, value: Any, names: dict[str, Any]) -> Any:
        """Return what is on top of the stack after a step, as far as it matters here."""
        name = step.argval
        match step.opname:
            case "LOAD_GLOBAL" | "LOAD_NAME" | "LOAD_DEREF" | "LOAD_CLASSDEREF":
                return names.get(name, self.module if name == "self" else _UNKNOWN)
            case "LOAD_ATTR" | "LOAD_METHOD":
                return _UNKNOWN if value is _UNKNOWN else _attribute(value, name)
            case "IMPORT_NAME":
                self.imported = sys.modules.get(name, _UNKNOWN)
            case "IMPORT_FROM":
                return getattr(self.imported, name, _UNKNOWN)
            case opname if opname.startswith("LOAD_FAST"):
                top = name[-1] if isinstance(name, tuple) else name  # of two loaded at once
                return self.module if top == "self" else _UNKNOWN
            case "CACHE" | "PUSH_NULL" | "EXTENDED_ARG":
                return value
        return _UNKNOWN

    def _judge(self, value: Any, place: str) -> Iterator[tuple[str, str]]:
        """Yield what a value is, or contains, or calls, if that is a pool."""
        if isinstance(value, functools.partial):
            value = value.func
        if isinstance(value, MethodType):
            value = value.__func__
        if isinstance(value, dict | list | tuple):
            for item in value.values() if isinstance(value, dict) else value:
                if callable(item) and not isinstance(item, nn.Module):
                    yield from self._judge(item, place)
        elif _is_pool(value, self.deep):
            yield value.__name__, place
        elif self.deep and isinstance(value, FunctionType) and not _is_library(value):
            yield from self.within(value)


def _is_pool(value: Any, deep: bool) -> bool:
    try:
        known = value in _POOLS or (deep and value in _SCATTERS)
    except TypeError:  # not hashable
        return False
    return known or (deep and callable(value) and _home(value) == "torch_scatter")


def _is_scatter_method(step: dis.Instruction) -> bool:
    is_attribute = step.opname in ("LOAD_ATTR", "LOAD_METHOD")
    return is_attribute and step.argval.rstrip("_") in _SCATTER_METHODS


def _is_library(function: FunctionType) -> bool:
    home = _home(function)
    return home in ("torch", "torch_geometric", "gnn_vpa") or home in sys.stdlib_module_names


def _home(value: Any) -> str:
    return (getattr(value, "__module__", None) or "").partition(".")[0]


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute; of a property what computes it, as nothing must run."""
    static = inspect.getattr_static(value, name, None)
    return static.fget if isinstance(static, property) else getattr(value, name, _UNKNOWN)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return _UNKNOWN


def _place(code: CodeType, line: int | None) -> str:
    return f"{code.co_qualname}, {Path(code.co_filename).name}:{line or code.co_firstlineno}"
