"""Attention by the calls that a compiler makes: the numbers of the reference."""

import pytest
import torch
from torch import Tensor

from gnn_vpa import UsageError
from gnn_vpa.ops import Graph, use_backend
from gnn_vpa.ops._cpu import LONG
from gnn_vpa.ops.internal import attend_by_parts, traced_attention


def compared(
    edges: Tensor, x: Tensor, source: Tensor, target: Tensor, times: Tensor | None
) -> None:
    """Compare values and gradients with the reference's."""
    inputs = [part.clone().requires_grad_() for part in (x, source, target)]
    left, to, of = inputs
    found = traced_attention(left, edges, to, of, 0.2, times)
    graph = Graph(edges, (len(x), len(target)))
    with use_backend("reference"):
        expected = attend_by_parts(left, graph, to, of, 0.2, times)
        torch.testing.assert_close(found, expected)
        probe = torch.randn(found.shape, dtype=found.dtype)
        expected_grads = torch.autograd.grad(expected, inputs, probe)
    torch.testing.assert_close(torch.autograd.grad(found, inputs, probe), expected_grads)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("has_times", [False, True])
def test_attention_is_that_of_the_reference(
    heads: int, has_times: bool, generator: torch.Generator
) -> None:
    edges = torch.cat(
        [torch.randint(5, (2, 30), generator=generator), torch.arange(5).repeat(2, 1)], 1
    )
    x = torch.randn(5, heads, 4, dtype=torch.float64, generator=generator)
    source, target = torch.randn(2, 5, heads, dtype=torch.float64, generator=generator)
    times = (torch.arange(35) % 3 > 0).double() if has_times else None
    if times is not None:
        times[30:] = 1  # of each target some edge counts
    compared(edges, x, source, target, times)


def test_attention_over_many_neighbours(generator: torch.Generator) -> None:
    num = LONG + 50
    edges = torch.stack([torch.arange(num), torch.zeros(num, dtype=torch.int64)])
    x = torch.randn(num, 1, 2, dtype=torch.float64, generator=generator)
    source = torch.randn(num, 1, dtype=torch.float64, generator=generator)
    compared(edges, x, source, torch.randn(1, 1, dtype=torch.float64), None)
    found = traced_attention(x.float(), edges, source.float(), torch.ones(1, 1), 0.2, None)
    expected = traced_attention(x, edges, source, torch.ones(1, 1).double(), 0.2, None)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


def test_without_edges_there_is_nothing_to_attend_to() -> None:
    edges, x = torch.empty(2, 0, dtype=torch.int64), torch.ones(3, 2, 4, requires_grad=True)
    out = traced_attention(x, edges, torch.ones(3, 2), torch.ones(3, 2), 0.2, None)
    assert torch.equal(out, torch.zeros(3, 2, 4))
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(grad, torch.zeros(3, 2, 4))


def test_an_edge_out_of_range_is_refused() -> None:
    edges, x = torch.tensor([[0, 3], [1, 2]]), torch.ones(3, 1, 4)
    with pytest.raises(UsageError, match="source index 3 is out of range"):
        traced_attention(x, edges, torch.ones(3, 1), torch.ones(3, 1), 0.2, None)
