"""Writing down what happens while a model runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from weakref import ref

import torch
from torch import Tensor, nn
from torch._dynamo import OptimizedModule
from torch.utils.hooks import RemovableHandle
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import Aggregation

from ...ops._observe import Aggregated
from ...pyg._propagate import VPMessagePassing
from ._edges import Atlas, Edges
from ._groups import Groups
from ._inputs import is_readout, real_tensor
from ._rows import Rows, rows_of
from ._smoothness import Smoothness
from ._statistics import Sums

StepName = Literal["input", "output", "message", "aggregation", "update", "readout"]


@dataclass(eq=False)
class Signal:
    """What was measured of one tensor, and of the gradient that came back to it."""

    forward: Sums
    groups: Groups | None
    backward: Sums | None = None


@dataclass(eq=False)
class Entry:
    """One line of the record."""

    path: str
    kind: str
    step: StepName
    signal: Signal
    before: Signal | None  # what the step was made from
    origin: Signal | None = None  # what the messages, or the whole layer's result, came from
    aggr: str | None = None
    shape: tuple[int, ...] = ()
    smooth: Smoothness | None = None


@dataclass(eq=False)
class Frame:
    """A call that has not returned yet."""

    module: nn.Module
    given: Signal | None
    edges: Edges | None = None
    in_message: bool = False
    in_steps: bool = False  # PyG's steps are watched: what they aggregate with is theirs
    source: Signal | None = None
    message: Signal | None = None
    aggregated: Signal | None = None


class Recorder:
    """Measures tensors at once and keeps numbers, never a tensor.

    Args:
        names: The path of each module in the model.
        atlas: The graphs known so far.
    """

    def __init__(self, names: dict[nn.Module, str], atlas: Atlas) -> None:
        self.entries: list[Entry] = []
        self.notes: list[str] = []
        self._names = names
        self._atlas = atlas
        self._stack: list[Frame] = []
        self._known: dict[int, tuple[Callable[[], Tensor | None], int, Signal | None]] = {}
        self._handles: list[RemovableHandle] = []
        self._last_gradient: tuple[Callable[[], Tensor | None], Signal | None] = _nothing
        self._busy = False  # our own sums over neighbours are not the model's

    # What the hooks call

    def enter(self, module: nn.Module, given: Any) -> Frame:
        """A module is called."""
        frame = Frame(module, self._signal_of(real_tensor(given)))
        self._stack.append(frame)
        return frame

    def leave(self, module: nn.Module, result: Any) -> None:
        """A module returns ``result``, or None where an exception has left it."""
        if self._frame_of(module) is None:
            return
        while (frame := self._stack[-1]).module is not module:
            self._stack.pop()
        out = real_tensor(result)
        if out is not None:
            if frame.aggregated is not None and _is_update(frame, out):
                self._note(frame, "update", out, frame.aggregated, origin=frame.given)
            elif isinstance(module, Aggregation):
                self._note(frame, "readout", out, frame.given)
            elif is_leaf(module) or (len(self._stack) == 1 and self._known_signal(out) is None):
                self._note(frame, "output", out, frame.given)
        self._stack.pop()

    def given(self, x: Tensor) -> None:
        """The model is given ``x``, of real numbers."""
        signal = self._signal_of(x)
        if signal is not None:
            entry = Entry("", "input", "input", signal, None, shape=tuple(x.shape))
            entry.smooth = self._smoothness(x, signal)
            self.entries.append(entry)

    def propagating(self, layer: nn.Module, edges: Edges | None, source: Tensor | None) -> None:
        """A layer of PyG starts to pass messages along ``edges``, made from ``source``."""
        if (frame := self._frame_of(layer)) is not None:
            frame.edges, frame.in_message, frame.in_steps = edges, True, True
            frame.message = None
            frame.source = self._signal_of(source) or frame.given

    def message(self, layer: nn.Module, out: Any, axis: int) -> None:
        """A layer of PyG has made its messages."""
        frame, x = self._frame_of(layer), real_tensor(out)
        if frame is not None:
            frame.in_message = False
            if x is not None:
                groups = None if frame.edges is None else frame.edges.messages
                frame.message = self._note(frame, "message", x, frame.source, groups, axis)

    def aggregation(self, layer: nn.Module, out: Any, axis: int) -> None:
        """A layer of PyG has aggregated its messages."""
        frame, x = self._frame_of(layer), real_tensor(out)
        if frame is not None and x is not None:
            groups = None if frame.edges is None else frame.edges.nodes
            before = frame.message or frame.source
            frame.aggregated = self._note(
                frame, "aggregation", x, before, groups, axis, frame.source
            )

    def propagated(self, layer: nn.Module) -> None:
        """A layer of PyG has passed its messages."""
        if (frame := self._frame_of(layer)) is not None:
            frame.in_message = frame.in_steps = False

    def aggregated(self, done: Aggregated) -> None:
        """One of our own aggregations has run."""
        frame = next((frame for frame in reversed(self._stack) if _may_aggregate(frame)), None)
        if self._busy or frame is None or any(frame.in_steps for frame in self._stack):
            return
        if isinstance(self._stack[-1].module, Aggregation):
            return  # a pooling module, which is noted when it returns
        if is_readout(done.graph):
            groups = self._atlas.groups(len(done.out))
            self._note(frame, "readout", done.out, self._signal_of(done.x), groups)
            return
        edges = self._atlas.edges_of(done.graph)
        message = self._sent(done, edges)
        source = self._signal_of(done.x)
        self._append(frame, "message", message, source, (len(edges.target), *done.x.shape[1:]))
        frame.edges, frame.message = edges, message
        frame.aggregated = self._note(
            frame, "aggregation", done.out, message, edges.nodes, origin=source
        )
        self._follow_back(message, done, edges)

    def close(self) -> None:
        """Take back every hook on a tensor; what has been measured stays."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._known.clear()
        self._stack.clear()

    # How it is written down

    def _note(
        self,
        frame: Frame,
        step: StepName,
        x: Tensor,
        before: Signal | None,
        groups: Groups | None = None,
        axis: int = 0,
        origin: Signal | None = None,
    ) -> Signal:
        signal = self._signal_of(x, groups, axis)
        assert signal is not None
        entry = self._append(frame, step, signal, before, tuple(x.shape))
        entry.origin = origin
        if step == "update":
            entry.smooth = self._smoothness(x, signal)
        return signal

    def _append(
        self,
        frame: Frame,
        step: StepName,
        signal: Signal,
        before: Signal | None,
        shape: tuple[int, ...],
    ) -> Entry:
        path, kind = self._names.get(frame.module, ""), type(frame.module).__name__
        aggr = self._aggr() if step in ("aggregation", "readout") else None
        self.entries.append(Entry(path, kind, step, signal, before, aggr=aggr, shape=shape))
        return self.entries[-1]

    def _signal_of(
        self, x: Tensor | None, groups: Groups | None = None, axis: int = 0
    ) -> Signal | None:
        """Return what is known of a tensor; measure it if it is new, or was changed in place."""
        if x is None or x.is_meta:
            return None
        if (known := self._known_signal(x)) is not None:
            return known
        real = torch.view_as_real(x.detach().resolve_conj()) if x.is_complex() else x
        if groups is None and x.dim() > 1:
            inside = next((f.edges for f in reversed(self._stack) if f.in_message), None)
            groups = self._atlas.groups(x.shape[axis], inside)
        if groups is not None and not _fits(groups, x.shape[axis]):
            groups = None
        signal = Signal(Sums.of(rows_of(real, axis if x.dim() else 0), groups), groups)
        whole = _whole(x)
        self._known[id(whole)] = (ref(whole), _version(whole), signal)
        if x.requires_grad and not isinstance(x, nn.Parameter):
            self._watch(x, signal, axis)
        return signal

    def _known_signal(self, x: Tensor) -> Signal | None:
        """Return what is known of a tensor that has been measured and not been changed since."""
        whole = _whole(x)
        tensor, version, signal = self._known.get(id(whole), (_none, 0, None))
        return signal if tensor() is whole and version == _version(whole) else None

    def _watch(self, x: Tensor, signal: Signal, axis: int) -> None:
        axis = axis if x.dim() else 0

        def measure(gradient: Tensor) -> None:
            # The same tensor goes back to both terms of a sum.
            tensor, known = self._last_gradient
            if known is not None and tensor() is gradient and known.groups is signal.groups:
                signal.backward = known.backward
                return
            real = torch.view_as_real(gradient) if gradient.is_complex() else gradient
            signal.backward = Sums.of(rows_of(real, axis), signal.groups)
            self._last_gradient = (ref(gradient), signal)

        self._handles.append(x.register_hook(measure))  # type: ignore[no-untyped-call]

    def _sent(self, done: Aggregated, edges: Edges) -> Signal:
        """Return the signal of messages that were never formed, from their sources' rows."""
        weight, heads = _in_order(done), 1
        if weight is not None:
            heads = weight.shape[1]
        rows = rows_of(done.x, heads=heads).taken(edges.source, weight)
        return Signal(Sums.of(rows, edges.messages), edges.messages)

    def _follow_back(self, message: Signal, done: Aggregated, edges: Edges) -> None:
        """Measure the gradient of such messages: ``factor_i`` times that of their sum."""
        if not (done.linear and done.out.requires_grad and done.x.requires_grad):
            return
        factor = done.factor
        heads = 1 if factor is None else factor.shape[1]

        def measure(gradient: Tensor) -> None:
            rows: Rows = rows_of(gradient, heads=heads)
            share = None if factor is None else factor[edges.target]
            message.backward = Sums.of(rows.taken(edges.target, share), edges.messages)

        self._handles.append(done.out.register_hook(measure))  # type: ignore[no-untyped-call]

    def _smoothness(self, x: Tensor, signal: Signal) -> Smoothness | None:
        if x.dim() < 2 or signal.groups is None or signal.groups.unit != "node":
            return None
        neighbours = self._atlas.neighbours(len(x))
        if neighbours is None or x.is_complex():
            return None
        self._busy = True
        try:
            return neighbours.smoothness(x)
        finally:
            self._busy = False

    def _frame_of(self, layer: nn.Module) -> Frame | None:
        return next((frame for frame in reversed(self._stack) if frame.module is layer), None)

    def _aggr(self) -> str | None:
        """Return the aggregation that the innermost module with such an attribute names."""
        for frame in reversed(self._stack):
            if isinstance(frame.module, VPMessagePassing):
                return "vpa"
            aggr = getattr(frame.module, "aggr", None)
            if aggr is not None:
                names = [aggr] if isinstance(aggr, str) else [str(name) for name in aggr]
                return ", ".join(_ALIASES.get(name, name) for name in names)
        return None


