"""One step of a network: what its signal was like, and what it made of the one before."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ._groups import Unit
from ._recorder import Entry, StepName
from ._signals import Signal
from ._statistics import Group, Statistics, Sums, Tally, tally_of

_MOST_NAMED = 2  # of the layers whose results a function is applied to


@dataclass(frozen=True)
class Step:
    """A layer, or a part of a message-passing layer, in the order in which it ran.

    Attributes:
        index: Its place, from 0.
        layer: The path of the module, as in ``model.get_submodule(layer)``; empty: the model. Of a
            function: of the module in whose ``forward`` it was noticed.
        call: Which call of that layer it was, from 1.
        kind: The module's class; of a function its name, of a parameter too.
        step: ``input`` (of the model), ``message``, ``aggregation`` and ``update`` (the result) of
            a message-passing layer, ``readout`` (from nodes to graphs), ``output`` of any other;
            ``function``: what no module did, between two of them; ``parameter``: one whose
            gradient is not finite.
        aggr: The aggregation, where there is one and it has a name.
        shape: Shape of the tensor.
        unit: What its rows are: ``node``, ``edge`` or ``graph``; None where that is unknown.
        forward: Statistics of the tensor.
        backward: Statistics of the gradient that came back to it; None if none did.
        gain: Variance over that of what the step was made from, of a function over the mean of
            the layers' results that it was applied to; NaN where that is 0 or unknown.
        expected_gain: Of an aggregation: the gain that the lemmas predict for independent
            messages, averaged over all nodes; NaN for messages with weights of their own. Of a sum
            over edge types: their number.
        total_gain: Of an aggregation: variance over that of the features which its messages are
            made of. Of an update: variance over that of what the whole layer was given.
        backward_gain: Variance of the gradient that the step passes on over that it got.
        dirichlet: Dirichlet energy, ``1/n sum_i sum_{j in N(i)} |x_i - x_j|^2``; NaN if unknown.
        distance: Mean average (cosine) distance between neighbours; NaN if unknown.
        between: Of a function: the layers whose results it was applied to, then, unless it makes
            what the model returns, the one that is given what it makes.
        edge_types: The number of edge types whose results a function adds up; 0 if it does not.

    Example:
        >>> import gnn_vpa, torch
        >>> step = gnn_vpa.probe(torch.nn.Linear(8, 8), torch.randn(5, 8)).steps[-1]
        >>> step.name, step.kind, step.shape
        ('(model)', 'Linear', (5, 8))
    """

    index: int
    layer: str
    call: int
    kind: str
    step: StepName
    aggr: str | None
    shape: tuple[int, ...]
    unit: Unit | None
    forward: Statistics
    backward: Statistics | None
    gain: float
    expected_gain: float
    total_gain: float
    backward_gain: float
    dirichlet: float
    distance: float
    between: tuple[str, ...]
    edge_types: int
    _returned: bool = field(repr=False)  # by the model: nothing stands behind it
    _signal: Signal = field(repr=False, compare=False)

    @cached_property
    def by_degree(self) -> tuple[Group, ...]:
        """The forward signal by the in-degree of the nodes (of an edge: of its target)."""
        return _groups(self._signal.forward, "degree")

    @cached_property
    def by_size(self) -> tuple[Group, ...]:
        """The forward signal by the number of nodes of the graphs."""
        return _groups(self._signal.forward, "size")

    @cached_property
    def backward_by_degree(self) -> tuple[Group, ...]:
        """The gradient by degree."""
        return _groups(self._signal.backward, "degree")

    @cached_property
    def backward_by_size(self) -> tuple[Group, ...]:
        """The gradient by size."""
        return _groups(self._signal.backward, "size")

    @property
    def name(self) -> str:
        """The layer as people call it; with the number of the call from the second on."""
        if self.step == "function":
            return _between(self.between, returned=self._returned)
        name = self.layer or ("(input)" if self.step == "input" else "(model)")
        return name if self.call == 1 else f"{name} #{self.call}"


def steps_of(entries: Iterable[Entry]) -> tuple[Step, ...]:
    """Turn a record into steps."""
    statistics: dict[tuple[Signal, bool], Statistics | None] = {}

    def of(signal: Signal | None, back: bool = False) -> Statistics | None:
        if signal is None:
            return None
        if (signal, back) not in statistics:
            sums = signal.backward if back else signal.forward
            statistics[signal, back] = None if sums is None else tally_of(sums).statistics()
        return statistics[signal, back]

    calls: Counter[tuple[str, str]] = Counter()
    names: dict[Entry, str] = {}
    steps: list[Step] = []
    for index, entry in enumerate(entries):
        signal, groups = entry.signal, entry.signal.groups
        calls[entry.path, entry.step] += 1
        forward = of(signal)
        assert forward is not None
        smooth = entry.smooth
        behind = () if entry.behind is None else (entry.behind or "(model)",)
        made_of = [of(source.signal) for source in entry.sources]
        steps.append(
            Step(
                index=index,
                layer=entry.path,
                call=calls[entry.path, entry.step],
                kind=entry.kind,
                step=entry.step,
                aggr=entry.aggr,
                shape=entry.shape,
                unit=None if groups is None else groups.unit,
                forward=forward,
                backward=of(signal, back=True),
                gain=_ratio(forward, *(made_of or [of(entry.before)])),
                expected_gain=entry.expected_gain,
                total_gain=_ratio(forward, of(entry.origin)),
                backward_gain=_ratio(of(entry.before, back=True), of(signal, back=True)),
                dirichlet=math.nan if smooth is None else float(smooth.dirichlet),
                distance=math.nan if smooth is None else float(smooth.distance),
                between=(*(names[source] for source in entry.after), *behind),
                edge_types=entry.edge_types,
                _returned=entry.behind is None,
                _signal=signal,
            )
        )
        names[entry] = steps[-1].name
    return tuple(steps)


def _groups(sums: Sums | Tally | None, by: str) -> tuple[Group, ...]:
    return () if sums is None else tally_of(sums).groups(by)


def _ratio(after: Statistics | None, *before: Statistics | None) -> float:
    """Return a variance over the mean of others; NaN unless that is known and more than 0."""
    known = [found.variance for found in before if found is not None]
    if after is None or len(known) < len(before) or not (mean := math.fsum(known) / len(known)) > 0:
        return math.nan
    return after.variance / mean


def _between(layers: Sequence[str], *, returned: bool) -> str:
    """Name a function by the layers around it."""
    sources, behind = (layers, ()) if returned else (layers[:-1], layers[-1:])
    named = ", ".join(sources)
    if len(sources) > _MOST_NAMED:
        named = f"{sources[0]} … {sources[-1]}"
    if not named:
        return f"before {behind[0]}" if behind else "(model)"
    return f"between {named} and {behind[0]}" if behind else f"after {named}"
