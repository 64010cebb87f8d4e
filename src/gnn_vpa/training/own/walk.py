"""A walk over all that a function reaches, as a text: other code or another value, another text.

What runs is walked, not what a file says: functions by their code, with what they read and have
around them; classes by their bases and attributes; values by their content. Of libraries the names
count alone. An object that was met before is told by its place, so that one layer that is used
twice is not two equal ones.
"""

import copyreg
import functools
import hashlib
import io
import logging
import os
import random
import re
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from enum import Enum
from pathlib import PurePath
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .counted import counts, is_met
from .modules import imported_by, is_users, path_of
from .references import held_by, read_by
from .source import check_is_loaded, code_text, parsed, read_text

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented))
_SETTLED = (  # of these the type alone counts: they have no part in what is computed
    type(threading.Lock()),
    type(threading.RLock()),
    threading.local,
    io.IOBase,
    logging.Logger,
    logging.Handler,
    weakref.ReferenceType,
    ContextVar,
    torch.device,
    random.Random,
    type(os.environ),
)
_DESCRIPTORS = (
    types.BuiltinFunctionType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
_WRAPPED = (  # what a library's decorator may have around the user's function
    FunctionType, types.MethodType, functools.partial, type, types.MappingProxyType, tuple,
    nn.Module, *_PLAIN,
)  # fmt: skip
_PLACE = re.compile(r" #.*")  # where a compiled operation is written
_RANDOM_END = re.compile(r"_[0-9a-f]{6}$")  # of modules that PyG's Sequential writes
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu)(:\d+)?")


class Untold(Exception):
    """The content of an object cannot be told."""


