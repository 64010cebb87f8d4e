"""What the command line probes: the paper's models on a data set, or somebody's own model."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch, Data

from ...errors import UsageError
from ...graphs import FeatureKind, GraphSet, features, kind_of
from ...graphs.reference import call_reference, import_reference
from ...graphs.targets import known
from ...nn import build_model
from ...random_state import seeded
from .._inputs import call_of
from ._run import Loss


@dataclass(frozen=True)
class Lesson:
    """Inputs for a model, and what its output is to be compared with, as a loss."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    loss: Loss | None


@dataclass(frozen=True)
class Subject:
    """A model, and batches of data for it: the first is probed, all of them can be trained on."""

    name: str
    model: nn.Module
    lessons: tuple[Lesson, ...] = field(repr=False)

    def train(self, epochs: int, learning_rate: float = 1e-3) -> None:
        """Train with Adam, the batches in turn."""
        if any(lesson.loss is None for lesson in self.lessons):
            raise UsageError(
                f"{self.name}: to be trained it needs a loss: let the function return "
                "(model, inputs, loss), where loss(model(*inputs)) is a number."
            )
        optimizer = torch.optim.Adam(self.model.parameters(), lr=learning_rate)
        for _ in range(epochs):
            for lesson in self.lessons:
                optimizer.zero_grad()
                assert lesson.loss is not None
                loss = lesson.loss(self.model(*lesson.args, **lesson.kwargs))
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()


def batches_of(
    graphs: GraphSet, size: int, kind: FeatureKind = "auto", seed: int = 0
) -> Iterator[Data]:
    """Yield a data set in random batches of so many graphs, features written out."""
    own = features(graphs, kind)
    chosen = torch.randperm(graphs.num_graphs, generator=torch.Generator().manual_seed(seed))
    for start in range(0, len(chosen), size):
        parts = []
        for index in chosen[start : start + size].tolist():
            data = graphs.graph(index)
            first, last = graphs.node_ptr[index : index + 2].tolist()
            data.x = own.matrix(slice(first, last))
            data.y = graphs.y[index : index + 1]  # numbers, of classes that have names too
            parts.append(data)
        yield Batch.from_data_list(parts)


def papers_model(
    graphs: GraphSet,
    model: str,
    aggr: str = "vpa",
    *,
    variant: str = "released",
    kind: FeatureKind = "auto",
    size: int = 64,
    batches: int | None = 1,
    seed: int = 0,
    device: str = "cpu",
    **options: Any,
) -> Subject:
    """Return one of the paper's models with its initial weights, and batches of a data set."""
    width = features(graphs, kind).width
    with seeded(seed):
        built = build_model(model, width, graphs.num_outputs, aggr, variant, **options)
    lessons = []
    for number, data in enumerate(batches_of(graphs, size, kind, seed)):
        if number == batches:
            break
        data = data.to(device)
        loss = _loss(data.y)
        lessons.append(Lesson((data.x, data.edge_index, data.batch), {}, loss))
    return Subject(f"{model}+{aggr} on {graphs.name}", built.to(device), tuple(lessons))


def own_model(reference: str, graphs: GraphSet | None, size: int, seed: int) -> Subject:
    """Return what ``module:function`` makes: a model, (model, inputs) or (model, inputs, loss).

    A function that asks for two numbers is given those of the data: features of a node, outputs.
    """
    if _asks_for_channels(reference):
        made = _made_for(reference, graphs, seed)
    else:
        made = call_reference(reference, "a model, or (model, inputs),")
    model, *rest = made if isinstance(made, tuple) else (made,)
    if not isinstance(model, nn.Module) or len(rest) > 2:
        raise UsageError(
            f"{reference!r} must return a model, (model, inputs) or (model, inputs, loss), "
            f"not {type(made).__name__}."
        )
    if rest:
        inputs, loss = rest[0], rest[1] if len(rest) == 2 else None
        args = inputs if isinstance(inputs, tuple) else (inputs,)
        named = dict(inputs) if isinstance(inputs, dict) else {}
        return Subject(reference, model, (Lesson(() if named else args, named, loss),))
    if graphs is None:
        raise UsageError(
            f"{reference!r} returned a model without inputs: let it return (model, inputs), or "
            "name a data set whose graphs the model is to be called with."
        )
    lessons = []
    for data in batches_of(graphs, size, seed=seed):
        call = call_of(model, data, max_nodes=sys.maxsize)
        lessons.append(Lesson(call.args, call.kwargs, _loss(data.y)))
        break
    return Subject(f"{reference} on {graphs.name}", model, tuple(lessons))


def _asks_for_channels(reference: str) -> bool:
    """Tell whether a function is as ``gnn-vpa run`` calls it: make(in_channels, out_channels)."""
    try:
        given = inspect.signature(import_reference(reference)).parameters.values()
    except (TypeError, ValueError):  # it cannot be called, or has no signature
        return False
    needed = [one for one in given if one.default is one.empty]
    return [one.kind for one in needed] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 2


def _made_for(reference: str, graphs: GraphSet | None, seed: int) -> Any:
    if graphs is None:
        raise UsageError(
            f"{reference!r} asks for the channels of a data set: name one, such as MUTAG, or let "
            "the function take no arguments and return (model, inputs)."
        )
    channels = features(graphs, "auto").width, graphs.num_outputs
    with seeded(seed):
        try:
            return import_reference(reference)(*channels)
        except Exception as error:
            raise UsageError(
                f"{reference!r} must return a model when called with {channels[0]} and "
                f"{channels[1]} channels, but failed with {type(error).__name__}: {error}"
            ) from error


def _loss(y: Tensor) -> Loss | None:
    """Return the loss of classes that are all known; otherwise a random gradient serves."""
    if kind_of(y) != "classes" or not bool(known(y).all()):
        return None
    return lambda scores: cross_entropy(scores, y.to(scores.device))
