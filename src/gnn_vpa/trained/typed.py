"""Conversion of JSON to typed records; a value of another type is an error."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from math import inf
from typing import Any, Literal, get_args, get_origin, get_type_hints


def typed(value: object, kind: Any, where: str) -> Any:
    """Return a value of JSON as an object of a type; numbers are finite and of 64 bits at most.

    Args:
        value: What `json.loads` returned.
        kind: A dataclass, or what its fields may be: numbers, text, tuples, mappings, unions.
        where: What the value is called in messages.

    Raises:
        ValueError: It is of another type, or a dataclass refuses it.

    Example:
        >>> typed([1, 2], tuple[int, ...], "depths")
        (1, 2)
        >>> typed([1, "2"], tuple[int, ...], "depths")
        Traceback (most recent call last):
        ValueError: depths[1] must be of type int, not '2'
    """
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(value, dict):
        hints = get_type_hints(kind)
        made: Any = kind
        try:
            fields = {k: typed(v, hints.get(k, Any), f"{where}.{k}") for k, v in value.items()}
            return made(**fields)
        except TypeError as error:  # fields that it does not have, or too few of them
            raise ValueError(f"{where}: {error}") from error
    if origin is tuple and isinstance(value, list):
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else list(inner)
        if len(kinds) == len(value):
            pairs = enumerate(zip(value, kinds, strict=True))
            return tuple(typed(each, of, f"{where}[{n}]") for n, (each, of) in pairs)
    elif origin is Mapping and isinstance(value, dict):
        return {key: typed(each, inner[1], f"{where}.{key}") for key, each in value.items()}
    elif kind is Any or (origin is Literal and value in inner and isinstance(value, str)):
        return value
    elif origin not in (None, tuple, Mapping, Literal):  # a union
        for each in inner:
            try:
                return typed(value, each, where)
            except ValueError:
                pass
    elif type(value) is kind or (kind is float and type(value) is int):
        limit = inf if isinstance(value, float) else 2**63
        if not isinstance(value, int | float) or abs(value) < limit:
            return value
    name = getattr(kind, "__name__", str(kind)) if origin is None else str(kind)
    raise ValueError(f"{where} must be of type {name}, not {str(value)[:40]!r}")
