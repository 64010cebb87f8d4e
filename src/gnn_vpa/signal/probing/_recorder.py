"""Writing down what happens while a model runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch._dynamo import OptimizedModule
from torch.nn.parameter import is_lazy
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import Aggregation

from ...nn import BatchNorm
from ...ops.observe import Aggregated
from ...pyg.internal import VPMessagePassing
from ._edges import Atlas, Edges
from ._functions import Origins
from ._groups import Groups
from ._inputs import is_readout, real_tensor, tensors
from ._rows import rows_of
from ._signals import Signal, Signals, Unchanged, real_parts
from ._smoothness import Smoothness
from ._statistics import Sums

StepName = Literal[
    "input", "output", "message", "aggregation", "update", "readout", "function", "parameter"
]

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


_KNOWN = ("sum", "mean", "max", "vpa")


@dataclass(eq=False)
class Entry:
    """One line of the record."""

    path: str
    kind: str
    step: StepName
    shape: tuple[int, ...]
    signal: Signal
    before: Signal | None = None  # what the step was made from
    origin: Signal | None = None  # what the messages, or the whole layer's result, came from
    aggr: str | None = None
    smooth: Smoothness | None = None
    expected_gain: float = math.nan  # of independent messages
    sources: tuple[Entry, ...] = ()  # the results that a function was applied to, as far as known
    after: tuple[Entry, ...] = ()  # these, or what ran before the function
    behind: str | None = None  # the path of the module that is given a function's result
    edge_types: int = 0  # whose results a function adds up


@dataclass(eq=False)
class Frame:
    """A call that has not returned yet."""

    module: nn.Module
    kind: str
    given: Signal | None
    edges: Edges | None = None
    in_message: bool = False
    in_steps: bool = False  # PyG's steps are watched: what they aggregate with is theirs
    source: Signal | None = None
    message: Signal | None = None
    aggregated: Signal | None = None


class Recorder:
    """Writes down every step of a model, as the hooks tell of it.

    Args:
        names: The path of each module in the model.
        atlas: The graphs known so far.
    """

    def __init__(self, names: dict[nn.Module, str], atlas: Atlas) -> None:
        self.entries: list[Entry] = []
        self._names = names
        self._atlas = atlas
        self._signals = Signals(atlas)
        self._stack: list[Frame] = []
        self._noted: dict[Signal, Entry] = {}
        self._origins: Origins[Entry] = Origins()
        self._outside = Unchanged(())  # what no function of the model has made
        self._busy = False  # our own sums over neighbours are not the model's

    def given(self, x: Tensor) -> None:
        """The model is given ``x``, of real numbers."""
        signal = self._signals.of(x)
        smooth = self._smoothness(x, signal)
        self._write(Entry("", "input", "input", tuple(x.shape), signal, smooth=smooth), x)

    def enter(self, module: nn.Module, given: Any) -> None:
        """A module is called, with ``(args, kwargs)``."""
        if self._stack:
            self._functions(given, self._names.get(module, ""))
        else:
            held = (t for t in (*module.parameters(), *module.buffers()) if not is_lazy(t))
            self._outside = Unchanged((*tensors(given), *held))
        kind = type(module).__name__
        if isinstance(module, BatchNorm) and given[1].get("relu"):
            kind += ", ReLU"  # both in one
        self._stack.append(Frame(module, kind, self._signal_of(real_tensor(given))))

    def leave(self, module: nn.Module, result: Any) -> None:
        """A module returns ``result``, or None where an exception has left it."""
        if self._frame_of(module) is None:
            return
        while (frame := self._stack[-1]).module is not module:
            self._stack.pop()
        if (out := real_tensor(result)) is not None:
            if frame.aggregated is not None and _is_update(frame, out):
                self._note(frame, "update", out, frame.aggregated, origin=frame.given)
            elif isinstance(module, Aggregation):
                self._note(frame, "readout", out, frame.given)
            elif is_leaf(module):
                self._note(frame, "output", out, frame.given)
            elif len(self._stack) == 1:
                self._functions(result, None)
        self._stack.pop()
        if not self._stack:
            self._origins.clear()

    def propagating(self, layer: nn.Module, edges: Edges | None, source: Tensor | None) -> None:
        """A layer of PyG starts to pass messages along ``edges``, made from ``source``."""
        if (frame := self._frame_of(layer)) is not None:
            frame.edges, frame.in_message, frame.in_steps = edges, True, True
            frame.message = None
            frame.source = self._signal_of(real_tensor(source)) or frame.given

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
            name = _ALIASES.get(aggr := str(getattr(layer, "aggr", None)), aggr)
            if frame.message is not None and frame.edges is not None and name in _KNOWN:
                self.entries[-1].expected_gain = frame.edges.expected_gain(name)

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
        source = self._signals.of(done.x)
        if is_readout(done.graph):
            groups = self._atlas.groups(len(done.out))
            self._note(frame, "readout", done.out, source, groups)
            return
        frame.edges = edges = self._atlas.edges_of(done.graph)
        message = self._signals.of_messages(done, edges)
        shape = (len(edges.target), *done.x.shape[1:])
        self.entries.append(self._entry(frame, "message", shape, message, source))
        frame.aggregated = self._note(
            frame, "aggregation", done.out, message, edges.nodes, origin=source
        )
        self.entries[-1].expected_gain = _expected_gain(done, edges)

    def parameter(self, path: str, value: Tensor, gradient: Tensor) -> None:
        """A parameter has got a gradient that is to be shown."""
        owner, _, name = path.rpartition(".")
        forward, back = (Sums.of(rows_of(real_parts(x)), None) for x in (value, gradient))
        signal = Signal(forward, None, back)
        self.entries.append(Entry(owner, name, "parameter", tuple(value.shape), signal))

    def close(self) -> None:
        """Take back every hook on a tensor; what has been written down stays."""
        self._signals.close()
        self._stack.clear()
        self._noted.clear()
        self._origins.clear()

    def _functions(self, given: Any, behind: str | None) -> None:
        """Write down what functions have made between modules, of what one is given or returns."""
        first = real_tensor(given)
        for x in tensors(given):
            if x is not first and x.grad_fn is None:
                continue  # such as weights of edges
            if x.layout != torch.strided or not (x.is_floating_point() or x.is_complex()):
                continue
            if self._outside.holds(x) or self._signals.known(x) in self._noted:
                continue
            signal = self._signal_of(x)
            assert signal is not None
            made = self._origins.of(x)
            sources = tuple(sorted(made.sources, key=self.entries.index))
            path = self._names.get(self._stack[-1].module, "")
            entry = Entry(path, str(made), "function", tuple(x.shape), signal, behind=behind)
            entry.sources, entry.after = sources, sources or tuple(self.entries[-1:])
            entry.before = sources[0].signal if len(sources) == 1 else None
            if made.begins_with_sum and self._are_edge_types(sources):
                entry.edge_types = len(sources)
                entry.expected_gain = float(entry.edge_types) if made.is_sum else math.nan
            self._write(entry, x)

    def _are_edge_types(self, sources: Sequence[Entry]) -> bool:
        """Tell whether results are those of layers for one edge type each, as PyG keeps them."""
        homes = {source.path.rpartition(".")[0] for source in sources}
        if len(sources) < 2 or len(homes) > 1 or any(s.step != "update" for s in sources):
            return False
        return isinstance(self._stack[0].module.get_submodule(*homes), nn.ModuleDict)

    def _write(self, entry: Entry, x: Tensor) -> None:
        self.entries.append(entry)
        self._noted[entry.signal] = entry
        self._origins.note(x, entry)

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
        """Measure a step's result and write it down."""
        inside = next((f.edges for f in reversed(self._stack) if f.in_message), None)
        signal = self._signals.of(x, groups, axis, inside)
        entry = self._entry(frame, step, tuple(x.shape), signal, before)
        entry.origin = origin
        self._write(entry, x)
        if step == "update":
            entry.smooth = self._smoothness(x, signal)
        return signal

    def _entry(
        self,
        frame: Frame,
        step: StepName,
        shape: tuple[int, ...],
        signal: Signal,
        before: Signal | None,
    ) -> Entry:
        path = self._names.get(frame.module, "")
        aggr = self._aggr() if step in ("aggregation", "readout") else None
        return Entry(path, frame.kind, step, shape, signal, before, aggr=aggr)

    def _signal_of(self, x: Tensor | None) -> Signal | None:
        if x is None:
            return None
        inside = next((f.edges for f in reversed(self._stack) if f.in_message), None)
        return self._signals.of(x, messages_of=inside)

    def _smoothness(self, x: Tensor, signal: Signal) -> Smoothness | None:
        if x.dim() < 2 or signal.groups is None or signal.groups.unit != "node" or x.is_complex():
            return None
        if (neighbours := self._atlas.neighbours(len(x))) is None:
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


def _expected_gain(done: Aggregated, edges: Edges) -> float:
    """Return what the lemmas say of messages that carry no weights."""
    if done.weight is not None:
        return math.nan
    if not done.linear:
        return edges.expected_gain("max")
    if done.factor is None:
        return edges.expected_gain("sum")
    return (done.factor.double().square() * edges.received.unsqueeze(1)).mean().item()


def is_leaf(module: nn.Module) -> bool:
    """Tell whether a module is one that the record does not look into."""
    return isinstance(module, OPAQUE) or next(module.children(), None) is None


def _may_aggregate(frame: Frame) -> bool:
    """Tell whether a module is a layer rather than a part of one, such as a Linear."""
    return hasattr(frame.module, "aggr") or next(frame.module.children(), None) is not None


def _is_update(frame: Frame, out: Tensor) -> bool:
    """Tell whether a result is still about the nodes: a whole model may return scores of graphs."""
    if isinstance(frame.module, MessagePassing) or frame.edges is None:
        return True
    return out.dim() > 1 and len(out) == frame.edges.num_targets
