"""How a network is called with some graphs of a data set."""

from typing import Protocol

from torch import Tensor, nn

from ..graphs import GraphSet
from ..nn import Model
from ..training import Task
from .batch import graph_of, input_of, readout_of, sliced
from .encoding import Encoding


class Caller(Protocol):
    """Calls a network with the graphs ``begin`` to ``end``; ``first`` counts in messages."""

    def scores(
        self, graphs: GraphSet, encoding: Encoding, begin: int, end: int, first: int
    ) -> Tensor:
        """Return the network's outputs, ``[graphs, outputs]``."""

    def embedding(
        self, graphs: GraphSet, encoding: Encoding, begin: int, end: int, first: int
    ) -> Tensor:
        """Return what it makes of each graph before its last step, ``[graphs, width]``."""


class OurCaller:
    """Calls one of our models."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def scores(
        self, graphs: GraphSet, encoding: Encoding, begin: int, end: int, first: int
    ) -> Tensor:
        """Return the scores of graphs."""
        device = next(self._model.parameters()).device
        part = sliced(graphs, begin, end)
        x = input_of(encoding.apply(graphs, part.nodes, first))
        graph, readout = (made.to(device) for made in (graph_of(part), readout_of(part)))
        scores: Tensor = self._model(x.to(device), graph, readout)
        return scores

    def embedding(
        self, graphs: GraphSet, encoding: Encoding, begin: int, end: int, first: int
    ) -> Tensor:
        """Return the readout of the last layer."""
        seen: list[Tensor] = []

        def watch(module: nn.Module, given: tuple[object, ...]) -> None:
            levels, pools = given[:2]
            seen.append(pools[-1](levels[-1]))  # type: ignore[index]

        hook = self._model.head.register_forward_pre_hook(watch)
        try:
            self.scores(graphs, encoding, begin, end, first)
        finally:
            hook.remove()
        return seen[0]


def caller_for(module: nn.Module, task: Task) -> Caller:
    """Return what calls a network."""
    assert isinstance(module, Model)
    return OurCaller(module)
