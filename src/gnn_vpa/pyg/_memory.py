"""What was made of an unchanged ``edge_index``, so that the next layer need not make it again.

A layer that adds self-loops makes a new ``edge_index`` at every call, whose edges would have to be
grouped again at every call. Remembered, it is the same tensor, and so is its ``Graph``.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

import torch
from torch import Tensor
from torch_geometric import utils

from ..ops.internal import Mark, Memory, memorable

Made = TypeVar("Made", bound=tuple[Tensor | None, ...])

_memory = Memory()


def remembered(
    edge_index: Tensor, key: Hashable, make: Callable[[], Made], constant: Tensor | None = None
) -> Made:
    """Return the tensors that ``make`` made of ``edge_index`` the last time, if all are unchanged.

    They must not contain ``edge_index`` itself, which they would keep alive. Where they depend on
    a ``constant`` too, such as edge weights without a gradient, that must be the same as well.
    """
    if not memorable(edge_index) or not (constant is None or memorable(constant)):
        return make()
    if torch._C._are_functorch_transforms_active():  # what is made ends with the transform
        return make()
    mark = Mark(edge_index)
    before, known = _memory.get(edge_index, (None, {}))
    if before != mark:
        known = {}
        _memory.put(edge_index, (mark, known))
    own = None if constant is None else Mark(constant)
    made, marks, of = known.get(key, (None, [], None))
    if made is None or of != own or _marks(made) != marks:
        with torch.inference_mode(False):  # a later training step must be able to use it
            made = make()
        known[key] = (made, _marks(made), own)
    return made  # type: ignore[no-any-return]


def _marks(made: tuple[Tensor | None, ...]) -> list[Mark]:
    return [Mark(t) for t in made if t is not None]


def remove_self_loops(
    edge_index: Tensor, edge_attr: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Remove self-loops as PyG does; the same tensor for the same edges."""

    def make() -> tuple[Tensor, Tensor | None]:
        return utils.remove_self_loops(edge_index, edge_attr)  # type: ignore[no-any-return]

    return remembered(edge_index, "removed", make) if edge_attr is None else make()


def add_self_loops(
    edge_index: Tensor,
    edge_attr: Tensor | None = None,
    fill_value: float | Tensor | str | None = None,
    num_nodes: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Add self-loops as PyG does; the same tensor for the same edges."""

    def make() -> tuple[Tensor, Tensor | None]:
        return utils.add_self_loops(edge_index, edge_attr, fill_value, num_nodes)  # type: ignore[no-any-return]

    return remembered(edge_index, ("added", num_nodes), make) if edge_attr is None else make()
