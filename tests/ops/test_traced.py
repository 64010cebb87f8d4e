"""Sums by the calls that a compiler makes: the numbers of the reference."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gnn_vpa import UsageError
from gnn_vpa.ops import Graph, aggregate, use_backend
from gnn_vpa.ops.internal import traced_sum


def values_and_gradients(summed: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.clone().requires_grad_()
    out = summed(x)
    (grad,) = torch.autograd.grad(out.square().sum() / 2 + out.sum(), x)
    return out.detach(), grad


def by_reference(x: Tensor, graph: Graph, aggr: str, weight: Tensor | None = None) -> Tensor:
    with use_backend("reference"):
        return aggregate(x, graph, aggr, weight)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 0.3])
@pytest.mark.parametrize("num_edges", [0, 40])
def test_sums_are_those_of_the_reference(
    exponent: float, num_edges: int, generator: torch.Generator
) -> None:
    edges = torch.randint(5, (2, num_edges), generator=generator)
    x = torch.randn(7, 3, dtype=torch.float64, generator=generator)
    graph = Graph(edges, (7, 5))
    found = values_and_gradients(lambda x: traced_sum(x, edges, 5, exponent), x)
    aggr = f"power({exponent})"
    expected = values_and_gradients(lambda x: by_reference(x, graph, aggr), x)
    torch.testing.assert_close(found, expected)


def test_weights_and_readouts_are_those_of_the_reference(generator: torch.Generator) -> None:
    edges = torch.randint(6, (2, 30), generator=generator)
    x = torch.randn(6, 3, dtype=torch.float64, generator=generator)
    weight = torch.randn(30, dtype=torch.float64, generator=generator)
    found = values_and_gradients(lambda x: traced_sum(x, edges, 6, 0, weight), x)
    graph = Graph(edges, 6)
    expected = values_and_gradients(lambda x: by_reference(x, graph, "sum", weight), x)
    torch.testing.assert_close(found, expected)
    batch = torch.tensor([3, 0, 0, 1, 3, 0])  # in no order, and 2 is empty
    found = values_and_gradients(lambda x: traced_sum(x, batch, 4, 0.5), x)
    graph = Graph.readout(batch, 4)
    expected = values_and_gradients(lambda x: by_reference(x, graph, "vpa"), x)
    torch.testing.assert_close(found, expected)


def test_values_may_lie_anywhere_in_memory(generator: torch.Generator) -> None:
    edges = torch.randint(6, (30, 2), generator=generator).t()
    x = torch.randn(6, 8, dtype=torch.float64, generator=generator)[:, ::2]
    weight = torch.randn(60, dtype=torch.float64, generator=generator)[::2]
    found = traced_sum(x, edges, 6, 0.0, weight)
    torch.testing.assert_close(found, by_reference(x, Graph(edges, 6), "sum", weight))


def test_derivatives_of_higher_order(generator: torch.Generator) -> None:
    edges = torch.randint(4, (2, 9), generator=generator)
    x = torch.randn(4, 2, dtype=torch.float64, generator=generator, requires_grad=True)

    def summed(x: Tensor) -> Tensor:
        return traced_sum(x, edges, 4, 0.5)

    torch.autograd.gradcheck(summed, x)
    torch.autograd.gradgradcheck(summed, x)


def test_long_rows_are_summed_in_pieces() -> None:
    batch = torch.zeros(1 << 18, dtype=torch.int64)
    x = torch.full((1 << 18, 1), 0.1)
    out = traced_sum(x, batch, 1, 0.5)
    torch.testing.assert_close(out.item(), x[0].item() * 2**9, rtol=2e-5, atol=0)


@pytest.mark.parametrize(("end", "name"), [(0, "source"), (1, "target")])
@pytest.mark.parametrize("wrong", [-1, 6])
def test_an_edge_out_of_range_is_refused(end: int, name: str, wrong: int) -> None:
    edges = torch.tensor([[0, 1, 2], [3, 4, 5]])
    edges[end, 1] = wrong
    with pytest.raises(UsageError, match=f"{name} index {wrong} is out of range"):
        traced_sum(torch.ones(6, 1), edges, 6, 0.5)
