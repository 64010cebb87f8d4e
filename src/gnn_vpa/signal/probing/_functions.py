"""Functions between modules: what happened to a tensor since a module last returned it."""

from __future__ import annotations

import re
from typing import Generic, NamedTuple, TypeVar

from torch import Tensor
from torch.autograd.graph import Node

Made = TypeVar("Made")

UNNAMED = "function"  # without gradients nobody knows which
_MOST_NAMES = 3
_SHAPES = {
    "alias",
    "as_strided",
    "clone",
    "expand",
    "permute",
    "reshape",
    "slice",
    "split",
    "squeeze",
    "t",
    "to_copy",
    "transpose",
    "unbind",
    "unsafe_split",
    "unsafe_view",
    "unsqueeze",
    "view",
}  # fmt: skip - they move numbers, or leave some out
_SUMS = {"add", "stack", "sum"}
_ACTIVATIONS = {
    "celu", "elu", "gelu", "hardswish", "hardtanh", "leaky_relu", "mish", "prelu", "relu", "selu",
    "sigmoid", "silu", "softplus", "tanh", "threshold",
}  # fmt: skip


class Function(NamedTuple, Generic[Made]):
    """What made a tensor of results that were there before.

    Attributes:
        names: The operations as autograd knows them, in the order in which they ran.
        sources: The results that they were applied to.
    """

    names: tuple[str, ...]
    sources: tuple[Made, ...]

    def __str__(self) -> str:
        said = [name for name in self.names if name not in _SHAPES] or list(self.names)
        more = [f"{len(said) - _MOST_NAMES} more"] if len(said) > _MOST_NAMES else []
        return ", ".join([*said[:_MOST_NAMES], *more]) or UNNAMED

    @property
    def is_sum(self) -> bool:
        """Whether results were added up, and nothing else."""
        return self._adds and {*self.names} <= _SUMS | _SHAPES

    @property
    def begins_with_sum(self) -> bool:
        """Whether results were added up, and at most activated after that."""
        return self._adds and {*self.names} <= _SUMS | _SHAPES | _ACTIVATIONS

    @property
    def _adds(self) -> bool:
        return "add" in self.names or "sum" in self.names


class Origins(Generic[Made]):
    """Which nodes of autograd's graph made the results that are known."""

    def __init__(self) -> None:
        self._made: dict[Node, Made] = {}

    def note(self, x: Tensor, made: Made) -> None:
        """Remember where a tensor was made."""
        if x.grad_fn is not None:
            self._made[x.grad_fn] = made

    def of(self, x: Tensor) -> Function[Made]:
        """Go back from a tensor to the results that it was made of; without gradients to none."""
        names: dict[str, None] = {}
        sources: dict[Made, None] = {}
        seen: set[Node] = set()
        waiting = [x.grad_fn] if x.grad_fn is not None else []
        while waiting:
            node = waiting.pop(0)
            if node in seen:
                continue
            seen.add(node)
            if node in self._made:
                sources[self._made[node]] = None
                continue
            if not node.name().endswith("AccumulateGrad"):
                names[_name(node)] = None
            waiting += [before for before, _ in node.next_functions if before is not None]
        return Function(tuple(reversed(names)), tuple(reversed(sources)))

    def clear(self) -> None:
        """Let go of the graph, which holds what the backward pass needs."""
        self._made.clear()


def _name(node: Node) -> str:
    """Return what people call the operation of a node, such as ``leaky_relu``."""
    name = re.sub(r"Backward\d*$", "", node.name().rsplit("::", 1)[-1])
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return name.removesuffix("_eager")
