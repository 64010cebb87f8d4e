"""A text of what a value is made of: the same in every process, another one for another value."""

import copyreg
import functools
import hashlib
import io
import logging
import pickle
import random
import re
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))

_BUILTIN = (types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType)
_SETTLED = (  # of these the type alone counts: they have no part in what is computed
    type(threading.Lock()),
    type(threading.RLock()),
    io.IOBase,
    logging.Logger,
    logging.Handler,
    weakref.ReferenceType,
)
_RANDOM = (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)
_OF_MODULES = frozenset(vars(nn.Module()))
_PASSING = {"training", "inspector", "_data_list"}  # changes while it is used, or is a cache
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu)(:\d+)?")


class Untold(Exception):
    """The content of an object cannot be told."""


def content(value: Any, define: Callable[[Any], str] | None = None, strict: bool = False) -> str:
    """Return what a value is made of, as a text.

    Args:
        value: Anything.
        define: Returns a text for a function or a class; its name if there is no such function.
        strict: Raise where nothing can be told. Otherwise its type stands for an object, and the
            names of devices and the state of random generators do not count.

    Raises:
        Untold: It cannot be told of some part.
    """
    return _Content(define or _named, strict).of(value)


def is_tree(value: Any) -> bool:
    """Say whether a value consists of plain values in lists, tuples and dictionaries alone."""
    try:
        return _is_tree(value)
    except RecursionError:
        return False


def is_leaf(value: Any) -> bool:
    """Say whether a value has no parts, and its pickle is the same everywhere."""
    if isinstance(value, np.ndarray):
        return type(value) is np.ndarray and not value.dtype.hasobject
    if isinstance(value, logging.Logger):
        return logging.getLogger(value.name) is value
    return isinstance(value, torch.device | torch.dtype | np.generic | PurePath | re.Pattern)


def pickled(value: Any) -> str:
    """Return a hash of a leaf, or of plain values in lists, tuples and dictionaries."""
    return hashlib.sha256(pickle.dumps(_apart(value), protocol=4)).hexdigest()


def _is_tree(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_tree, value))
    if type(value) is dict:
        return all(_is_tree(part) for item in value.items() for part in item)
    return type(value) in PLAIN


def _apart(value: Any) -> Any:
    """Return a copy in which equal texts are one object: a pickle says which objects are one."""
    if type(value) in (list, tuple):
        return type(value)(map(_apart, value))
    if type(value) is dict:
        return {_apart(key): _apart(part) for key, part in value.items()}
    return sys.intern(value) if type(value) is str else value


def _named(definition: Any) -> str:
    return f"{definition.__module__}.{definition.__qualname__}"


