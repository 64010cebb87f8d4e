"""The scales of a linear aggregation: looked up, and computed."""

import numpy as np
import pytest
import torch

from gnn_vpa.ops import Graph, aggregate
from gnn_vpa.ops._power import _TABLED, power, power_of_lengths

EDGE = _TABLED - 1  # the longest row whose power is looked up


@pytest.mark.parametrize("exponent", [0.25, 0.5, 1.0, -0.5])
@pytest.mark.parametrize("longest", [4, EDGE, EDGE + 1, 5 * _TABLED])
def test_lengths_have_the_powers_of_numbers(exponent: float, longest: int) -> None:
    lengths = np.array([0, 1, 3, longest])
    expected = power(torch.from_numpy(lengths).double(), exponent)
    found = power_of_lengths(lengths, longest, exponent, np.float64)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-15)


@pytest.mark.parametrize("count", [EDGE, EDGE + 1])
def test_a_hub_at_the_end_of_the_table_has_its_own_scale(count: int) -> None:
    edges = torch.stack([torch.arange(count) + 1, torch.zeros(count, dtype=torch.int64)])
    x = torch.ones(count + 1, 1, dtype=torch.float64, requires_grad=True)
    out = aggregate(x, Graph(edges, count + 1))
    torch.testing.assert_close(out[0].item(), count**0.5)
    out.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad[1:], torch.full_like(x[1:], count**-0.5))
