"""Rows in blocks: lanes that own different numbers of rows, and still share every product."""

from typing import NamedTuple

from torch import Tensor


class Blocks(NamedTuple):
    """Rows ``[C * T]`` in C blocks of T, each of one lane: in the place of a model's ``nodes``.

    Lanes of as many rows each would all need the rows of the largest. Blocks are lanes of their own
    for products (their weights are those of their lane, ``Batch`` gathers them), and batch
    statistics are those of all blocks of a lane.

    Attributes:
        nodes: How often each row occurs, ``[C * T]``.
        lane: The lane of each block, ``[C]``, in order.
        ptr: Lane l owns the blocks ``ptr[l]`` to ``ptr[l + 1]``, at least one, ``[L + 1]``. Those
            behind the last are idle.
        most: How many blocks a lane owns at most.
    """

    nodes: Tensor
    lane: Tensor
    ptr: Tensor
    most: int

    @property
    def row_lane(self) -> Tensor:
        """The lane of each row, ``[C * T]``."""
        size = len(self.nodes) // len(self.lane)
        return self.lane.long().repeat_interleave(size, output_size=len(self.nodes))
