"""Tensors measured as they pass by, once each, and their gradients when they come back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import ref

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ...ops._observe import Aggregated
from ._edges import Atlas, Edges
from ._groups import Groups
from ._rows import rows_of
from ._statistics import Sums


@dataclass(eq=False)
class Signal:
    """What was measured of one tensor, and of the gradient that came back to it."""

    forward: Sums
    groups: Groups | None
    backward: Sums | None = None


class Signals:
    """Every tensor measured so far: numbers, and never the tensor itself.

    Args:
        atlas: The graphs known so far, which say what the rows of a tensor stand for.
    """

    def __init__(self, atlas: Atlas) -> None:
        self._atlas = atlas
        self._known: dict[int, tuple[_Reference, int, Signal | None]] = {}
        self._last_gradient: tuple[_Reference, Signal | None] = (_nothing, None)
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
        if groups is not None and not _fits(groups, x.shape[axis]):
            groups = None
        axis = axis if x.dim() else 0
        signal = Signal(Sums.of(rows_of(_real(x), axis), groups), groups)
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
        weight, edge = done.weight, done.graph.by_target.edge
        if weight is not None:
            weight = weight.view(len(weight), -1)
            weight = weight if edge is None else weight[edge]  # in the order of the targets
        heads = 1 if weight is None else weight.shape[1]
        rows = rows_of(done.x, heads=heads).taken(edges.source, weight)
        signal = Signal(Sums.of(rows, edges.messages), edges.messages)
        if done.linear and done.out.requires_grad and done.x.requires_grad:
            factor = done.factor

            def measure(gradient: Tensor) -> None:
                rows = rows_of(gradient, heads=1 if factor is None else factor.shape[1])
                share = None if factor is None else factor[edges.target]
                signal.backward = Sums.of(rows.taken(edges.target, share), signal.groups)

            self._hook(done.out, measure)
        return signal

    def close(self) -> None:
        """Take back every hook on a tensor; what has been measured stays."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._known.clear()

    def _await_gradient(self, x: Tensor, signal: Signal, axis: int) -> None:
        def measure(gradient: Tensor) -> None:
            # The same tensor goes back to both terms of a sum.
            tensor, last = self._last_gradient
            if last is not None and tensor() is gradient and last.groups is signal.groups:
                signal.backward = last.backward
            else:
                signal.backward = Sums.of(rows_of(_real(gradient), axis), signal.groups)
                self._last_gradient = (ref(gradient), signal)

        self._hook(x, measure)

    def _hook(self, x: Tensor, measure: Callable[[Tensor], None]) -> None:
        self._handles.append(x.register_hook(measure))  # type: ignore[no-untyped-call]


_Reference = Callable[[], Tensor | None]


def _nothing() -> None:
    return None


def _whole(x: Tensor) -> Tensor:
    """Return the tensor that ``x`` is all of, in another shape; else itself."""
    return x if x._base is None or x._base.numel() != x.numel() else x._base


def _version(x: Tensor) -> int:
    return 0 if x.is_inference() else x._version


def _real(x: Tensor) -> Tensor:
    return torch.view_as_real(x.detach().resolve_conj()) if x.is_complex() else x


def _fits(groups: Groups, count: int) -> bool:
    return all(part is None or len(part) == count for part in groups[1:])