class Walk:
    """A walk.

    Attributes:
        modules: The user's modules that were met, and those that these import.
        at: What is being looked at, for messages.

    Example:
        >>> one, other = Walk(), Walk()
        >>> one.value([1, 2]), other.value([2, 1])
        (None, None)
        >>> one.digest() == other.digest()
        False
    """

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}
        self.at = "the model"
        self._texts: dict[str, str] = {}  # of modules
        self._hash = hashlib.sha256()
        self._met: dict[int, tuple[int, Any]] = {}  # with the object, whose id it is
        self._is_strict = True
        self._folder = ""

    def digest(self) -> str:
        """Return a hash of all that was walked."""
        whole = repr((sorted(self._texts.items()), self._hash.hexdigest()))
        return hashlib.sha256(whole.encode()).hexdigest()

    def value(self, value: Any) -> None:
        """Walk over anything.

        Raises:
            Untold: Nothing can be told of some part.
        """
        kind = type(value)
        if value is sys.modules:
            self._put("modules")
        elif kind in _PLAIN:
            self._put(kind.__name__, self._plain(value))
        elif kind in (tuple, frozenset):  # where constants are one object is up to Python
            self._inner(value)
        elif id(value) in self._met:
            self._put("again", self._met[id(value)][0])
        else:
            self._met[id(value)] = len(self._met), value
            self._inner(value)

    def _put(self, *words: object) -> None:
        self._hash.update(repr(words).encode("utf-8", "surrogatepass"))

    def _values(self, kind: str, values: Any) -> None:
        values = list(values)
        self._put(kind, len(values))
        for value in values:
            self.value(value)

    def _plain(self, value: Any) -> Any:
        """Return a value without the folder that its module is in, and without a device's name."""
        if not isinstance(value, str):
            return value
        if _DEVICE.fullmatch(value):
            return "device"
        return value.replace(self._folder, ".") if self._folder else value

    def _inner(self, value: Any) -> None:
        walk = _EXACT.get(type(value))
        walk = walk or next((way for kind, way in _KINDS if isinstance(value, kind)), Walk._object)
        walk(self, value)

    # Code -----------------------------------------------------------------------------------

    def _function(self, function: FunctionType) -> None:
        home = sys.modules.get(function.__globals__.get("__name__", ""))
        if not is_met(home):
            where = _RANDOM_END.sub("", function.__globals__.get("__name__", ""))
            self._put("function", where, function.__qualname__)
            self._wrapped(function)
            return
        self._module_text(home)
        check_is_loaded(function)
        self._put("function", code_text(function.__code__))
        with self._within(home):
            # What a file makes when it is imported is in its text.
            with self._leniently() if home is not None and is_users(home) else nullcontext():
                self._named(function, read_by(function))
            self._named(function, held_by(function))
        for name, part in sorted(vars(function).items()):
            self._put(name)
            with self._leniently():
                self.value(part)

    def _named(self, function: FunctionType, parts: Iterable[tuple[str, Any]]) -> None:
        for name, part in parts:
            self.at = f"{name} of {function.__module__}:{function.__qualname__}"
            self._put(name)
            self.value(part)

    def _wrapped(self, function: FunctionType) -> None:
        """Walk over what a library's decorator has around the user's function."""
        parts = [vars(function).get("__wrapped__"), vars(function).get("registry")]
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # not assigned yet
                parts.append(cell.cell_contents)
        for part in parts:
            if isinstance(part, _WRAPPED) or is_met(sys.modules.get(type(part).__module__)):
                with self._leniently():
                    self.value(part)

    def _class(self, kind: type) -> None:
        home = sys.modules.get(kind.__module__ or "")
        self._put("class", kind.__qualname__)
        if not is_met(home):
            self._put(kind.__module__)
            return
        self._module_text(home)
        self.value(type(kind))
        self._values("bases", kind.__bases__)
        if issubclass(kind, Enum):
            self._values("members", [(member.name, member.value) for member in kind])
        for name, part in sorted(vars(kind).items()):
            if counts(kind, name, part):
                self._put(name)
                with self._leniently(), self._within(home):
                    self.value(part)

    def _module(self, module: ModuleType) -> None:
        """Walk over a module that is used as a value: any of its names may be read."""
        self._put("module", module.__name__)
        if not is_users(module):
            return
        self._module_text(module)
        for name, part in sorted(vars(module).items()):
            if not name.startswith("__"):
                self._put(name)
                with self._leniently(), self._within(module):
                    self.value(part)

    def _module_text(self, module: ModuleType | None) -> None:
        """Add the text of a user's module, its packages, and what it imports of the user's.

        What a module does when it is imported, to others too, is in its text alone.
        """
        if module is None or not is_users(module):
            return
        name, path = module.__name__, path_of(module)
        if name in self.modules or path is None:
            return
        self.modules[name] = module
        self._texts[name], tree = parsed(read_text(path), path)
        for other in (name.rpartition(".")[0], *imported_by(tree, module.__package__ or "")):
            self._module_text(sys.modules.get(other))

    # Values ---------------------------------------------------------------------------------

    def _settled(self, value: Any) -> None:
        self._put(type(value).__qualname__)

    def _set(self, value: Any) -> None:
        if all(type(part) in _PLAIN for part in value):
            self._put("set", sorted((type(part).__name__, repr(part)) for part in value))
            return
        digests = []
        for part in value:
            walk = Walk()
            walk.modules, walk._texts, walk._met = self.modules, self._texts, dict(self._met)
            walk._is_strict, walk._folder, walk.at = self._is_strict, self._folder, self.at
            walk.value(part)
            digests.append(walk._hash.hexdigest())
        self._put("set", sorted(digests))

    def _builtin(self, value: Any) -> None:
        owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
        self._put(getattr(value, "__module__", None), value.__qualname__)
        if isinstance(owner, type):
            self._put(owner.__module__, owner.__qualname__)
        elif not isinstance(owner, ModuleType):
            self.value(owner)

    def _tensor(self, value: Tensor) -> None:
        self.value(type(value))
        if value.layout != torch.strided:
            self._object(value)
        elif nn.parameter.is_lazy(value) or value.is_meta:
            self._put("without content")
        else:
            flat = value.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
            flat = flat.dequantize() if flat.is_quantized else flat
            data = hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()
            hooks = list((value._backward_hooks or {}).values()) if value.requires_grad else []
            self._put(str(value.dtype), tuple(value.shape), value.requires_grad, data)
            self._values("hooks", hooks)

    def _array(self, value: Any) -> None:
        self._put("array", value.dtype.str, value.shape)
        if value.dtype.hasobject:
            self._values("objects", value.ravel().tolist())
        else:
            self._put(hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest())

    def _network(self, value: nn.Module) -> None:
        if isinstance(value, torch.jit.ScriptModule):
            raise Untold(f"{type(value).__name__}: compiled already")
        self.value(type(value))
        if type(value).__module__.startswith("torch._dynamo"):  # with numbers of this process
            self.value(value._orig_mod)
            return
        for name, part in sorted(vars(value).items()):
            if name == "training" or (name == "_graph" and isinstance(value, torch.fx.GraphModule)):
                continue  # changed while it is used; told by its code
            if name == "inspector" and hasattr(value, "propagate"):
                continue  # what PyG has read of a layer's code
            if "_hooks" in name and isinstance(part, dict):
                part = list(part.values())  # their numbers are counted over all networks
            self._put(name)
            with self._leniently():  # its code and its numbers count
                self.value(part)

    def _object(self, value: Any) -> None:
        """Walk over what an object would be made anew from."""
        self.value(type(value))
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            made = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception as error:
            if self._is_strict:
                raise Untold(f"{type(value).__name__}: {error}") from error
            return
        if isinstance(made, str):
            self._put(made)
            return
        make, arguments, state, items, pairs = [*made, *[None] * 6][:5]
        if isinstance(state, dict):
            state = {name: part for name, part in state.items() if name != "_data_list"}  # a cache
        is_usual = make is copyreg.__newobj__  # type: ignore[attr-defined]
        for part in (None if is_usual else make, arguments, state):
            self.value(part)
        self._values("items", items or ())
        self._values("pairs", pairs or ())

    @contextmanager
    def _leniently(self) -> Iterator[None]:
        """Let types stand for objects whose content cannot be told."""
        before, self._is_strict = self._is_strict, False
        try:
            yield
        finally:
            self._is_strict = before

    @contextmanager
    def _within(self, module: ModuleType | None) -> Iterator[None]:
        """Let the folder of a user's module not count in texts."""
        path = path_of(module) if module is not None else None
        before, self._folder = self._folder, str(path.parent) if path else ""
        try:
            yield
        finally:
            self._folder = before