def _whole(x: Tensor) -> Tensor:
    """Return the tensor that ``x`` is all of, in another shape; else itself."""
    return x if x._base is None or x._base.numel() != x.numel() else x._base


def _version(x: Tensor) -> int:
    return 0 if x.is_inference() else x._version


def _none() -> None:
    return None


_nothing = (_none, None)


def is_leaf(module: nn.Module) -> bool:
    """Tell whether a module is one that the record does not look into."""
    return isinstance(module, OPAQUE) or next(module.children(), None) is None


OPAQUE = (torch.jit.ScriptModule, OptimizedModule)

_ALIASES = {
    "add": "sum",
    "SumAggregation()": "sum",
    "MeanAggregation()": "mean",
    "MaxAggregation()": "max",
    "VPAggregation()": "vpa",
    "VPA()": "vpa",
    "VariancePreservingAggregation()": "vpa",
}


def _may_aggregate(frame: Frame) -> bool:
    """Tell whether a module is a layer rather than a part of one, such as a Linear."""
    return hasattr(frame.module, "aggr") or next(frame.module.children(), None) is not None


def _is_update(frame: Frame, out: Tensor) -> bool:
    """Tell whether a result is still about the nodes: a whole model may return scores of graphs."""
    if isinstance(frame.module, MessagePassing) or frame.edges is None:
        return True
    return out.dim() > 1 and len(out) == frame.edges.num_targets


def _fits(groups: Groups, count: int) -> bool:
    return all(part is None or len(part) == count for part in groups[1:])


def _in_order(done: Aggregated) -> Tensor | None:
    """Return the weights in the order of the targets, ``[num_edges, heads or 1]``."""
    if done.weight is None:
        return None
    weight = done.weight.detach()
    weight = weight.unsqueeze(1) if weight.dim() == 1 else weight
    edge = done.graph.by_target.edge
    return weight if edge is None else weight[edge]
