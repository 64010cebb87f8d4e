"""Many small tensors of a step in two long rows: to hand a step over is to copy these."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

_ALIGNED = 32  # numbers: kernels read faster from places that are multiples of 128 bytes


class _Place(NamedTuple):
    first: int
    shape: torch.Size
    row: int  # 0: integers, 1: floating-point numbers


class Packed(NamedTuple):
    """K steps, packed.

    Attributes:
        rows: Integers ``[K, I]`` and floating-point numbers ``[K, F]``.
        layout: Where each tensor stands in a row: tuples as they were packed.
    """

    rows: tuple[Tensor, Tensor]
    layout: Any

    def step(self, number: int) -> tuple[Tensor, Tensor]:
        """Return the rows of a step."""
        integers, numbers = self.rows
        return integers[number], numbers[number]


def pack(tree: Any, dtype: torch.dtype) -> Packed:
    """Pack (named) tuples of tensors ``[K, ...]``, and tuples of these; None stays None.

    Integers become 32 bits wide, other numbers ``dtype``.

    Example:
        >>> packed = pack((torch.tensor([[1], [2]]), (None, torch.ones(2, 3))), torch.float32)
        >>> unpack(packed.layout, packed.step(1))
        (tensor([2], dtype=torch.int32), (None, tensor([1., 1., 1.])))
    """
    ends, places, parts = [0, 0], [], list(_tensors(tree))
    for part in parts:
        row = int(part.is_floating_point())
        places.append(_Place(ends[row], part.shape[1:], row))
        ends[row] += -(-part[0].numel() // _ALIGNED) * _ALIGNED
    rows = tuple(
        parts[0].new_zeros(len(parts[0]), end, dtype=kind)
        for end, kind in zip(ends, (torch.int32, dtype), strict=True)
    )
    for part, (first, shape, row) in zip(parts, places, strict=True):
        rows[row][:, first : first + shape.numel()] = part.flatten(1)
    return Packed((rows[0], rows[1]), _replaced(tree, iter(places)))


def unpack(layout: Any, step: tuple[Tensor, Tensor]) -> Any:
    """Return the tensors of one step, as views of its rows."""
    places = list(_tensors(layout, _Place))
    views = [step[row][first : first + s.numel()].view(s) for first, s, row in places]
    return _replaced(layout, iter(views))


def _tensors(tree: Any, kind: type = Tensor) -> Iterator[Any]:
    if isinstance(tree, kind):
        yield tree
    elif tree is not None:
        for part in tree:
            yield from _tensors(part, kind)


def _replaced(tree: Any, by: Iterator[Any]) -> Any:
    if tree is None:
        return None
    if isinstance(tree, Tensor | _Place):
        return next(by)
    parts = [_replaced(part, by) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