def _script(value: Any) -> str:
    """Return a compiled function's operations, with those of functions that it calls."""
    return _PLACE.sub("", str(value.inlined_graph))


_EXACT: dict[type, Callable[[Walk, Any], None]] = {
    list: lambda walk, value: walk._values("list", value),
    tuple: lambda walk, value: walk._values("tuple", value),
    dict: lambda walk, value: walk._values("dict", value.items()),
    set: Walk._set,
    frozenset: Walk._set,
    types.MappingProxyType: lambda walk, value: walk._values("dict", value.items()),
    type({}.keys()): lambda walk, value: walk._values("list", value),
    type({}.values()): lambda walk, value: walk._values("list", value),
    type({}.items()): lambda walk, value: walk._values("list", value),
    staticmethod: lambda walk, value: walk._values("static", [value.__func__]),
    classmethod: lambda walk, value: walk._values("class", [value.__func__]),
    types.MethodType: lambda walk, value: walk._values("bound", [value.__func__, value.__self__]),
    property: lambda walk, value: walk._values("property", [value.fget, value.fset]),
    functools.cached_property: lambda walk, value: walk._values("property", [value.func]),
    np.ndarray: Walk._array,
    io.BytesIO: lambda walk, value: walk._put(value.getvalue()),
    io.StringIO: lambda walk, value: walk._put(value.getvalue()),
    torch.jit.ScriptFunction: lambda walk, value: walk._put("script", _script(value)),
}  # fmt: skip

_KINDS: tuple[tuple[Any, Callable[[Walk, Any], None]], ...] = (
    (_SETTLED, Walk._settled),
    (FunctionType, Walk._function),
    (type, Walk._class),
    (ModuleType, Walk._module),
    (_DESCRIPTORS, Walk._builtin),
    (functools._lru_cache_wrapper, lambda walk, value: walk._values("cache", [value.__wrapped__])),
    (nn.Module, Walk._network),
    (Tensor, Walk._tensor),
    (np.generic, lambda walk, value: walk._put(value.dtype.str, value.tobytes())),
    (np.random.RandomState, Walk._settled),  # who has drawn from these changes with every model
    (np.random.Generator, lambda walk, value: walk._put(str(value.bit_generator.seed_seq))),
    (torch.Generator, lambda walk, value: walk._put("draws", value.initial_seed())),
    ((torch.layout, torch.memory_format), lambda walk, value: walk._put(str(value))),
    (PurePath, lambda walk, value: walk._put("path", walk._plain(str(value)))),
    (
        torch._ops.OpOverloadPacket | torch._ops.OpOverload,
        lambda walk, value: walk._put(str(value)),
    ),
)
