"""Tensors measured as they pass by, once each, and their gradients when they come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from weakref import ref

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ...ops.observe import Aggregated
from ._edges import Atlas, Edges
from ._groups import Groups
from ._rows import Room, Rows, largest_by_row, rows_of
from ._statistics import Sums, Tally


@dataclass(eq=False)
class Signal:
    """What was measured of one tensor, and of the gradient that came back to it."""

    forward: Sums | Tally
    groups: Groups | None
    backward: Sums | Tally | None = None


class Signals:
    """Every tensor measured so far: numbers, and never the tensor itself.

    Args:
        atlas: The graphs known so far, which say what the rows of a tensor stand for.
    """

    def __init__(self, atlas: Atlas) -> None:
        self._atlas = atlas
        self._known: dict[int, tuple[_Reference, int, Signal | None]] = {}
        self._recent: list[tuple[_Reference, tuple[int, int, int], Rows]] = []
        self._room = Room()
        self._handles: list[RemovableHandle] = []

    def of(
        self,
        x: Tensor,
        groups: Groups | None = None,
        axis: int = 0,
        messages_of: Edges | None = None,
    ) -> Signal:
        """Return what is known of a tensor; measure it if it is new, or was changed in place.

        Args:
            x: A tensor of real or complex numbers.
            groups: What its rows stand for; by default as the atlas has it.
            axis: The axis of the rows.
            messages_of: The edges whose messages are just being made, if any are.
        """
        if (known := self.known(x)) is not None:
            return known
        if groups is None and x.dim() > 1:
            groups = self._atlas.groups(x.shape[axis], messages_of)
        if groups is not None and len(groups.labels) != x.shape[axis]:
            groups = None
        axis = axis if x.dim() else 0
        signal = Signal(Sums.of(self._rows(x, axis), groups), groups)
        whole = _whole(x)
        self._known[id(whole)] = (ref(whole), _version(whole), signal)
        if x.requires_grad and not isinstance(x, nn.Parameter):
            self._await_gradient(x, signal, axis)
        return signal

    def known(self, x: Tensor) -> Signal | None:
        """Return what is known of a tensor that has been measured and not been changed since."""
        whole = _whole(x)
        tensor, version, signal = self._known.get(id(whole), (_nothing, 0, None))
        return signal if tensor() is whole and version == _version(whole) else None

    def of_messages(self, done: Aggregated, edges: Edges) -> Signal:
        """Measure messages that were never formed, by the rows of their sources and weights.

        Their gradient is ``factor_i`` times that of their sum, so that is measured by rows too.
        """
        if done.weight is None:
            flows = edges.flows
            rows = self._rows(done.x, by_row=True).taken(flows.source).repeated(flows.times)
            signal = Signal(Sums.of(rows, flows.groups), flows.groups)
        else:
            weight = done.weight.unsqueeze(-1).flatten(1)  # [edges, heads], of no edges too
            rows = self._rows(done.x, heads=weight.shape[1], by_row=True)
            rows = rows.taken(edges.source).weighted(weight)
            signal = Signal(Sums.of(rows, edges.messages), edges.messages)
        if done.linear and done.out.requires_grad and done.x.requires_grad:
            factor = done.factor

            def measure(gradient: Tensor) -> None:
                heads = 1 if factor is None else factor.shape[1]
                rows = self._rows(gradient, heads=heads, by_row=True)
                rows = rows if factor is None else rows.weighted(factor)
                signal.backward = Sums.of(rows.repeated(edges.received), edges.nodes)

            self._hook(done.out, measure)
        return signal

    def close(self) -> None:
        """Take back every hook on a tensor; what has been measured stays."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._known.clear()
        self._recent.clear()

    def _await_gradient(self, x: Tensor, signal: Signal, axis: int) -> None:
        def measure(gradient: Tensor) -> None:
            signal.backward = Sums.of(self._rows(gradient, axis), signal.groups)

        self._hook(x, measure)

    def _rows(self, x: Tensor, axis: int = 0, heads: int = 1, *, by_row: bool = False) -> Rows:
        """Return the sums over rows, for a while remembered.

        A tensor and its messages are measured one after the other, and the gradient of a sum goes
        back to both of its terms. Messages also need the largest number of each row.
        """
        asked = (_version(x), axis, heads)
        found = (rows for tensor, known, rows in self._recent if tensor() is x and known == asked)
        if (rows := next(found, None)) is None:
            rows = rows_of(real_parts(x), axis, heads, self._room)
            self._recent = [*self._recent[-1:], (ref(x), asked, rows)]
        return rows._replace(largest=largest_by_row(x, heads)) if by_row else rows

    def _hook(self, x: Tensor, measure: Callable[[Tensor], None]) -> None:
        self._handles.append(x.register_hook(measure))  # type: ignore[no-untyped-call]


class Unchanged:
    """Tensors that are to be known again as long as nobody changes them in place."""

    def __init__(self, given: Iterable[Tensor]) -> None:
        self._known = {id(x): (ref(x), _version(x)) for x in given}

    def holds(self, x: Tensor) -> bool:
        """Tell whether ``x`` is one of them."""
        tensor, version = self._known.get(id(x), (_nothing, 0))
        return tensor() is x and version == _version(x)


_Reference = Callable[[], Tensor | None]


def _nothing() -> None:
    return None


def _whole(x: Tensor) -> Tensor:
    """Return the tensor that ``x`` is all of, in another shape; else itself."""
    return x if x._base is None or x._base.numel() != x.numel() else x._base


def _version(x: Tensor) -> int:
    return 0 if x.is_inference() else x._version


def real_parts(x: Tensor) -> Tensor:
    """Return a tensor of real numbers: of complex ones both parts."""
    return torch.view_as_real(x.detach().resolve_conj()) if x.is_complex() else x
