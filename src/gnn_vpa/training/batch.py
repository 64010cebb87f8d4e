"""What one step of a group of lanes needs."""

from typing import NamedTuple

from torch import Tensor

from ..nn import LevelBatch

EMPTY = -1  # in the place of a graph where a lane has fewer than the others


class Batch(NamedTuple):
    """A step of L lanes with B graphs each."""

    x: Tensor  # of the first level: features [rows, in], codes [rows], or lanes and codes [rows, 2]
    graph: LevelBatch
    y: Tensor  # [L * B], or [L * B, T]
    real: Tensor  # [L, B], false where a lane has no graph; or how much each counts in the loss
