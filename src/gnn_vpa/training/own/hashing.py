"""What a model is made of, as a hash: an edited model is another one.

The hash is of what runs: the code that the factory reaches, and the values that this code reads as
they are now (``walk.py``). The text of the user's modules counts too, as what they do when they are
imported is nowhere else: comments, formatting and docstrings do not matter, and neither do the
versions of libraries.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ...errors import UsageError
from .walk import Untold, Walk


def source_hash(factory: Callable[..., Any]) -> str:
    """Return a hash of a factory and of all that it uses, 16 hexadecimal digits.

    It is computed anew each time: values that the factory reads may have changed.

    Raises:
        UsageError: A module was edited after it was imported, or something has no content that
            can be told.

    Example:
        >>> len(source_hash(source_hash))
        16
    """
    return _walked(factory).digest()[:16]


def modules_of(factory: Callable[..., Any]) -> list[ModuleType]:
    """Return the user's modules that a factory needs, and that other machines may not have.

    Example:
        >>> modules_of(source_hash)
        []
    """
    return list(_walked(factory).modules.values())


_DEEP = 20_000  # of a chain of functions each takes some ten calls


def _walked(factory: Callable[..., Any]) -> Walk:
    walk, before = Walk(), -1
    try:
        with _deep():
            # What functions import is imported by the walk: another one sees all of it at once.
            while before != len(sys.modules):
                walk, before = Walk(), len(sys.modules)
                walk.value(factory)
    except (Untold, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else error
        raise UsageError(
            f"models: the content of {walk.at} cannot be told ({why}), so that old results might "
            "be taken for those of this model: make it inside the function that makes the model, "
            "or put the model into a file, mynets.py, and pass mynets.make."
        ) from error
    return walk


@contextmanager
def _deep() -> Iterator[None]:
    """Allow many calls within each other."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
