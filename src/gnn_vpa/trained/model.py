"""A trained model: what it was made of, and what it says of new graphs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..errors import GnnVpaError, UsageError
from ..graphs import GraphSet
from ..training import Protocol, Task
from ..training.metrics import evaluate
from .batch import Part, parts
from .calling import OurCaller, OwnCaller, caller_for
from .encoding import Encoding
from .record import Record
from .target import Target

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = NDArray[np.floating]
Progress = Callable[[int], None]
Graphs: TypeAlias = "GraphSet | Iterable[Data]"


class Units(NamedTuple):
    """What brings the outputs of a regression to the data's units: ``out * spread + centre``.

    Example:
        >>> Units(torch.tensor([5.0]), torch.tensor([2.0])).spread
        tensor([2.])
    """

    centre: Tensor  # [T]
    spread: Tensor  # [T]


class Predictor(ABC):
    """What says something of new graphs: one model, or several together.

    New graphs are a `GraphSet`, a list of PyG's ``Data``, or an iterator over them: they are
    computed in batches, and no more than one of these is held at a time. What a model does not know
    is refused, see `Encoding`. A graph without nodes is refused too; in one without edges no node
    hears from any other, and that is computed.

    Attributes:
        target: What the outputs are.

    Example:
        >>> from gnn_vpa.trained import Ensemble
        >>> issubclass(TrainedModel, Predictor), issubclass(Ensemble, Predictor)
        (True, True)
    """

    target: Target

    @abstractmethod
    def to(self, device: torch.device | str) -> Self:
        """Move it to a device, and return it."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Size of a batch that suits it, see ``cut``."""

    @abstractmethod
    def part_outputs(self, part: Part) -> Tensor:
        """Return the outputs of a batch, ``[B, outputs]``."""

    def iter_outputs(self, graphs: Graphs) -> Iterator[Array]:
        """Yield the outputs of one batch of graphs after the other, see `outputs`."""
        return self._computed(graphs, self.part_outputs)

    def _computed(self, graphs: Graphs, compute: Callable[[Part], Tensor]) -> Iterator[Array]:
        for part in parts(graphs, self.size):
            with torch.inference_mode():
                out = compute(part)
            yield _checked(out, part)

    def outputs(self, graphs: Graphs, *, progress: Progress | None = None) -> Array:
        """Return what the network says of each graph, ``[G, outputs]``.

        A score for each class (the highest is the prediction) or label (there, where it is above
        0), or numbers in the data's units.

        Args:
            graphs: The graphs.
            progress: Called with the number of graphs that are done.

        Raises:
            UsageError: A graph is not what the model knows.
        """
        return _gathered(self.iter_outputs(graphs), self.target.outputs, progress)

    def predict(self, graphs: Graphs, *, progress: Progress | None = None) -> NDArray[np.generic]:
        """Return the class of each graph, its labels ``[G, T]``, or its number(s)."""
        return self.target.predictions(self.outputs(graphs, progress=progress))

    def predict_proba(self, graphs: Graphs, *, progress: Progress | None = None) -> Array:
        """Return the probability of each class or label, ``[G, outputs]``."""
        return self.target.probabilities(self.outputs(graphs, progress=progress))

    def evaluate(self, graphs: GraphSet, *, progress: Progress | None = None) -> dict[str, float]:
        """Return every metric of the kind on graphs whose targets are known.

        NaN where a metric is undefined.
        """
        if not isinstance(graphs, GraphSet):
            raise UsageError(
                f"graphs: expected a GraphSet, got {type(graphs).__name__}: "
                "GraphSet.from_pyg(graphs) makes one of PyG's graphs"
            )
        y = self.target.y_of(graphs)
        return evaluate(y, torch.from_numpy(self.outputs(graphs, progress=progress)))


@dataclass(eq=False)
class TrainedModel(Predictor):
    """A model with its weights, and all that it takes to use it on new graphs, see `Predictor`.

    Attributes:
        module: The network.
        task: The model and its options.
        protocol: How it was trained.
        encoding: How graphs become its features.
        target: What its outputs are.
        record: The data, scores and versions.
        units: Of a regression's outputs.
        caller: What calls the network with a batch of graphs.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> from gnn_vpa.trained import train_model
        >>> mutag = load("MUTAG")
        >>> model = train_model(mutag, Task("gin", "vpa"), Protocol(epochs=2))
        >>> model.predict(mutag).shape, model.predict_proba(mutag).shape
        ((188,), (188, 2))
    """

    module: nn.Module
    task: Task
    protocol: Protocol
    encoding: Encoding
    target: Target
    record: Record
    units: Units | None = None
    caller: OurCaller | OwnCaller = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.module.eval()
        self.caller = caller_for(self.module, self.task, self.encoding, self.target.outputs)

    def to(self, device: torch.device | str) -> Self:
        """Move the model to a device, and return it."""
        self.module.to(device)
        if self.units is not None:
            self.units = Units(*(part.to(device) for part in self.units))
        return self

    @property
    def size(self) -> int:
        """Size of a batch that suits the network."""
        return self.caller.size

    def part_outputs(self, part: Part) -> Tensor:
        """Return what the network says of a batch, ``[B, outputs]``."""
        scores = self.caller.scores(part)
        if scores.shape != (part.num_graphs, self.target.outputs):
            raise GnnVpaError(
                f"for {part.num_graphs} graphs the network returned {list(scores.shape)}, expected "
                f"{[part.num_graphs, self.target.outputs]}"
            )
        return scores if self.units is None else scores * self.units.spread + self.units.centre

    def embed(self, graphs: Graphs, *, progress: Progress | None = None) -> Array:
        """Return what the network makes of each graph before its last step, ``[G, width]``.

        For our models that is the readout of the last layer; for others what the last of their
        Linear layers is given.
        """
        return _gathered(self._computed(graphs, self.caller.embedding), None, progress)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model into a folder; `gnn_vpa.load_model` reads it."""
        from .saving import save_model

        save_model(self, path)


def _checked(out: Tensor, part: Part) -> Array:
    wrong = ~torch.isfinite(out).all(1)
    if bool(wrong.any()):
        raise GnnVpaError(
            f"graph {part.first + int(wrong.nonzero()[0])}: the network's output is not finite: "
            "its features or its size are far from what the model was trained on"
        )
    found: Array = out.cpu().numpy()
    return found


def _gathered(parts: Iterator[Array], width: int | None, progress: Progress | None) -> Array:
    found, done = [], 0
    for part in parts:
        found.append(part)
        done += len(part)
        if progress is not None:
            progress(done)
    return np.concatenate(found) if found else np.zeros((0, width or 0), np.float32)
