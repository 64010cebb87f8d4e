"""How a user's model is called, and what it must return."""

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from ...errors import GnnVpaError, UsageError
from .batches import Inputs

if TYPE_CHECKING:
    from torch_geometric.data import Batch

_BY_NAME = ("batch", "edge_attr", "edge_weight", "pos")  # what ``forward`` may name
_WHAT = {
    "edge_attr": "edge features",
    "edge_weight": "edge weights, nor edge features of one column",
    "pos": "positions",
}


@dataclass(frozen=True)
class Adapter:
    """What a model's ``forward`` takes.

    Attributes:
        name: What the model is called in messages.
        takes_batch: Whether it takes one argument, a PyG ``Batch``.
        positional: Whether the third argument is the batch vector under a name of its own.
        keywords: What else it names: of ``batch``, ``edge_attr``, ``edge_weight``, ``pos``.
        required: Those of them that it cannot do without.
    """

    name: str
    takes_batch: bool
    positional: bool
    keywords: tuple[str, ...]
    required: tuple[str, ...]

    @classmethod
    def of(cls, model: nn.Module, name: str) -> "Adapter":
        """Read how a model is called from its ``forward``.

        Example:
            >>> from torch_geometric.nn import GIN
            >>> Adapter.of(GIN(2, 4, 1), "gin").keywords
            ('batch', 'edge_attr', 'edge_weight')
        """
        parameters = list(inspect.signature(model.forward).parameters.values())
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        required = [p.name for p in named if p.default is p.empty]
        names = [p.name for p in named]
        is_open = len(named) < len(parameters)
        if (len(required) == 1 or len(names) == 1) and "edge_index" not in names and not is_open:
            return cls(name, True, False, (), ())
        behind = names[2:]
        third = behind[0] if behind else None
        positional = "batch" not in names and (is_open or third not in (None, *_BY_NAME))
        keywords = tuple(n for n in _BY_NAME if n in behind)
        unknown = [n for n in required if n in behind and n not in _BY_NAME]
        unknown = unknown[1:] if positional and not is_open else unknown
        if unknown:
            raise UsageError(
                f"{name}: forward wants {', '.join(unknown)}, but is called as model(x, edge_index,"
                f" batch), with {', '.join(_BY_NAME[1:])} where it names them: give "
                f"{'it' if len(unknown) == 1 else 'them'} a default, or take one PyG Batch."
            )
        return cls(name, False, positional, keywords, tuple(k for k in keywords if k in required))

    def __call__(self, model: Callable[..., Any], inputs: Inputs) -> Any:
        """Call a model with a batch."""
        if self.takes_batch:
            return model(pyg_batch(inputs))
        given = {k: v for k in self.keywords if (v := getattr(inputs, k)) is not None}
        third = (inputs.batch,) if self.positional else ()
        return model(inputs.x, inputs.edge_index, *third, **given)

    def check_inputs(self, inputs: Inputs, data: str) -> None:
        """Raise where the data lack what the model must be given."""
        for name in self.required:
            if getattr(inputs, name) is None:
                raise UsageError(
                    f"{self.name}: forward wants {name}, but {data} has no {_WHAT[name]}: give "
                    f"{name} a default, or take data that have it."
                )

    def uses_edge_features(self) -> bool:
        """Say whether the model is given edge features."""
        return self.takes_batch or bool({"edge_attr", "edge_weight"} & set(self.keywords))

    def checked(self, out: Any, graphs: int, outputs: int) -> Tensor:
        """Return scores as ``[graphs, outputs]``, or say what came instead."""
        if isinstance(out, Tensor):
            if out.shape == (graphs, outputs):
                return out
            # One number for each graph, or one graph's numbers, as ``squeeze`` leaves them.
            is_one = 1 in (graphs, outputs) and out.dim() < 2
            if is_one and out.numel() == graphs * outputs:
                return out.reshape(graphs, outputs)
        got = (
            f"a tensor of shape {tuple(out.shape)}"
            if isinstance(out, Tensor)
            else f"an object of type {type(out).__name__}"
        )
        raise UsageError(
            f"{self.name}: for {graphs} graphs the model must return a tensor of shape "
            f"({graphs}, {outputs}), a row for each graph and a column for each output, but "
            f"returned {got}."
        )

    @contextmanager
    def blamed(self, when: str) -> Iterator[None]:
        """Turn what the model raises into a sentence that names it, and the line."""
        try:
            yield
        except (GnnVpaError, MemoryError):
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryError":
                raise
            raise GnnVpaError(
                f"{self.name}: its model raised {type(error).__name__} {when}: "
                f"{shortened(error)} ({_place(error)})."
            ) from error


def shortened(error: BaseException) -> str:
    """Return the first line of what an exception says, without the full stop."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    line = lines[0] if len(lines[0]) <= 200 else lines[0][:200] + "…"
    return line.rstrip(".")


def _place(error: BaseException) -> str:
    """Return the last line of the user's own that an exception went through."""
    frames = traceback.extract_tb(error.__traceback__)
    libraries = ("site-packages", "gnn_vpa", sys.base_prefix)
    users = [f for f in frames if not any(part in f.filename for part in libraries)]
    last = (users or list(frames))[-1]
    return f"{last.filename}, line {last.lineno}"


def pyg_batch(inputs: Inputs) -> "Batch":
    """Return a batch as PyG's loaders give it."""
    from torch_geometric.data import Batch  # it loads slowly, and models of ours need none of it

    given = {name: value for name, value in inputs._asdict().items() if value is not None}
    return Batch(**given)
