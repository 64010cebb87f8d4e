"""Functions of PyG: compared with what is known, and read with a name meaning something else."""

from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MappingProxyType
from typing import Any


def reads(function: Callable[..., Any], name: str) -> bool:
    """Tell whether ``function`` looks ``name`` up as a global."""
    return name in function.__code__.co_names


def rebound(
    function: Any, methods: Mapping[str, str] = MappingProxyType({}), **names: Any
) -> FunctionType:
    """Return ``function`` with these globals in place of its own, and methods of other names.

    So a layer whose only trouble is the normalisation that its ``forward`` calls keeps every
    argument and feature, in every version of PyG; the layer it comes from is not touched.
    """
    scope = {**function.__globals__, **names}
    # torch.compile reads the globals of a function that says where it lives from there.
    scope.pop("__name__", None)
    code, defaults, closure = function.__code__, function.__defaults__, function.__closure__
    code = code.replace(co_names=tuple(methods.get(name, name) for name in code.co_names))
    copy = FunctionType(code, scope, function.__name__, defaults, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = function.__annotations__
    copy.__doc__, copy.__module__ = function.__doc__, function.__module__
    copy.__qualname__ = function.__qualname__
    return copy


def same_code(f: Callable[..., Any], g: Callable[..., Any]) -> bool:
    """Tell whether two functions have the same code, docstrings aside."""

    def essence(code: CodeType) -> tuple[object, ...]:
        # The first constant is the docstring, if there is one.
        return code.co_code, code.co_names, code.co_varnames, code.co_consts[1:]

    return essence(f.__code__) == essence(g.__code__)
