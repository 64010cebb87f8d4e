"""Observers of the aggregations of a thread, which the probe sets; none by default.

Without an observer an aggregation looks at one variable more, and that is all.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import NamedTuple

from torch import Tensor

from ._graph import Graph


class Aggregated(NamedTuple):
    """What one aggregation was given, and what it made: ``out_i = factor_i * sum_j weight_ij x_j``.

    Attributes:
        x: Features of the sources, ``[num_sources, ...]``.
        graph: The edges.
        weight: ``[num_edges]`` or ``[num_edges, heads or 1]``, multiplicities included; None: 1.
        factor: ``[num_targets, heads or 1]``; None: all 1.
        out: ``[num_targets, ...]``.
        linear: Whether it is that sum; False: the maximum in its place.
    """

    x: Tensor
    graph: Graph
    weight: Tensor | None
    factor: Tensor | None
    out: Tensor
    linear: bool = True


Observer = Callable[[Aggregated], None]

_observers: dict[int, Observer] = {}  # by the thread that they watch


def observer() -> Observer | None:
    """Return the observer of the aggregations of this thread."""
    return _observers.get(get_ident()) if _observers else None


@contextmanager
def observed(by: Observer) -> Iterator[None]:
    """Pass every aggregation of this thread to ``by``; restore the previous observer afterwards."""
    thread, before = get_ident(), observer()
    _observers[thread] = by
    try:
        yield
    finally:
        del _observers[thread]
        if before is not None:
            _observers[thread] = before
