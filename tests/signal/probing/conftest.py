"""A graph that many tests probe on."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor


class Sample(NamedTuple):
    """Three graphs of 10, 20 and 30 nodes, with edges within each."""

    x: Tensor
    edge_index: Tensor
    batch: Tensor


@pytest.fixture
def sample(generator: torch.Generator) -> Sample:
    sizes = torch.tensor([10, 20, 30])
    batch = torch.repeat_interleave(torch.arange(3), sizes)
    starts = sizes.cumsum(0) - sizes
    parts = [
        first + torch.randint(int(size), (2, 6 * int(size)), generator=generator)
        for first, size in zip(starts, sizes, strict=True)
    ]
    edge_index = torch.cat(parts, dim=1)
    return Sample(torch.randn(60, 8, generator=generator), edge_index, batch)
