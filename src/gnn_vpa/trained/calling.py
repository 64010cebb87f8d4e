"""How a network is called with some graphs."""

from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UsageError
from ..graphs import Features
from ..nn import Model
from ..training import Task
from ..training.own import Adapter, Inputs
from .batch import SIZE, Part
from .encoding import Encoding, single_ones
from .merged import MERGED_SIZE, can_merge, is_sparse, merged

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class OurCaller:
    """Calls one of our models with a batch of graphs."""

    def __init__(self, model: Model, encoding: Encoding) -> None:
        self._model, self._encoding = model, encoding

    @property
    def size(self) -> int:
        """Size of a batch, see ``cut``: larger ones have more nodes that are alike."""
        return MERGED_SIZE if self._merges else SIZE

    @property
    def _merges(self) -> bool:
        return next(self._model.parameters()).is_cpu and can_merge(self._model)

    def arguments(self, part: Part) -> Arguments:
        """Return features or codes, the edges, and which nodes belong to which graph."""
        return self._plain(part, self._encoding.apply(part)), {}

    def scores(self, part: Part) -> Tensor:
        """Return the scores of graphs, ``[graphs, outputs]``."""
        scores: Tensor = self._model(*self._quickest(part))
        return scores

    def embedding(self, part: Part) -> Tensor:
        """Return the readout of the last layer, ``[graphs, width]``."""
        seen: list[Tensor] = []

        def watch(module: nn.Module, given: tuple[object, ...]) -> None:
            levels, pools = given[:2]
            seen.append(pools[-1](levels[-1]))  # type: ignore[index]

        hook = self._model.head.register_forward_pre_hook(watch)
        try:
            self.scores(part)
        finally:
            hook.remove()
        return seen[0]

    def _plain(self, part: Part, features: Features) -> tuple[Any, ...]:
        weight = next(self._model.parameters())
        x = features.codes if features.dense is None else None
        if x is None:
            x = features.matrix().to(weight.dtype)
        graph, readout = (made.to(weight.device) for made in (part.graph(), part.readout()))
        return x.to(weight.device), graph, readout

    def _quickest(self, part: Part) -> tuple[Any, ...]:
        """Return arguments that give the same scores in less time, where there are some."""
        features = self._encoding.apply(part)
        if self._merges and is_sparse(part):
            codes = features.codes if features.dense is None else single_ones(features.matrix())
            if codes is not None:
                return merged(part, codes, self._model)
        return self._plain(part, features)


class OwnCaller:
    """Calls a model of a user's own with a batch of graphs, as PyG's are called."""

    size = SIZE

    def __init__(self, model: nn.Module, encoding: Encoding, name: str, outputs: int) -> None:
        self._model, self._encoding, self._outputs = model, encoding, outputs
        self._adapter = Adapter.of(model, name)

    def arguments(self, part: Part) -> Arguments:
        """Return what the model is called with, as its ``forward`` wants it."""
        arguments: Arguments = self._adapter(_arguments, self._inputs(part))
        return arguments

    def scores(self, part: Part) -> Tensor:
        """Return the model's outputs."""
        inputs = self._inputs(part)
        with self._adapter.blamed(f"for the batch from graph {part.first} on"):
            out = self._adapter(self._model, inputs)
        return self._adapter.checked(out, part.num_graphs, self._outputs)

    def embedding(self, part: Part) -> Tensor:
        """Return what the last Linear layer that is given a row for each graph is given."""
        seen: list[Tensor] = []

        def watch(module: nn.Module, given: tuple[object, ...]) -> None:
            if given and isinstance(given[0], Tensor) and len(given[0]) == part.num_graphs:
                seen.append(given[0])

        linear = [m for m in self._model.modules() if type(m).__name__.endswith("Linear")]
        hooks = [module.register_forward_pre_hook(watch) for module in linear]
        try:
            self.scores(part)
        finally:
            for hook in hooks:
                hook.remove()
        if not seen:
            raise UsageError(
                f"{self._adapter.name}: no Linear layer of its model is given a row for each "
                "graph, so that there is nothing to embed graphs by"
            )
        return seen[-1].flatten(1)

    def _inputs(self, part: Part) -> Inputs:
        like = next(self._model.parameters(), torch.empty(0))
        encoding, edges = self._encoding, self._encoding.edges(part)
        x, positions = encoding.apply(part).matrix(), encoding.positions_of(part)
        inputs = Inputs(x, part.edge_index(), part.batch(), part.ptr, *edges, positions)
        return inputs.to(like.device, like.dtype)


def _arguments(*args: Any, **kwargs: Any) -> Arguments:
    return args, kwargs


def caller_for(
    module: nn.Module, task: Task, encoding: Encoding, outputs: int
) -> OurCaller | OwnCaller:
    """Return what calls a network."""
    if isinstance(module, Model):
        return OurCaller(module, encoding)
    return OwnCaller(module, encoding, task.model, outputs)
