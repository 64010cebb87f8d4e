"""Rows of many lanes: how many nodes each row stands for, and which lane it belongs to."""

from typing import NamedTuple

import torch
from torch import Tensor


class LaneRows(NamedTuple):
    """The rows of a level, in the place of a model's ``nodes``.

    Lanes own equally many rows each (``LaneRows.even``), or blocks of rows: rows ``[C * T]`` in C
    blocks of T, each of one lane. With equally many, every lane would need the rows of the largest.
    Blocks are lanes of their own for products (a model's ``row_parameters`` come for each block),
    and batch statistics are those of all blocks of a lane.

    Attributes:
        multiplicity: How many nodes each row stands for, ``[rows]``; 0: none.
        lane: The lane of each block, ``[C]``, in order; None: lanes own equally many rows.
        ptr: Lane l owns the blocks ``ptr[l]`` to ``ptr[l + 1]``, at least one, ``[L + 1]``. Blocks
            behind the last lane's are idle.
        most: How many blocks a lane owns at most.
        total: Number of nodes of each lane, ``[L, 1, 1]``; this and what follows where lanes own
            S rows each.
        share: Share of each row in its lane's nodes, ``[L, S, 1]``.
        busy: 1 where a lane has nodes, else 0: ``[L, 1, 1]``.
        unbiased: ``M / (M - 1)`` for a lane of M nodes, ``[L, 1, 1]``.

    Example:
        Two lanes with one and two blocks of two rows.

        >>> lane, ptr = torch.tensor([0, 1, 1]), torch.tensor([0, 1, 3])
        >>> LaneRows(torch.ones(6), lane, ptr, most=2).row_lane
        tensor([0, 0, 1, 1, 1, 1])
    """

    multiplicity: Tensor
    lane: Tensor | None = None
    ptr: Tensor | None = None
    most: int = 0
    total: Tensor | None = None
    share: Tensor | None = None
    busy: Tensor | None = None
    unbiased: Tensor | None = None

    @classmethod
    def even(cls, multiplicity: Tensor, lanes: int, like: "LaneRows | None" = None) -> "LaneRows":
        """Divide rows ``[L * S]`` evenly, with what batch statistics need of them counted once.

        Args:
            multiplicity: ``[L * S]``, of the type of the rows' features.
            lanes: Number of lanes.
            like: Rows of the same nodes at another level: the nodes of a lane are then known.

        Example:
            >>> LaneRows.even(torch.tensor([1.0, 3.0, 1.0, 0.0]), lanes=2).share.flatten()
            tensor([0.2500, 0.7500, 1.0000, 0.0000])
        """
        count = multiplicity.view(lanes, -1, 1)
        if like is not None and like.total is not None:
            share = count / like.total.clamp(min=1)
            return like._replace(multiplicity=multiplicity, share=share)
        total = count.sum(1, keepdim=True)
        share = count / torch.where(total > 0, total, 1)
        return cls(multiplicity, None, None, 0, total, share, *rates(total))

    @property
    def row_lane(self) -> Tensor:
        """The lane of each row of blocks, ``[C * T]``."""
        assert self.lane is not None
        size = len(self.multiplicity) // len(self.lane)
        return self.lane.long().repeat_interleave(size, output_size=len(self.multiplicity))


def rates(total: Tensor) -> tuple[Tensor, Tensor]:
    """Return whether there are nodes, 1 or 0, and ``M / (M - 1)`` for ``M`` of them.

    Example:
        >>> rates(torch.tensor([0.0, 5.0]))
        (tensor([0., 1.]), tensor([0.0000, 1.2500]))
    """
    return (total > 0).to(total), total / (total - 1).clamp(min=1)