class _Content:
    def __init__(self, define: Callable[[Any], str], strict: bool) -> None:
        self._define, self._strict = define, strict
        self._open: dict[int, int] = {}  # what is being looked at, and how deep it is
        self._done: dict[int, tuple[Any, str]] = {}  # with the object, whose id it is

    def of(self, value: Any) -> str:
        kind = type(value)
        if kind in PLAIN:
            return self._plain(value)
        if isinstance(value, types.FunctionType | type):
            return self._define(value)
        if isinstance(value, types.ModuleType):
            return f"module {value.__name__}"
        if id(value) in self._done:
            return self._done[id(value)][1]
        if id(value) in self._open:
            return f"<{len(self._open) - self._open[id(value)]} up>"
        self._open[id(value)] = len(self._open)
        try:
            text = self._short(f"{self._define(kind)}{self._inner(value)}")
        except RecursionError:
            raise Untold(f"{_named(kind)} is nested too deep") from None
        finally:
            del self._open[id(value)]
        self._done[id(value)] = value, text
        return text

    def _plain(self, value: Any) -> str:
        if not self._strict and isinstance(value, str) and _DEVICE.fullmatch(value):
            return "device"
        return self._short(repr(value))

    @staticmethod
    def _short(text: str) -> str:
        return text if len(text) < 200 else hashlib.sha256(text.encode()).hexdigest()

    def _all(self, values: Iterable[Any]) -> str:
        return f"({', '.join(map(self.of, values))})"

    def _pairs(self, items: Iterable[tuple[Any, Any]]) -> str:
        return self._all(part for item in items for part in item)

    def _inner(self, value: Any) -> str:
        """Return a text of what is in an object, beside its type."""
        if type(value) in (list, tuple):
            return self._all(value)
        if type(value) is dict:
            return self._pairs(value.items())
        if type(value) in (set, frozenset):
            return f"({', '.join(sorted(map(self.of, value)))})"
        if isinstance(value, nn.Module):
            return self._module(value)
        if isinstance(value, Tensor) and value.layout == torch.strided:
            return self._tensor(value)
        if isinstance(value, functools.partial):
            return self._all([value.func, value.args, value.keywords])
        if isinstance(value, types.MethodType):
            return self._all([value.__func__, value.__self__])
        if isinstance(value, _BUILTIN):
            return self._builtin(value)
        if isinstance(value, _SETTLED):
            return getattr(value, "name", "") if isinstance(value, logging.Logger) else ""
        if isinstance(value, _RANDOM):
            return self._random(value)
        if isinstance(value, torch.device) and not self._strict:
            return ""
        if isinstance(value, torch.layout | torch.memory_format):
            return str(value)
        if isinstance(inner := getattr(value, "__wrapped__", None), types.FunctionType):
            return self._define(inner)  # a cache around a function
        return self._reduced(value)

    def _builtin(self, value: Any) -> str:
        owner = getattr(value, "__self__", None)
        inner = "" if owner is None or isinstance(owner, types.ModuleType) else self.of(owner)
        return f"{value.__qualname__}{inner}"

    def _random(self, value: Any) -> str:
        if not self._strict:
            return ""
        return (
            str(value.initial_seed())
            if isinstance(value, torch.Generator)
            else self._reduced(value)
        )

    def _tensor(self, value: Tensor) -> str:
        if nn.parameter.is_lazy(value) or value.is_meta:
            return "without content"
        flat = value.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        if flat.is_quantized:
            flat = flat.dequantize()
        data = hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()
        return f"({value.dtype}, {tuple(value.shape)}, {value.requires_grad}, {data})"

    def _module(self, value: nn.Module) -> str:
        """Return a text of a network: its numbers, its parts and its attributes.

        What cannot be told of its attributes counts by its type: its code and its numbers count.
        """
        is_library = type(value).__module__.partition(".")[0] in ("torch", "torch_geometric")
        told = [_ADDRESS.sub("", value.extra_repr())]
        for name, part in (
            *value.named_parameters(recurse=False),
            *value.named_buffers(recurse=False),
            *value.named_children(),
        ):
            told.append(f"{name}={self.of(part)}")
        strict, self._strict = self._strict, False
        for name, part in sorted(vars(value).items()):
            if name.endswith("_hooks") and part:
                told.append(f"{name}={self._all(part.values())}")  # keys are counted anew
            elif name in _OF_MODULES | _PASSING or (is_library and name.startswith("_")):
                continue
            else:
                told.append(f"{name}={self.of(part)}")
        self._strict = strict
        return f"({', '.join(told)})"

    def _reduced(self, value: Any) -> str:
        """Return a text of what an object would be made anew from."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            made = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception as error:
            if self._strict:
                raise Untold(f"{_named(type(value))}: {error}") from error
            return ""
        if isinstance(made, str):
            return made
        rest: list[Any] = [*made, *[None] * (6 - len(made))]
        make, args, state, items, pairs = rest[:5]
        if isinstance(state, dict):
            state = {k: v for k, v in state.items() if k not in _PASSING}
        is_usual = make is copyreg.__newobj__  # type: ignore[attr-defined]
        parts = [None if is_usual else make, args, state]
        return f"{self._all(parts)}{self._all(items or ())}{self._pairs(pairs or ())}"
