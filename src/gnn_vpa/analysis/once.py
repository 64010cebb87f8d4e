"""While a report is made, what was computed of a frame is not computed again.

Sections ask for the same summaries and tests of the same frame, and a run with many settings has
many frames. Only within `remembering` is anything remembered: elsewhere a frame may change between
two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    pass

P = ParamSpec("P")
R = TypeVar("R")

_known: ContextVar[dict[Any, tuple[Any, Any]] | None] = ContextVar("gnn_vpa_known", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Remember what functions under `once` return, until the block ends; no frame may change.

    Example:
        >>> with remembering():
        ...     pass
    """
    token = _known.set({} if _known.get() is None else _known.get())
    try:
        yield
    finally:
        _known.reset(token)


def once(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of a frame, and of what is hashable, be computed once within `remembering`.

    Example:
        >>> import pandas as pd
        >>> calls = []
        >>> size = once(lambda frame: calls.append(1) or len(frame))
        >>> frame = pd.DataFrame({"a": [1, 2]})
        >>> with remembering():
        ...     size(frame), size(frame), len(calls)
        (2, 2, 1)
        >>> size(frame), size(frame), len(calls)
        (2, 2, 3)
    """

    @wraps(function)
    def computed(*args: P.args, **kwargs: P.kwargs) -> R:
        known = _known.get()
        if known is None:
            return function(*args, **kwargs)
        frame, *rest = args
        key = (function, id(frame), *rest, *sorted(kwargs.items()))
        if key not in known:
            # The frame is kept too: the number of one that is gone could be another's.
            known[key] = (frame, function(*args, **kwargs))
        return _copied(known[key][1])  # type: ignore[no-any-return]

    return computed


def _copied(value: Any) -> Any:
    """Return what a caller may change: a frame's copy."""
    return value.copy() if hasattr(value, "columns") else value
